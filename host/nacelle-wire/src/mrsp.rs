// SPDX-License-Identifier: Apache-2.0
//! MRSP, the region set-up protocol of NAAICE, and the immediate values that start and end a call.
//!
//! Each message is the payload of one SEND with solicited event. All integers are big-endian.
//!
//! ```
//! use nacelle_wire::mrsp::{AarRegion, Message, RegionFlags};
//! use nacelle_wire::{RemoteAddr, Rkey};
//!
//! let regions = [AarRegion::parameter(RegionFlags::INPUT, 0, RemoteAddr(0x1000), Rkey(7), 64)];
//! let mut buf = [0; 768];
//! let len = Message::Aar(&regions).write(&mut buf)?;
//! assert_eq!(Message::parse(&buf[..len])?, Message::Aar(&regions));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::{BuildError, ParseError, RemoteAddr, Rkey};
use core::ops::BitOr;
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    network_endian::{U32, U64},
};

/// Default port of the service, as an RDMA_PS_TCP port.
pub const DEFAULT_PORT: u16 = 12345;

/// Longest message: the buffer of the upstream library, which takes 31 regions.
pub const MAX_MESSAGE: usize = 768;

/// Most regions that one set-up can have, internal ones included.
pub const MAX_REGIONS: usize = (MAX_MESSAGE - HEAD) / size_of::<AarRegion>();

const HEAD: usize = 4;
const TYPE_ERR: u8 = 0;
const TYPE_AAR: u8 = 1;
const TYPE_A: u8 = 2;

/// What a region is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegionFlags(u8);

impl RegionFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Device memory that has no counterpart at the caller.
    pub const INTERNAL: Self = Self(0x01);
    /// Input that is sent with the first call only.
    pub const SINGLE_SEND: Self = Self(0x02);
    /// The caller writes it before a call.
    pub const INPUT: Self = Self(0x04);
    /// The device writes it back after a call.
    pub const OUTPUT: Self = Self(0x08);

    /// The flags in this byte. Bits without a meaning are left out: a later protocol may give them one.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x0f)
    }

    /// The byte on the wire.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for RegionFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One region of an advertise-and-request message, 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AarRegion {
    /// Flags in the top byte, requested address in device memory in the other seven.
    flags_address: U64,
    address: U64,
    rkey: U32,
    size: U32,
}

/// Names memory of a peer that others write or read: a window (docs/reference/transfers.md). A region request names it by the
/// requested address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowNumber(pub u32);

impl WindowNumber {
    /// The high three of the seven bytes of a requested address that names a window: "NAW".
    const MAGIC: u64 = 0x4e_4157;

    /// The window that a requested address names, if it names one.
    pub const fn of_requested(requested: u64) -> Option<Self> {
        if requested >> 32 == Self::MAGIC { Some(Self(requested as u32)) } else { None }
    }

    /// The requested address, 56 bits.
    pub const fn to_requested(self) -> u64 {
        Self::MAGIC << 32 | self.0 as u64
    }
}

impl AarRegion {
    const DEVICE_ADDRESS: u64 = (1 << 56) - 1;

    /// A parameter: `size` bytes at the caller's `address` under `rkey`. `requested` is where in device memory the
    /// caller would like it (56 bits; devices may ignore it).
    pub fn parameter(flags: RegionFlags, requested: u64, address: RemoteAddr, rkey: Rkey, size: u32) -> Self {
        Self {
            flags_address: U64::new(u64::from(flags.0) << 56 | requested & Self::DEVICE_ADDRESS),
            address: U64::new(address.0),
            rkey: U32::new(rkey.0),
            size: U32::new(size),
        }
    }

    /// Device memory without a counterpart at the caller.
    pub fn internal(requested: u64, size: u32) -> Self {
        Self::parameter(RegionFlags::INTERNAL, requested, RemoteAddr(0), Rkey(0), size)
    }

    /// What it is for.
    pub const fn flags(&self) -> RegionFlags {
        RegionFlags::from_bits((self.flags_address.get() >> 56) as u8)
    }

    /// Requested address in device memory.
    pub const fn requested(&self) -> u64 {
        self.flags_address.get() & Self::DEVICE_ADDRESS
    }

    /// The window that it names, if it names one.
    pub const fn window(&self) -> Option<WindowNumber> {
        WindowNumber::of_requested(self.requested())
    }

    /// Address in the caller's memory.
    pub const fn address(&self) -> RemoteAddr {
        RemoteAddr(self.address.get())
    }

    /// Key of the caller's memory.
    pub const fn rkey(&self) -> Rkey {
        Rkey(self.rkey.get())
    }

    /// Size in bytes.
    pub const fn size(&self) -> u32 {
        self.size.get()
    }
}

/// One region of an advertise message, 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ARegion {
    address: U64,
    rkey: U32,
    size: U32,
}

impl ARegion {
    /// `size` bytes of device memory at `address` under `rkey`.
    pub const fn new(address: RemoteAddr, rkey: Rkey, size: u32) -> Self {
        Self { address: U64::new(address.0), rkey: U32::new(rkey.0), size: U32::new(size) }
    }

    /// Address in the device's memory.
    pub const fn address(&self) -> RemoteAddr {
        RemoteAddr(self.address.get())
    }

    /// Key of the device's memory.
    pub const fn rkey(&self) -> Rkey {
        Rkey(self.rkey.get())
    }

    /// Size in bytes.
    pub const fn size(&self) -> u32 {
        self.size.get()
    }
}

/// Codes of an ERR. The upstream library supports only 1 and treats all alike.
pub mod reason {
    /// The request makes no sense.
    pub const MALFORMED: u8 = 1;
    /// Not enough device memory in one piece.
    pub const NO_MEMORY: u8 = 2;
    /// More regions than the device takes.
    pub const TOO_MANY_REGIONS: u8 = 3;
    /// No key is left.
    pub const NO_KEY: u8 = 4;
    /// There is no such window, or it is not open in this direction.
    pub const NO_WINDOW: u8 = 5;
    /// The window is smaller than what was asked for.
    pub const WINDOW_TOO_SMALL: u8 = 6;
}

/// A message of the region set-up protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Caller to device: here are my regions, give me yours. Parameters in index order, then internal regions.
    Aar(&'a [AarRegion]),
    /// Device to caller: one region per parameter, in the same order.
    A(&'a [ARegion]),
    /// Device to caller: no regions, and why; see [`reason`].
    Err(u8),
}

impl<'a> Message<'a> {
    /// Reads a message. Its length must match its count exactly.
    pub fn parse(message: &'a [u8]) -> Result<Self, ParseError> {
        let (&[kind, count, _, _], body) = message.split_first_chunk::<HEAD>().ok_or(ParseError::Truncated)?;
        match kind {
            TYPE_AAR => Ok(Self::Aar(regions(body, count)?)),
            TYPE_A => Ok(Self::A(regions(body, count)?)),
            // The byte that counts regions elsewhere is the error code here.
            TYPE_ERR if body.is_empty() => Ok(Self::Err(count)),
            TYPE_ERR => Err(ParseError::MrspCount),
            _ => Err(ParseError::MrspType),
        }
    }

    /// Writes the message and returns its length.
    pub fn write(&self, buf: &mut [u8]) -> Result<usize, BuildError> {
        let (kind, count, body) = match self {
            Self::Aar(r) => (TYPE_AAR, r.len(), r.as_bytes()),
            Self::A(r) => (TYPE_A, r.len(), r.as_bytes()),
            Self::Err(code) => (TYPE_ERR, usize::from(*code), &[][..]),
        };
        let count = u8::try_from(count).map_err(|_| BuildError::TooLong)?;
        let needed = HEAD + body.len();
        if needed > MAX_MESSAGE {
            return Err(BuildError::TooLong);
        }
        let out = buf.get_mut(..needed).ok_or(BuildError::BufferTooShort { needed })?;
        out[..HEAD].copy_from_slice(&[kind, count, 0, 0]);
        out[HEAD..].copy_from_slice(body);
        Ok(needed)
    }
}

fn regions<T: FromBytes + KnownLayout + Immutable + Unaligned>(body: &[u8], count: u8) -> Result<&[T], ParseError> {
    <[T]>::ref_from_bytes(body).ok().filter(|r| r.len() == usize::from(count)).ok_or(ParseError::MrspCount)
}

/// Number of a device function, 1 to 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionCode(u8);

impl FunctionCode {
    /// Increment every byte of every region by one.
    pub const INCREMENT: Self = Self(1);
    /// Do nothing.
    pub const EMPTY: Self = Self(3);
    /// Matrix multiply; see [`crate::kernel::matmul`].
    pub const MATMUL: Self = Self(16);
    /// Tells the owner of a window that it was written or read (docs/reference/transfers.md).
    pub const WINDOW: Self = Self(127);

    /// The code `value`, if it is between 1 and 127.
    pub const fn new(value: u8) -> Option<Self> {
        if value >= 1 && value <= 127 { Some(Self(value)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Immediate of the caller's last WRITE of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallImm {
    /// Run a function.
    Start {
        /// Which one.
        function: FunctionCode,
        /// Three bytes for the function; the first lies lowest, in bits 8 to 15.
        user: [u8; 3],
    },
    /// The caller failed; the call does not happen.
    HostError,
}

impl CallImm {
    const START: u8 = 0x80;

    /// What `imm` means, if anything.
    pub fn parse(imm: u32) -> Result<Self, ParseError> {
        let [c, b, a, low] = imm.to_be_bytes();
        match FunctionCode::new(low & !Self::START) {
            Some(function) if low & Self::START != 0 => Ok(Self::Start { function, user: [a, b, c] }),
            _ if imm == 0 => Ok(Self::HostError),
            _ => Err(ParseError::Immediate),
        }
    }

    /// The immediate value.
    pub const fn to_u32(self) -> u32 {
        match self {
            Self::Start { function, user: [a, b, c] } => u32::from_be_bytes([c, b, a, Self::START | function.0]),
            Self::HostError => 0,
        }
    }
}

/// How a call ended: the 24-bit code in the immediate of the device's last WRITE.
///
/// Upstream clients keep 8 of the 24 bits, so devices stay within a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReturnCode(u32);

impl ReturnCode {
    /// Done.
    pub const SUCCESS: Self = Self(0x00);
    /// No kernel is free or present for this function.
    pub const SOCKET_UNAVAILABLE: Self = Self(0x01);
    /// The kernel did not end in time.
    pub const KERNEL_TIMEOUT: Self = Self(0x02);

    /// The device has no such function.
    pub const UNKNOWN_FUNCTION: Self = Self(0x03);
    /// The deadline of the set-up passed (docs/reference/calls.md).
    pub const DEADLINE: Self = Self(0x04);
    /// The caller cancelled the call (docs/reference/calls.md).
    pub const CANCELLED: Self = Self(0x05);

    /// The low 24 bits of `code`. 0x06 to 0x0f are reserved, 0x10 to 0x7f are the kernel's.
    pub const fn new(code: u32) -> Self {
        Self(code & 0xff_ffff)
    }

    /// The code.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The code in `imm`. Its low byte is ignored, as upstream clients do.
    pub const fn from_imm(imm: u32) -> Self {
        Self(imm >> 8)
    }

    /// The immediate value.
    pub const fn to_imm(self) -> u32 {
        self.0 << 8
    }
}
