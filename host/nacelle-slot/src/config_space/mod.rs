// SPDX-License-Identifier: Apache-2.0
//! The configuration space of a PCI Express endpoint with a type 0 header, 4096 bytes, as software finds and changes it.
//!
//! Sections are those of the PCI Express base specification, revision 5.0. Each bit is read only, writable, or cleared by writing 1;
//! a few registers do more, and those are handled one by one. A write tells what it changed as [`ConfigEvent`]s.

mod description;
mod layout;

use description::size_bit;
pub use description::{
    BARS, Bar, Description, Identity, Link, MAX_VECTORS, Msix, PLACEHOLDER_DEVICE, PLACEHOLDER_VENDOR, Place,
    SMALLEST_RESIZABLE, VECTOR_BYTES, VendorCapability, WINDOW_BYTES,
};
use layout::{COMMAND, Registers};

/// Bytes of a configuration space of PCI Express.
pub const CONFIG_BYTES: usize = 4096;

/// Why there is no such function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A BAR cannot be.
    #[error("BAR {index} cannot be: {why}")]
    Bar {
        /// Which.
        index: u8,
        /// What is wrong.
        why: &'static str,
    },
    /// MSI-X cannot be.
    #[error("MSI-X cannot be: {0}")]
    Msix(&'static str),
    /// Vendor-specific capabilities cannot be.
    #[error("vendor-specific capabilities cannot be: {0}")]
    Vendor(&'static str),
    /// The link cannot be.
    #[error("there is no link of generation {generation} with {lanes} lanes")]
    Link {
        /// Of PCI Express.
        generation: u8,
        /// Its width.
        lanes: u8,
    },
    /// The longest payload cannot be.
    #[error("a payload is at most 128 to 4096 bytes long, a power of two, and not {0}")]
    MaxPayload(u16),
}

/// Not all of an access lies in the configuration space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the access is not within the configuration space")]
pub struct OutsideConfigSpace;

/// Whether a function is on (7.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// D0: works.
    On,
    /// D3hot: answers in its configuration space alone.
    Off,
}

/// What software set, as far as it changes what the function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bus Master Enable (7.5.1.1.3): it may send memory requests and interrupts.
    pub bus_master: bool,
    /// Memory Space Enable: its BARs answer.
    pub memory_space: bool,
    /// MSI-X Enable (7.7.2.2).
    pub msix_enable: bool,
    /// Function Mask: no vector is sent.
    pub msix_mask: bool,
    /// Longest payload in bytes (7.5.3.4), never more than the function can.
    pub max_payload: u16,
    /// Longest read request in bytes.
    pub max_read_request: u16,
    /// Tags have 8 bits, and not 5.
    pub extended_tags: bool,
    /// Power state.
    pub power: Power,
}

/// What a write changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigEvent {
    /// It may send requests, or may not any more.
    BusMaster(bool),
    /// Its BARs answer, or do not any more.
    MemorySpace(bool),
    /// MSI-X is on or off.
    MsixEnable(bool),
    /// All vectors are masked, or not any more.
    MsixMask(bool),
    /// The longest payload, in bytes.
    MaxPayload(u16),
    /// The longest read request, in bytes.
    MaxReadRequest(u16),
    /// Whether tags have 8 bits.
    ExtendedTags(bool),
    /// It was turned on or off.
    Power(Power),
    /// A Resizable BAR has another size.
    BarSize {
        /// Which.
        index: u8,
        /// Bytes.
        size: u64,
    },
    /// Initiate Function Level Reset was written (6.6.2). Who owns the function resets it, and this space by [`ConfigSpace::reset`].
    FunctionReset,
}

/// A part of a BAR that is accessed by a window ([`VendorCapability`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The BAR.
    pub bar: u8,
    /// Bytes from its begin.
    pub offset: u64,
    /// How many: 1, 2 or 4.
    pub bytes: usize,
}

/// The configuration space of a function.
///
/// ```
/// use nacelle_slot::config_space::{Bar, ConfigEvent, ConfigSpace, Description, Identity, Link, Msix, Place};
///
/// let mut space = ConfigSpace::new(Description {
///     identity: Identity::default(),
///     bars: vec![Bar { index: 0, size: 65536, wide: true, prefetchable: false, sizes: 0 }],
///     msix: Msix { vectors: 4, table: Place { bar: 0, offset: 0x8000 }, pending: Place { bar: 0, offset: 0xc000 } },
///     vendor: Vec::new(),
///     link: Link { generation: 3, lanes: 16 },
///     max_payload: 256,
/// })?;
/// let mut events = Vec::new();
/// space.write(4, &[6, 0], |event| events.push(event)).unwrap();
/// assert_eq!(events, [ConfigEvent::MemorySpace(true), ConfigEvent::BusMaster(true)]);
/// # Ok::<(), nacelle_slot::config_space::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ConfigSpace {
    description: Description,
    registers: Registers,
}

impl ConfigSpace {
    /// That of a function after power-on.
    ///
    /// # Errors
    /// If there can be no such function.
    pub fn new(description: Description) -> Result<Self, ConfigError> {
        description.check()?;
        let registers = Registers::new(&description);
        Ok(Self { description, registers })
    }

    /// What was described.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// All registers as after power-on, but those that a function level reset leaves (6.6.2): what AER has recorded is sticky.
    pub fn reset(&mut self) {
        self.registers.reset(&self.description);
    }

    /// In D0 and with memory space on, as a bus driver has a function before a program gets it; tells what that changed.
    pub fn enable(&mut self, event: impl FnMut(ConfigEvent)) {
        let before = self.settings();
        self.registers.set_power_bits(layout::D0);
        let command = self.registers.word(COMMAND) | layout::MEMORY_SPACE;
        self.registers.set_word(COMMAND, command);
        changes(before, self.settings(), event);
    }

    /// MSI-X on or off, as a bus driver does it that has set the vectors up.
    pub fn enable_msix(&mut self, on: bool) {
        self.registers.set_msix_enable(on);
    }

    /// Reads the bytes from `offset` on.
    ///
    /// # Errors
    /// If they do not all exist.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutsideConfigSpace> {
        into.copy_from_slice(&self.registers.bytes[range(offset, into.len())?]);
        Ok(())
    }

    /// Writes the bytes from `offset` on, as far as they can be written, and tells what that changed.
    ///
    /// # Errors
    /// If they do not all exist. Nothing is written then.
    pub fn write(
        &mut self,
        offset: u64,
        data: &[u8],
        mut event: impl FnMut(ConfigEvent),
    ) -> Result<(), OutsideConfigSpace> {
        let at = range(offset, data.len())?;
        let before = self.settings();
        let (sizes_before, power_before) = (self.bar_sizes(), self.registers.power_bits());
        for (index, byte) in at.zip(data) {
            self.registers.write_byte(index, *byte);
        }
        // States that the function does not have are not taken (7.5.2.2).
        if !matches!(self.registers.power_bits(), layout::D0 | layout::D3HOT) {
            self.registers.set_power_bits(power_before);
        }
        self.take_sizes(&sizes_before, before.memory_space, &mut event);
        changes(before, self.settings(), &mut event);
        if self.registers.take_function_reset() {
            event(ConfigEvent::FunctionReset);
        }
        Ok(())
    }

    /// What an access to the configuration space of `len` bytes from `offset` on means, if it is one to the data of a window: so many bytes
    /// of a BAR. `None` also for what software must not ask for (virtio 1.2, 4.1.4.9.2): then it accesses the register alone.
    #[must_use]
    pub fn window(&self, offset: u64, len: usize) -> Option<Window> {
        let (bar, at, bytes) = self.registers.window(offset)?;
        let possible = matches!(bytes, 1 | 2 | 4) && at.is_multiple_of(bytes) && bytes as usize <= len && len <= 4;
        let inside = u64::from(at) + u64::from(bytes) <= self.bar_size(bar);
        (possible && inside).then_some(Window { bar, offset: at.into(), bytes: bytes as usize })
    }

    /// What software has set.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.registers.settings(self.description.max_payload)
    }

    /// Bytes of a BAR now; 0 if there is none.
    #[must_use]
    pub fn bar_size(&self, index: u8) -> u64 {
        let Some(bar) = self.description.bar(index) else { return 0 };
        self.registers.resizable_size(index).unwrap_or(bar.size)
    }

    /// Where software has put a BAR.
    #[must_use]
    pub fn bar_address(&self, index: u8) -> Option<u64> {
        let bar = self.description.bar(index)?;
        Some(self.registers.bar_address(index, bar.wide))
    }

    fn bar_sizes(&self) -> [u64; BARS] {
        std::array::from_fn(|index| self.bar_size(index as u8))
    }

    /// A Resizable BAR takes a size that it can have, while its memory space is off (7.8.6.3); its address begins anew then.
    fn take_sizes(&mut self, before: &[u64; BARS], memory_space: bool, event: &mut impl FnMut(ConfigEvent)) {
        for bar in &self.description.bars {
            let (old, new) = (before[usize::from(bar.index)], self.registers.resizable_size(bar.index));
            let Some(new) = new.filter(|new| *new != old) else { continue };
            if memory_space || bar.sizes & size_bit(new) == 0 {
                self.registers.set_resizable_size(bar.index, old);
            } else {
                self.registers.size_bar(bar, new);
                event(ConfigEvent::BarSize { index: bar.index, size: new });
            }
        }
    }
}

/// The events of a change.
fn changes(before: Settings, after: Settings, mut event: impl FnMut(ConfigEvent)) {
    let mut told = |changed: bool, what: ConfigEvent| {
        if changed {
            event(what);
        }
    };
    told(before.power != after.power, ConfigEvent::Power(after.power));
    told(before.max_payload != after.max_payload, ConfigEvent::MaxPayload(after.max_payload));
    told(before.max_read_request != after.max_read_request, ConfigEvent::MaxReadRequest(after.max_read_request));
    told(before.extended_tags != after.extended_tags, ConfigEvent::ExtendedTags(after.extended_tags));
    told(before.msix_mask != after.msix_mask, ConfigEvent::MsixMask(after.msix_mask));
    told(before.msix_enable != after.msix_enable, ConfigEvent::MsixEnable(after.msix_enable));
    told(before.memory_space != after.memory_space, ConfigEvent::MemorySpace(after.memory_space));
    told(before.bus_master != after.bus_master, ConfigEvent::BusMaster(after.bus_master));
}

/// The bytes of an access.
fn range(offset: u64, len: usize) -> Result<std::ops::Range<usize>, OutsideConfigSpace> {
    let offset = usize::try_from(offset).map_err(|_| OutsideConfigSpace)?;
    let end = offset.checked_add(len).filter(|end| *end <= CONFIG_BYTES).ok_or(OutsideConfigSpace)?;
    Ok(offset..end)
}
