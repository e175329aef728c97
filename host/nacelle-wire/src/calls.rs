// SPDX-License-Identifier: Apache-2.0
//! Calls between Nacelle endpoints (docs/reference/calls.md): the immediates of a connection with contexts, and the long
//! messages of region set-up.
//!
//! ```
//! use nacelle_wire::calls::{Context, LongRegion, Request, SetUp};
//! use nacelle_wire::mrsp::RegionFlags;
//! use nacelle_wire::{RemoteAddr, Rkey};
//!
//! let regions = [LongRegion::parameter(RegionFlags::INPUT, RemoteAddr(0x1000), Rkey(7), 5 << 30)];
//! let set_up = SetUp { deadline_ms: 100, steps: &[], regions: &regions };
//! let mut buf = [0; 1024];
//! let len = set_up.write(&mut buf)?;
//! assert_eq!(SetUp::parse(&buf[..len])?, set_up);
//! assert_eq!(Request::Message(Context(3)).to_imm(), 0x0300_0001);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::mrsp::{FunctionCode, RegionFlags, ReturnCode, WindowNumber};
use crate::{BuildError, ParseError, RemoteAddr, Rkey};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    network_endian::{U32, U64},
};

/// Longest set-up message between endpoints that have agreed to long set-up, in bytes.
pub const MAX_MESSAGE: usize = 1024;
/// Most steps of a chain.
pub const MAX_STEPS: usize = 4;
/// Most regions that one long set-up without steps can have, internal ones included.
pub const MAX_REGIONS: usize = (MAX_MESSAGE - SET_UP_HEAD) / size_of::<LongRegion>();
/// Most bytes that one WRITE carries (IBTA 9.7.7): longer regions take several.
pub const MAX_WRITE: usize = 1 << 31;

const SET_UP_HEAD: usize = 8;
const ANSWER_HEAD: usize = 4;
const TYPE_SET_UP: u8 = 0x11;
const TYPE_ANSWER: u8 = 0x12;

/// Names a context of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Context(pub u8);

/// The context that an immediate names.
const fn context(imm: u32) -> Context {
    Context((imm >> 24) as u8)
}

/// What a caller sends: by the immediate of a WRITE a start, by that of a SEND a message or cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// WRITE: run a function, or the chain.
    Start {
        /// On which context.
        context: Context,
        /// The function; none for the chain of the set-up.
        function: Option<FunctionCode>,
        /// Two bytes for the function; the first lies lowest, in bits 8 to 15.
        user: [u8; 2],
    },
    /// WRITE: the caller failed; the call does not happen.
    HostError(Context),
    /// SEND: a message of region set-up.
    Message(Context),
    /// SEND: end the call.
    Cancel(Context),
}

impl Request {
    const START: u8 = 0x80;
    const FAILED: u8 = 0;
    const MESSAGE: u8 = 1;
    const CANCEL: u8 = 2;

    /// What the immediate of a WRITE means, if anything. Bits without a meaning are not checked.
    pub fn of_write(imm: u32) -> Result<Self, ParseError> {
        let [_, b, a, low] = imm.to_be_bytes();
        match low & !Self::START {
            function if low & Self::START != 0 => {
                Ok(Self::Start { context: context(imm), function: FunctionCode::new(function), user: [a, b] })
            }
            Self::FAILED => Ok(Self::HostError(context(imm))),
            _ => Err(ParseError::Immediate),
        }
    }

    /// What the immediate of a SEND means, if anything. A SEND without one is a message of context 0. Bits without a meaning
    /// are not checked.
    pub const fn of_send(imm: Option<u32>) -> Result<Self, ParseError> {
        let Some(imm) = imm else { return Ok(Self::Message(Context(0))) };
        match imm as u8 {
            Self::MESSAGE => Ok(Self::Message(context(imm))),
            Self::CANCEL => Ok(Self::Cancel(context(imm))),
            _ => Err(ParseError::Immediate),
        }
    }

    /// The context that the immediate of a SEND or WRITE names, whatever else it says.
    pub const fn context_of(imm: u32) -> Context {
        context(imm)
    }

    /// The immediate.
    pub fn to_imm(self) -> u32 {
        let (Context(context), [b, a, low]) = match self {
            Self::Start { context, function, user: [a, b] } => {
                (context, [b, a, Self::START | function.map_or(0, FunctionCode::get)])
            }
            Self::HostError(context) => (context, [0, 0, Self::FAILED]),
            Self::Message(context) => (context, [0, 0, Self::MESSAGE]),
            Self::Cancel(context) => (context, [0, 0, Self::CANCEL]),
        };
        u32::from_be_bytes([context, b, a, low])
    }
}

/// The immediate of a device's answer to a message, by SEND.
pub const fn answer_imm(Context(context): Context) -> u32 {
    u32::from_be_bytes([context, 0, 0, 0])
}

/// The immediate of the end of a call, by WRITE. Of the code the low byte is sent.
pub const fn result_imm(Context(context): Context, code: ReturnCode) -> u32 {
    u32::from_be_bytes([context, 0, code.get() as u8, 0])
}

/// The context and result in the immediate of the end of a call. As without contexts the low byte is ignored.
pub const fn parse_result(imm: u32) -> (Context, ReturnCode) {
    (context(imm), ReturnCode::new(imm >> 8 & 0xff))
}

/// One region of a long set-up, 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LongRegion {
    /// Flags in the top byte, the window's name or 0 in the other seven.
    flags_requested: U64,
    address: U64,
    size: U64,
    rkey: U32,
    reserved: [u8; 4],
}

impl LongRegion {
    /// A parameter: `size` bytes at the caller's `address` under `rkey`.
    pub const fn parameter(flags: RegionFlags, address: RemoteAddr, rkey: Rkey, size: u64) -> Self {
        Self {
            flags_requested: U64::new((flags.bits() as u64) << 56),
            address: U64::new(address.0),
            size: U64::new(size),
            rkey: U32::new(rkey.0),
            reserved: [0; 4],
        }
    }

    /// `size` bytes of a window, without a counterpart at the caller.
    pub const fn of_window(flags: RegionFlags, window: WindowNumber, size: u64) -> Self {
        let flags_requested = U64::new((flags.bits() as u64) << 56 | window.to_requested());
        Self { flags_requested, ..Self::parameter(flags, RemoteAddr(0), Rkey(0), size) }
    }

    /// Device memory without a counterpart at the caller.
    pub const fn internal(size: u64) -> Self {
        Self::parameter(RegionFlags::INTERNAL, RemoteAddr(0), Rkey(0), size)
    }

    /// What it is for.
    pub const fn flags(&self) -> RegionFlags {
        RegionFlags::from_bits((self.flags_requested.get() >> 56) as u8)
    }

    /// The window that it names, if it names one.
    pub const fn window(&self) -> Option<WindowNumber> {
        WindowNumber::of_requested(self.flags_requested.get() & ((1 << 56) - 1))
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
    pub const fn size(&self) -> u64 {
        self.size.get()
    }
}

/// One step of a chain, 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Step {
    function: u8,
    first: u8,
    count: u8,
    reserved: u8,
    user: U32,
}

impl Step {
    /// Runs `function` on `count` regions from `first` on. Of `user` the low 24 bits are sent.
    pub const fn new(function: FunctionCode, first: u8, count: u8, user: u32) -> Self {
        Self { function: function.get(), first, count, reserved: 0, user: U32::new(user & 0xff_ffff) }
    }

    /// The function, if its number is one.
    pub const fn function(&self) -> Option<FunctionCode> {
        FunctionCode::new(self.function)
    }

    /// The regions, by their numbers in the set-up.
    pub const fn regions(&self) -> core::ops::Range<usize> {
        self.first as usize..self.first as usize + self.count as usize
    }

    /// The kernel's `user` argument.
    pub const fn user(&self) -> u32 {
        self.user.get() & 0xff_ffff
    }

    /// Whether it names a function, and regions that a set-up of `count` has.
    pub const fn is_valid(&self, count: usize) -> bool {
        self.function().is_some() && self.count != 0 && self.regions().end <= count
    }
}

/// Type 0x11, caller to device: a region set-up with 64-bit sizes, a deadline and a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetUp<'a> {
    /// Milliseconds that a call may take in the device; 0 is without limit.
    pub deadline_ms: u32,
    /// The chain: at most 4.
    pub steps: &'a [Step],
    /// Parameters in index order, then internal regions.
    pub regions: &'a [LongRegion],
}

impl<'a> SetUp<'a> {
    /// Whether a message is of this type.
    pub fn is_one(message: &[u8]) -> bool {
        message.first() == Some(&TYPE_SET_UP)
    }

    /// Reads a message. Its length must match its counts exactly, and each step must name a function and regions that the
    /// message has.
    pub fn parse(message: &'a [u8]) -> Result<Self, ParseError> {
        let (head, body) = message.split_first_chunk::<SET_UP_HEAD>().ok_or(ParseError::Truncated)?;
        let &[kind, count, steps, _, a, b, c, d] = head;
        if kind != TYPE_SET_UP {
            return Err(ParseError::MrspType);
        }
        let counts = usize::from(steps) <= MAX_STEPS && message.len() <= MAX_MESSAGE;
        let (steps, regions) = <[Step]>::ref_from_prefix_with_elems(body, usize::from(steps))
            .ok()
            .and_then(|(steps, regions)| Some((steps, <[LongRegion]>::ref_from_bytes(regions).ok()?)))
            .filter(|(_, regions)| counts && regions.len() == usize::from(count))
            .ok_or(ParseError::MrspCount)?;
        if !steps.iter().all(|step| step.is_valid(regions.len())) {
            return Err(ParseError::MrspStep);
        }
        Ok(Self { deadline_ms: u32::from_be_bytes([a, b, c, d]), steps, regions })
    }

    /// Writes the message and returns its length.
    pub fn write(&self, buf: &mut [u8]) -> Result<usize, BuildError> {
        let counts = (u8::try_from(self.regions.len()), u8::try_from(self.steps.len()));
        let (Ok(count), Ok(steps)) = counts else { return Err(BuildError::TooLong) };
        if self.steps.len() > MAX_STEPS {
            return Err(BuildError::TooLong);
        }
        let [a, b, c, d] = self.deadline_ms.to_be_bytes();
        let head = [TYPE_SET_UP, count, steps, 0, a, b, c, d];
        write_message(buf, &[&head, self.steps.as_bytes(), self.regions.as_bytes()])
    }
}

/// One region of the answer to a long set-up, 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LongGiven {
    address: U64,
    size: U64,
    rkey: U32,
    reserved: [u8; 4],
}

impl LongGiven {
    /// `size` bytes of device memory at `address` under `rkey`.
    pub const fn new(address: RemoteAddr, rkey: Rkey, size: u64) -> Self {
        Self { address: U64::new(address.0), size: U64::new(size), rkey: U32::new(rkey.0), reserved: [0; 4] }
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
    pub const fn size(&self) -> u64 {
        self.size.get()
    }
}

/// Type 0x12, device to caller: the regions of a long set-up, one for each parameter, in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetUpAnswer<'a>(pub &'a [LongGiven]);

impl<'a> SetUpAnswer<'a> {
    /// Reads a message. Its length must match its count exactly.
    pub fn parse(message: &'a [u8]) -> Result<Self, ParseError> {
        let (&[kind, count, _, _], body) = message.split_first_chunk::<ANSWER_HEAD>().ok_or(ParseError::Truncated)?;
        if kind != TYPE_ANSWER {
            return Err(ParseError::MrspType);
        }
        let regions = <[LongGiven]>::ref_from_bytes(body).ok().filter(|given| given.len() == usize::from(count));
        regions.map(Self).ok_or(ParseError::MrspCount)
    }

    /// Writes the message and returns its length.
    pub fn write(&self, buf: &mut [u8]) -> Result<usize, BuildError> {
        let count = u8::try_from(self.0.len()).map_err(|_| BuildError::TooLong)?;
        write_message(buf, &[&[TYPE_ANSWER, count, 0, 0], self.0.as_bytes()])
    }
}

/// Writes the parts of a message one behind the other.
fn write_message(buf: &mut [u8], parts: &[&[u8]]) -> Result<usize, BuildError> {
    let needed = parts.iter().map(|part| part.len()).sum();
    if needed > MAX_MESSAGE {
        return Err(BuildError::TooLong);
    }
    let mut out = buf.get_mut(..needed).ok_or(BuildError::BufferTooShort { needed })?;
    for part in parts {
        let (place, rest) = out.split_at_mut(part.len());
        place.copy_from_slice(part);
        out = rest;
    }
    Ok(needed)
}
