// SPDX-License-Identifier: Apache-2.0
//! What a function is: from this its configuration space is built.

use super::ConfigError;

/// BARs of a function with a type 0 header (PCI Express base specification, 7.5.1.2.1).
pub const BARS: usize = 6;
/// Most vectors of MSI-X (7.7.2.2).
pub const MAX_VECTORS: u16 = 2048;
/// Bytes of an entry of the MSI-X table.
pub const VECTOR_BYTES: u64 = 16;
/// The smallest size of a Resizable BAR, of bit 0 of its sizes: 1 MiB (7.8.6.2).
pub const SMALLEST_RESIZABLE: u64 = 1 << 20;
/// Sizes that a Resizable BAR can have: 1 MiB to 128 TiB.
const RESIZABLE_SIZES: u32 = 28;

/// The vendor that Nacelle's functions say until somebody registers one: **not assigned by the PCI-SIG**, and in no list of vendors.
/// "NA", in ASCII.
pub const PLACEHOLDER_VENDOR: u16 = 0x4e41;
/// The device that goes with it.
pub const PLACEHOLDER_DEVICE: u16 = 0x0001;

/// The registers that say what a function is (7.5.1.1, 7.5.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Subsystem Vendor ID.
    pub subsystem_vendor: u16,
    /// Subsystem ID.
    pub subsystem: u16,
    /// Revision ID.
    pub revision: u8,
    /// Class code, 24 bits: base class, subclass, programming interface.
    pub class: u32,
    /// Device serial number (7.9.3), an EUI-64.
    pub serial: u64,
}

impl Default for Identity {
    /// A processing accelerator (base class 0x12) with unregistered numbers.
    fn default() -> Self {
        Self {
            vendor: PLACEHOLDER_VENDOR,
            device: PLACEHOLDER_DEVICE,
            subsystem_vendor: PLACEHOLDER_VENDOR,
            subsystem: PLACEHOLDER_DEVICE,
            revision: 0,
            class: 0x12_0000,
            serial: 0,
        }
    }
}

/// A memory BAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Which: 0 to 5. A 64-bit BAR takes the next one too.
    pub index: u8,
    /// Bytes, a power of two.
    pub size: u64,
    /// Whether it is 64 bits wide.
    pub wide: bool,
    /// Whether reads have no side effects.
    pub prefetchable: bool,
    /// For a Resizable BAR the sizes that it can have: bit n is 2^(20 + n) bytes. 0: its size is fixed.
    pub sizes: u32,
}

/// A place in a BAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The BAR.
    pub bar: u8,
    /// Bytes from its begin, a multiple of 8.
    pub offset: u64,
}

/// Interrupts (7.7.2). Clients of VFIO keep the table themselves, so no register lies there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Msix {
    /// How many, 1 to 2048.
    pub vectors: u16,
    /// Where the table is.
    pub table: Place,
    /// Where the pending bits are.
    pub pending: Place,
}

impl Msix {
    /// Bytes of the table.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        u64::from(self.vectors) * VECTOR_BYTES
    }

    /// Bytes of the pending bits: whole words of 64.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        u64::from(self.vectors).div_ceil(64) * 8
    }
}

/// The link (7.5.3.6), as it is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Generation: 1 to 6 are 2.5 to 64 GT/s.
    pub generation: u8,
    /// Lanes: 1, 2, 4, 8 or 16.
    pub lanes: u8,
}

/// A vendor-specific capability (7.9.4).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VendorCapability {
    /// What is behind its ID, the pointer to the next one, and its length: software only reads it, unless it is a window.
    pub body: Vec<u8>,
    /// Software accesses BARs by it, as virtio has it (virtio 1.2, 4.1.4.9): it writes BAR, offset and length, and then reads or writes the
    /// last four bytes. The body has [`WINDOW_BYTES`].
    pub window: bool,
}

/// Bytes of the body of a [`VendorCapability`] that is a window: kind, BAR, identification, two of padding, offset, length, data.
pub const WINDOW_BYTES: usize = 17;
/// Bytes of a capability before its body.
pub(super) const VENDOR_HEAD: usize = 3;

impl VendorCapability {
    /// Bytes that it takes: whole double words.
    pub(super) fn bytes(&self) -> usize {
        (VENDOR_HEAD + self.body.len()).next_multiple_of(4)
    }
}

/// All of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// What it is.
    pub identity: Identity,
    /// Its memory.
    pub bars: Vec<Bar>,
    /// Its interrupts.
    pub msix: Msix,
    /// Capabilities whose meaning is that of its vendor, in the order in which software finds them.
    pub vendor: Vec<VendorCapability>,
    /// Its link.
    pub link: Link,
    /// The longest payload that it takes and sends, in bytes: 128 to 4096.
    pub max_payload: u16,
}

impl Description {
    /// The BAR with this index.
    #[must_use]
    pub fn bar(&self, index: u8) -> Option<&Bar> {
        self.bars.iter().find(|bar| bar.index == index)
    }

    /// Whether such a function can be.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let mut used = [false; BARS];
        for bar in &self.bars {
            check_bar(bar)?;
            let registers = usize::from(bar.index)..usize::from(bar.index) + 1 + usize::from(bar.wide);
            for taken in &mut used[registers] {
                if std::mem::replace(taken, true) {
                    return Err(ConfigError::Bar { index: bar.index, why: "another BAR has its register" });
                }
            }
        }
        self.check_msix()?;
        let room = super::layout::EXTENDED - super::layout::VENDOR;
        if self.vendor.iter().map(VendorCapability::bytes).sum::<usize>() > room {
            return Err(ConfigError::Vendor("they have more than 96 bytes together"));
        }
        if self.vendor.iter().any(|capability| capability.window && capability.body.len() != WINDOW_BYTES) {
            return Err(ConfigError::Vendor("a window has 17 bytes behind its length"));
        }
        if self.vendor.iter().filter(|capability| capability.window).count() > 1 {
            return Err(ConfigError::Vendor("there is one window at most"));
        }
        let Link { generation, lanes } = self.link;
        if !(1..=6).contains(&generation) || !lanes.is_power_of_two() || lanes > 16 {
            return Err(ConfigError::Link { generation, lanes });
        }
        if !self.max_payload.is_power_of_two() || !(128..=4096).contains(&self.max_payload) {
            return Err(ConfigError::MaxPayload(self.max_payload));
        }
        Ok(())
    }

    fn check_msix(&self) -> Result<(), ConfigError> {
        let Msix { vectors, table, pending } = self.msix;
        if vectors == 0 || vectors > MAX_VECTORS {
            return Err(ConfigError::Msix("it has 1 to 2048 vectors"));
        }
        let fits = |place: Place, bytes: u64| {
            self.bar(place.bar).is_some_and(|bar| {
                place.offset.is_multiple_of(8)
                    && place.offset < 1 << 32
                    && place.offset.checked_add(bytes).is_some_and(|end| end <= bar.size)
            })
        };
        let (table_bytes, pending_bytes) = (self.msix.table_bytes(), self.msix.pending_bytes());
        if !fits(table, table_bytes) || !fits(pending, pending_bytes) {
            return Err(ConfigError::Msix("table and pending bits lie in a BAR, at multiples of 8"));
        }
        let apart = table.offset + table_bytes <= pending.offset || pending.offset + pending_bytes <= table.offset;
        if table.bar == pending.bar && !apart {
            return Err(ConfigError::Msix("table and pending bits overlap"));
        }
        Ok(())
    }
}

fn check_bar(bar: &Bar) -> Result<(), ConfigError> {
    let bad = |why| Err(ConfigError::Bar { index: bar.index, why });
    if usize::from(bar.index) + usize::from(bar.wide) >= BARS {
        return bad("there are six registers, and a 64-bit BAR takes two");
    }
    if !bar.size.is_power_of_two() || bar.size < 16 {
        return bad("its size is a power of two, 16 or more");
    }
    if bar.size > if bar.wide { 1 << 63 } else { 1 << 31 } {
        return bad("its size has no room in its register");
    }
    if bar.sizes != 0 {
        if bar.sizes >> RESIZABLE_SIZES != 0 || (!bar.wide && bar.sizes >> 12 != 0) {
            return bad("it can be resized to more than it can have");
        }
        if bar.size < SMALLEST_RESIZABLE || bar.sizes & size_bit(bar.size) == 0 {
            return bad("its size is none of those to which it can be resized");
        }
    }
    Ok(())
}

/// The bit of a size among those of a Resizable BAR; none for a size that it can never have.
pub(super) fn size_bit(size: u64) -> u32 {
    1u32.checked_shl((size / SMALLEST_RESIZABLE).trailing_zeros()).unwrap_or(0)
}
