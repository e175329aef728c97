// SPDX-License-Identifier: Apache-2.0
//! Where each register is, what it is after power-on, and which of its bits can be written.

use super::description::{BARS, Bar, Description, SMALLEST_RESIZABLE, VENDOR_HEAD, size_bit};
use super::{CONFIG_BYTES, Power, Settings};

/// Command register (7.5.1.1.3).
pub(super) const COMMAND: usize = 0x04;
/// Memory Space Enable.
pub(super) const MEMORY_SPACE: u16 = 1 << 1;
const BUS_MASTER: u16 = 1 << 2;
/// Parity Error Response, SERR# Enable and Interrupt Disable can be written, and change nothing here.
const COMMAND_WRITABLE: u16 = MEMORY_SPACE | BUS_MASTER | 1 << 6 | 1 << 8 | 1 << 10;
const STATUS: usize = 0x06;
/// Capabilities List.
const STATUS_VALUE: u16 = 1 << 4;
/// Its errors, cleared by writing 1 (7.5.1.1.4).
const STATUS_ERRORS: u16 = 0xf900;

/// The first BAR.
const BAR_0: usize = 0x10;

/// PCI Power Management (7.5.2): version 3, D0 and D3hot.
const POWER: usize = 0x40;
const POWER_CONTROL: usize = POWER + 4;
pub(super) const D0: u16 = 0;
pub(super) const D3HOT: u16 = 3;
/// No_Soft_Reset: nothing is lost between D3hot and D0.
const NO_SOFT_RESET: u16 = 1 << 3;

/// PCI Express (7.5.3), version 2.
const EXPRESS: usize = 0x50;
const DEVICE_CAPABILITIES: usize = EXPRESS + 0x04;
const DEVICE_CONTROL: usize = EXPRESS + 0x08;
const DEVICE_STATUS: usize = EXPRESS + 0x0a;
const LINK_CAPABILITIES: usize = EXPRESS + 0x0c;
const LINK_CONTROL: usize = EXPRESS + 0x10;
const LINK_STATUS: usize = EXPRESS + 0x12;
const DEVICE_CAPABILITIES_2: usize = EXPRESS + 0x24;
const DEVICE_CONTROL_2: usize = EXPRESS + 0x28;
const LINK_CAPABILITIES_2: usize = EXPRESS + 0x2c;
const LINK_CONTROL_2: usize = EXPRESS + 0x30;
/// Extended tags, role-based error reporting, function level reset.
const DEVICE_CAN: u32 = 1 << 5 | 1 << 15 | 1 << 28;
const EXTENDED_TAGS: u16 = 1 << 8;
const INITIATE_RESET: u16 = 1 << 15;

/// MSI-X (7.7.2).
const MSIX: usize = 0x90;
const MSIX_CONTROL: usize = MSIX + 2;
const MSIX_MASK: u16 = 1 << 14;
const MSIX_ENABLE: u16 = 1 << 15;

/// Vendor-specific capabilities (7.9.4), one behind the other.
pub(super) const VENDOR: usize = 0xa0;
/// Where those of PCI Express begin.
pub(super) const EXTENDED: usize = 0x100;
/// In a window (virtio 1.2, 4.1.4.9): what software writes, and the data.
const WINDOW_BAR: usize = 4;
const WINDOW_OFFSET: usize = 8;
const WINDOW_LENGTH: usize = 12;
const WINDOW_DATA: usize = 16;

/// Advanced Error Reporting (7.8.4), version 2, with a header log and no TLP prefixes.
const AER: usize = EXTENDED;
const AER_BYTES: usize = 0x48;
/// All uncorrectable errors that an endpoint has.
const UNCORRECTABLE: u32 = 0x007f_f010;
/// Those that are fatal unless software says otherwise.
const FATAL: u32 = 0x0046_2030;
const CORRECTABLE: u32 = 0x0000_f1c1;
/// Advisory non-fatal errors are masked after reset.
const ADVISORY: u32 = 1 << 13;

/// Device Serial Number (7.9.3).
const SERIAL: usize = AER + AER_BYTES;
/// Resizable BAR (7.8.6): behind the serial number, if there are any.
const RESIZABLE: usize = SERIAL + 0x10;
const RESIZABLE_CONTROL_SIZE: u32 = 0x3f << 8;

/// The registers, byte by byte.
#[derive(Debug, Clone)]
pub(super) struct Registers {
    pub(super) bytes: Box<[u8; CONFIG_BYTES]>,
    /// Bits that take what is written.
    writable: Box<[u8; CONFIG_BYTES]>,
    /// Bits that are cleared by writing 1.
    cleared: Box<[u8; CONFIG_BYTES]>,
    /// Control registers of Resizable BARs, by BAR.
    resizable: [Option<usize>; BARS],
    /// Where the window is.
    window: Option<usize>,
}

impl Registers {
    pub(super) fn new(description: &Description) -> Self {
        let mut new = Self {
            bytes: Box::new([0; CONFIG_BYTES]),
            writable: Box::new([0; CONFIG_BYTES]),
            cleared: Box::new([0; CONFIG_BYTES]),
            resizable: [None; BARS],
            window: None,
        };
        new.header(description);
        new.power_management();
        new.express(description);
        new.msix(description);
        new.vendor(description);
        new.error_reporting();
        new.serial(description);
        new.resizable_bars(description);
        new
    }

    pub(super) fn reset(&mut self, description: &Description) {
        let sticky = AER..AER + AER_BYTES;
        let recorded: [u8; AER_BYTES] = std::array::from_fn(|byte| self.bytes[sticky.start + byte]);
        *self = Self::new(description);
        self.bytes[sticky].copy_from_slice(&recorded);
    }

    fn header(&mut self, description: &Description) {
        let identity = &description.identity;
        self.set_word(0x00, identity.vendor);
        self.set_word(0x02, identity.device);
        self.writable_word(COMMAND, COMMAND_WRITABLE);
        self.set_word(STATUS, STATUS_VALUE);
        self.cleared[STATUS..STATUS + 2].copy_from_slice(&STATUS_ERRORS.to_le_bytes());
        self.set_double(0x08, identity.class << 8 | u32::from(identity.revision));
        // Cache Line Size and Interrupt Line belong to software.
        self.writable[0x0c] = 0xff;
        self.writable[0x3c] = 0xff;
        for bar in &description.bars {
            let kind = u32::from(bar.wide) << 2 | u32::from(bar.prefetchable) << 3;
            self.set_double(BAR_0 + 4 * usize::from(bar.index), kind);
            self.size_bar(bar, bar.size);
        }
        self.set_word(0x2c, identity.subsystem_vendor);
        self.set_word(0x2e, identity.subsystem);
        self.bytes[0x34] = POWER as u8;
    }

    /// A BAR's address bits below its size read as zero: so software finds the size (7.5.1.2.1).
    pub(super) fn size_bar(&mut self, bar: &Bar, size: u64) {
        let at = BAR_0 + 4 * usize::from(bar.index);
        let mask = !(size - 1);
        let kind = self.double(at) & 0xf;
        self.set_double(at, kind);
        self.writable_double(at, mask as u32 & !0xf);
        if bar.wide {
            self.set_double(at + 4, 0);
            self.writable_double(at + 4, (mask >> 32) as u32);
        }
    }

    pub(super) fn bar_address(&self, index: u8, wide: bool) -> u64 {
        let at = BAR_0 + 4 * usize::from(index);
        let high = if wide { self.double(at + 4) } else { 0 };
        u64::from(high) << 32 | u64::from(self.double(at) & !0xf)
    }

    fn power_management(&mut self) {
        self.bytes[POWER..POWER + 2].copy_from_slice(&[0x01, EXPRESS as u8]);
        self.set_word(POWER + 2, 3);
        self.set_word(POWER_CONTROL, NO_SOFT_RESET);
        self.writable_word(POWER_CONTROL, D3HOT);
    }

    fn express(&mut self, description: &Description) {
        let (speed, lanes) = (u16::from(description.link.generation), u16::from(description.link.lanes));
        self.bytes[EXPRESS..EXPRESS + 2].copy_from_slice(&[0x10, MSIX as u8]);
        // Version 2; an endpoint is type 0.
        self.set_word(EXPRESS + 2, 2);
        self.set_double(DEVICE_CAPABILITIES, u32::from(payload_code(description.max_payload)) | DEVICE_CAN);
        // Relaxed ordering and no snoop are allowed after reset, reads have 512 bytes, payloads 128.
        self.set_word(DEVICE_CONTROL, 2 << 12 | 1 << 11 | 1 << 4);
        self.writable_word(DEVICE_CONTROL, 0xf9ff);
        self.cleared[DEVICE_STATUS] = 0x0f;
        // ASPM Optionality Compliance.
        self.set_double(LINK_CAPABILITIES, u32::from(speed | lanes << 4) | 1 << 22);
        self.writable_word(LINK_CONTROL, 0x00c3);
        self.set_word(LINK_STATUS, speed | lanes << 4 | 1 << 12);
        // Completion Timeout Disable.
        self.set_double(DEVICE_CAPABILITIES_2, 1 << 4);
        self.writable_word(DEVICE_CONTROL_2, 1 << 4);
        self.set_double(LINK_CAPABILITIES_2, ((1 << speed) - 1) << 1);
        self.set_word(LINK_CONTROL_2, speed);
        self.writable_word(LINK_CONTROL_2, 0x000f);
    }

    fn msix(&mut self, description: &Description) {
        let msix = &description.msix;
        self.bytes[MSIX] = 0x11;
        self.set_word(MSIX_CONTROL, msix.vectors - 1);
        self.writable_word(MSIX_CONTROL, MSIX_ENABLE | MSIX_MASK);
        for (at, place) in [(MSIX + 4, msix.table), (MSIX + 8, msix.pending)] {
            self.set_double(at, place.offset as u32 | u32::from(place.bar));
        }
    }

    fn vendor(&mut self, description: &Description) {
        let (mut last, mut at) = (MSIX, VENDOR);
        for capability in &description.vendor {
            self.bytes[last + 1] = at as u8;
            let length = VENDOR_HEAD + capability.body.len();
            self.bytes[at] = 0x09;
            self.bytes[at + 2] = length as u8;
            self.bytes[at + VENDOR_HEAD..at + length].copy_from_slice(&capability.body);
            if capability.window {
                self.window = Some(at);
                self.writable[at + WINDOW_BAR] = 0xff;
                self.writable_double(at + WINDOW_OFFSET, u32::MAX);
                self.writable_double(at + WINDOW_LENGTH, u32::MAX);
            }
            (last, at) = (at, at + capability.bytes());
        }
    }

    /// BAR, offset and length that an access means of which the first byte is at `offset`, if that is the data of the window.
    pub(super) fn window(&self, offset: u64) -> Option<(u8, u32, u32)> {
        let at = self.window.filter(|at| offset == (at + WINDOW_DATA) as u64)?;
        Some((self.bytes[at + WINDOW_BAR], self.double(at + WINDOW_OFFSET), self.double(at + WINDOW_LENGTH)))
    }

    fn extended(&mut self, at: usize, id: u16, version: u32, next: usize) {
        self.set_double(at, u32::from(id) | version << 16 | (next as u32) << 20);
    }

    fn error_reporting(&mut self) {
        self.extended(AER, 0x0001, 2, SERIAL);
        for (register, errors) in [(AER + 0x04, UNCORRECTABLE), (AER + 0x10, CORRECTABLE)] {
            self.cleared[register..register + 4].copy_from_slice(&errors.to_le_bytes());
        }
        self.writable_double(AER + 0x08, UNCORRECTABLE);
        self.set_double(AER + 0x0c, FATAL);
        self.writable_double(AER + 0x0c, UNCORRECTABLE);
        self.set_double(AER + 0x14, ADVISORY);
        self.writable_double(AER + 0x14, CORRECTABLE);
    }

    fn serial(&mut self, description: &Description) {
        let resizable = description.bars.iter().any(|bar| bar.sizes != 0);
        self.extended(SERIAL, 0x0003, 1, if resizable { RESIZABLE } else { 0 });
        self.set_double(SERIAL + 4, description.identity.serial as u32);
        self.set_double(SERIAL + 8, (description.identity.serial >> 32) as u32);
    }

    fn resizable_bars(&mut self, description: &Description) {
        let count = description.bars.iter().filter(|bar| bar.sizes != 0).count();
        if count > 0 {
            self.extended(RESIZABLE, 0x0015, 1, 0);
        }
        for (number, bar) in description.bars.iter().filter(|bar| bar.sizes != 0).enumerate() {
            let at = RESIZABLE + 4 + 8 * number;
            self.set_double(at, bar.sizes << 4);
            // The first says how many there are.
            let how_many = if number == 0 { (count as u32) << 5 } else { 0 };
            self.set_double(at + 4, u32::from(bar.index) | how_many);
            self.writable_double(at + 4, RESIZABLE_CONTROL_SIZE);
            self.resizable[usize::from(bar.index)] = Some(at + 4);
            self.set_resizable_size(bar.index, bar.size);
        }
    }

    /// The size that a Resizable BAR's control register has; more than there can be if software wrote nonsense.
    pub(super) fn resizable_size(&self, index: u8) -> Option<u64> {
        let control = self.double((*self.resizable.get(usize::from(index))?)?);
        let code = (control & RESIZABLE_CONTROL_SIZE) >> 8;
        Some(SMALLEST_RESIZABLE << code.min(43))
    }

    pub(super) fn set_resizable_size(&mut self, index: u8, size: u64) {
        if let Some(at) = self.resizable[usize::from(index)] {
            let rest = self.double(at) & !RESIZABLE_CONTROL_SIZE;
            self.set_double(at, rest | size_bit(size).trailing_zeros() << 8);
        }
    }

    pub(super) fn write_byte(&mut self, at: usize, value: u8) {
        let taken = self.writable[at];
        let old = self.bytes[at] & !(value & self.cleared[at]);
        self.bytes[at] = old & !taken | value & taken;
    }

    pub(super) fn settings(&self, longest_payload: u16) -> Settings {
        let command = self.word(COMMAND);
        let control = self.word(DEVICE_CONTROL);
        let msix = self.word(MSIX_CONTROL);
        Settings {
            bus_master: command & BUS_MASTER != 0,
            memory_space: command & MEMORY_SPACE != 0,
            msix_enable: msix & MSIX_ENABLE != 0,
            msix_mask: msix & MSIX_MASK != 0,
            max_payload: payload_bytes(control >> 5).min(longest_payload),
            max_read_request: payload_bytes(control >> 12),
            extended_tags: control & EXTENDED_TAGS != 0,
            power: if self.power_bits() == D0 { Power::On } else { Power::Off },
        }
    }

    pub(super) fn power_bits(&self) -> u16 {
        self.word(POWER_CONTROL) & D3HOT
    }

    pub(super) fn set_power_bits(&mut self, state: u16) {
        self.set_word(POWER_CONTROL, self.word(POWER_CONTROL) & !D3HOT | state);
    }

    pub(super) fn set_msix_enable(&mut self, on: bool) {
        let rest = self.word(MSIX_CONTROL) & !MSIX_ENABLE;
        self.set_word(MSIX_CONTROL, rest | if on { MSIX_ENABLE } else { 0 });
    }

    /// Whether a function level reset was asked for. The bit reads as zero (7.5.3.4).
    pub(super) fn take_function_reset(&mut self) -> bool {
        let control = self.word(DEVICE_CONTROL);
        self.set_word(DEVICE_CONTROL, control & !INITIATE_RESET);
        control & INITIATE_RESET != 0
    }

    pub(super) fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    pub(super) fn set_word(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn writable_word(&mut self, at: usize, bits: u16) {
        self.writable[at..at + 2].copy_from_slice(&bits.to_le_bytes());
    }

    fn double(&self, at: usize) -> u32 {
        u32::from(self.word(at + 2)) << 16 | u32::from(self.word(at))
    }

    fn set_double(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn writable_double(&mut self, at: usize, bits: u32) {
        self.writable[at..at + 4].copy_from_slice(&bits.to_le_bytes());
    }
}

/// How a length is written in Device Control and Device Capabilities: 128 bytes are 0.
fn payload_code(bytes: u16) -> u16 {
    (bytes / 128).trailing_zeros() as u16
}

/// The length of the low three bits; codes that stand for none (6, 7) count as the longest.
fn payload_bytes(code: u16) -> u16 {
    128 << (code & 7).min(5)
}
