// SPDX-License-Identifier: Apache-2.0
//! Matrix multiply, function 16: C = A x B.
//!
//! Regions of a call: 0 this argument block (input), 1 A (m x k, row major), 2 B (k x n), 3 C (m x n, output).

use crate::ParseError;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, little_endian::U32};

/// "NAMM", read as a little-endian number.
const MAGIC: u32 = 0x4d4d_414e;

/// Element type of all three matrices; 4 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// Signed 32-bit integer; sums wrap.
    Int32,
    /// IEEE 754 binary32.
    Float32,
}

impl Dtype {
    /// Bytes of an element.
    pub const fn size(self) -> usize {
        4
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Bytes {
    magic: U32,
    dtype: U32,
    m: U32,
    n: U32,
    k: U32,
    flags: U32,
    reserved: [u8; 40],
}

/// The argument block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args {
    /// Element type.
    pub dtype: Dtype,
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
}

impl Args {
    /// Length in bytes.
    pub const LEN: usize = size_of::<Bytes>();

    /// Reads a block. Flags and reserved bytes must be zero.
    pub fn parse(block: &[u8; Self::LEN]) -> Result<Self, ParseError> {
        let b = Bytes::ref_from_bytes(block).map_err(|_| ParseError::Truncated)?;
        if b.magic != MAGIC {
            return Err(ParseError::ArgsMagic);
        }
        let dtype = match b.dtype.get() {
            0 => Dtype::Int32,
            1 => Dtype::Float32,
            _ => return Err(ParseError::ArgsType),
        };
        if b.flags != 0 || b.reserved != [0; 40] {
            return Err(ParseError::ArgsReserved);
        }
        Ok(Self { dtype, m: b.m.get(), n: b.n.get(), k: b.k.get() })
    }

    /// The block.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let bytes = Bytes {
            magic: U32::new(MAGIC),
            dtype: U32::new(match self.dtype {
                Dtype::Int32 => 0,
                Dtype::Float32 => 1,
            }),
            m: U32::new(self.m),
            n: U32::new(self.n),
            k: U32::new(self.k),
            flags: U32::ZERO,
            reserved: [0; 40],
        };
        zerocopy::transmute!(bytes)
    }
}
