// SPDX-License-Identifier: Apache-2.0
//! Vector operations and reductions, functions 64 to 68.
//!
//! Region 0 of a call is this argument block (input); the others are inputs in the order of the formula, and the result.

use crate::ParseError;
use crate::mrsp::FunctionCode;
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{U32, U64},
};

/// "NAVE", read as a little-endian number.
const MAGIC: u32 = 0x4556_414e;

/// The functions of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// z\[i\] from x\[i\] and y\[i\]: [`Binary`]. Regions: arguments, x, y, z.
    Binary,
    /// z from x: [`Unary`]. Regions: arguments, x, z.
    Unary,
    /// z\[i\] = scalar. Regions: arguments, z.
    Fill,
    /// One result from x: [`Reduction`]. Regions: arguments, x, result.
    Reduce,
    /// The sum of x\[i\] · y\[i\]. Regions: arguments, x, y, result.
    Dot,
}

impl Vector {
    /// Every function, in the order of their codes.
    pub const ALL: [Self; 5] = [Self::Binary, Self::Unary, Self::Fill, Self::Reduce, Self::Dot];

    /// The code that selects it: 64 to 68.
    pub const fn code(self) -> FunctionCode {
        FunctionCode::new(64 + self as u8).expect("64 to 68 are codes")
    }
}

/// Type of all elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// Signed 32-bit integer; results wrap.
    Int32,
    /// IEEE 754 binary32.
    Float32,
    /// Signed 64-bit integer; results wrap.
    Int64,
    /// IEEE 754 binary64.
    Float64,
}

impl Dtype {
    /// Every type, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Int32, Self::Float32, Self::Int64, Self::Float64];

    /// Bytes of an element.
    pub const fn size(self) -> usize {
        match self {
            Self::Int32 | Self::Float32 => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }
}

/// Operation of [`Vector::Binary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// x + y.
    Add,
    /// x - y.
    Sub,
    /// x · y.
    Mul,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// scalar · x + y.
    Axpy,
}

/// Operation of [`Vector::Unary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// scalar · x\[i\].
    Scale,
    /// x\[0\] + ... + x\[i\].
    PrefixSum,
}

/// Operation of [`Vector::Reduce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum, an element.
    Sum,
    /// The smallest element.
    Min,
    /// The largest element.
    Max,
    /// The index of the first smallest element: 64 bits.
    ArgMin,
    /// The index of the first largest element: 64 bits.
    ArgMax,
}

macro_rules! operations {
    ($($kind:ident: $($operation:ident)*;)*) => {$(
        impl $kind {
            /// Every operation, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$operation),*];

            /// Its number in the argument block.
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// The operation with this number.
            pub fn from_number(number: u32) -> Result<Self, ParseError> {
                usize::try_from(number).ok().and_then(|index| Self::ALL.get(index)).copied().ok_or(ParseError::ArgsOperation)
            }
        }
    )*};
}

operations! {
    Binary: Add Sub Mul Min Max Axpy;
    Unary: Scale PrefixSum;
    Reduction: Sum Min Max ArgMin ArgMax;
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Bytes {
    magic: U32,
    dtype: U32,
    operation: U32,
    flags: U32,
    count: U64,
    scalar: [u8; 8],
    reserved: [u8; 32],
}

/// The argument block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args {
    /// Type of all elements.
    pub dtype: Dtype,
    /// Number of the operation; 0 for functions that have only one.
    pub operation: u32,
    /// Elements.
    pub count: u64,
    /// The scalar, in the first bytes as many as an element has; 0 behind, and where there is none.
    pub scalar: [u8; 8],
}

impl Args {
    /// Length in bytes.
    pub const LEN: usize = size_of::<Bytes>();

    /// Reads a block. Flags, reserved bytes and those behind the scalar must be zero.
    pub fn parse(block: &[u8; Self::LEN]) -> Result<Self, ParseError> {
        let b = Bytes::ref_from_bytes(block).map_err(|_| ParseError::Truncated)?;
        if b.magic != MAGIC {
            return Err(ParseError::ArgsMagic);
        }
        let dtype = usize::try_from(b.dtype.get()).ok().and_then(|index| Dtype::ALL.get(index)).copied();
        let dtype = dtype.ok_or(ParseError::ArgsType)?;
        let unused = &b.scalar[dtype.size()..];
        if b.flags != 0 || b.reserved != [0; 32] || unused.iter().any(|byte| *byte != 0) {
            return Err(ParseError::ArgsReserved);
        }
        Ok(Self { dtype, operation: b.operation.get(), count: b.count.get(), scalar: b.scalar })
    }

    /// The block.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let bytes = Bytes {
            magic: U32::new(MAGIC),
            dtype: U32::new(self.dtype as u32),
            operation: U32::new(self.operation),
            flags: U32::ZERO,
            count: U64::new(self.count),
            scalar: self.scalar,
            reserved: [0; 32],
        };
        zerocopy::transmute!(bytes)
    }
}
