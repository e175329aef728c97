// SPDX-License-Identifier: Apache-2.0
//! Elements of vectors and matrices, as they lie in memory: little-endian, at any address.

/// A type of elements. Integers wrap; floats are rounded after each operation.
pub(super) trait Number: Copy + Default + PartialOrd {
    /// Bytes of an element.
    const SIZE: usize;

    /// The element that these bytes are; there are `SIZE` of them.
    fn load(bytes: &[u8]) -> Self;
    /// Fills the `SIZE` bytes of an element.
    fn store(self, bytes: &mut [u8]);
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
    /// `self · other`.
    fn times(self, other: Self) -> Self;
    /// The smaller one. Of floats the minimum of IEEE 754-2019: a NaN if one is, and -0 is smaller than +0.
    fn smaller(self, other: Self) -> Self;
    /// The larger one, in the same way.
    fn larger(self, other: Self) -> Self;
    /// Whether it is no number.
    fn is_no_number(self) -> bool;
    /// Itself, or the one NaN that results have.
    fn canonical(self) -> Self;
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Number for $integer {
            const SIZE: usize = size_of::<Self>();

            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("the bytes of one element"))
            }
            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
            #[inline(always)]
            fn is_no_number(self) -> bool {
                false
            }
            #[inline(always)]
            fn canonical(self) -> Self {
                self
            }
        }
    )*};
}

macro_rules! floats {
    ($($float:ty: $nan:literal;)*) => {$(
        impl Number for $float {
            const SIZE: usize = size_of::<Self>();

            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("the bytes of one element"))
            }
            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                // Equal ones differ only if they are zeros: a sign of either is that of the smaller one.
                let equal = Self::from_bits(self.to_bits() | other.to_bits());
                let number = if self < other { self } else if other < self { other } else { equal };
                if self.is_nan() || other.is_nan() { Self::NAN } else { number }
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                let equal = Self::from_bits(self.to_bits() & other.to_bits());
                let number = if self > other { self } else if other > self { other } else { equal };
                if self.is_nan() || other.is_nan() { Self::NAN } else { number }
            }
            #[inline(always)]
            fn is_no_number(self) -> bool {
                self.is_nan()
            }
            #[inline(always)]
            fn canonical(self) -> Self {
                if self.is_nan() { Self::from_bits($nan) } else { self }
            }
        }
    )*};
}

integers! { i32 i64 }
floats! {
    f32: 0x7fc0_0000;
    f64: 0x7ff8_0000_0000_0000;
}
