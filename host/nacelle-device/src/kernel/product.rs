// SPDX-License-Identifier: Apache-2.0
//! A blocked matrix product whose sums run in the order of k.
//!
//! Blocks of B (256 x 1024 elements, for the last level of cache) and of A (96 x 256, for the second) are copied into panels as
//! wide as a tile of C. A tile is summed up in registers; between two blocks of k it waits in C itself. So each element of C is
//! the sum over ascending k from +0, each product and each sum rounded, whatever the shape, and whatever the processor.

#![allow(unsafe_code)]

use super::number::Number;
use super::{Cancellation, Failure};

/// Sides of a block: rows of A, columns of B, and what they have in common.
const BLOCK_M: usize = 96;
const BLOCK_N: usize = 1024;
const BLOCK_K: usize = 256;

/// C = A x B, for A of m x k and B of k x n elements, no side of which is 0.
pub(super) fn product<T: Number>(
    sides: [usize; 3],
    a: &[u8],
    b: &[u8],
    c: &mut [u8],
    cancellation: &Cancellation,
) -> Result<(), Failure> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { with_avx2::<T>(sides, a, b, c, cancellation) };
    }
    blocked::<T, 4, 8>(sides, a, b, c, cancellation)
}

/// Tiles of 12 registers. Nothing is fused: AVX2 alone has no fused multiply-add.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<T: Number>(
    sides: [usize; 3],
    a: &[u8],
    b: &[u8],
    c: &mut [u8],
    cancellation: &Cancellation,
) -> Result<(), Failure> {
    blocked::<T, 6, 16>(sides, a, b, c, cancellation)
}

/// The product by tiles of R x N elements.
#[inline(always)]
fn blocked<T: Number, const R: usize, const N: usize>(
    [m, n, k]: [usize; 3],
    a: &[u8],
    b: &[u8],
    c: &mut [u8],
    cancellation: &Cancellation,
) -> Result<(), Failure> {
    let depth = BLOCK_K.min(k);
    let mut a_panels = vec![T::default(); depth * BLOCK_M.min(m).next_multiple_of(R)];
    let mut b_panels = vec![T::default(); depth * BLOCK_N.min(n).next_multiple_of(N)];
    for column in (0..n).step_by(BLOCK_N) {
        let columns = BLOCK_N.min(n - column);
        for inner in (0..k).step_by(BLOCK_K) {
            let depth = BLOCK_K.min(k - inner);
            for (panel, at) in b_panels.chunks_exact_mut(depth * N).zip((0..columns).step_by(N)) {
                pack_b::<T, N>(b, n, (inner, column + at), N.min(columns - at), panel);
            }
            for row in (0..m).step_by(BLOCK_M) {
                cancellation.check()?;
                let rows = BLOCK_M.min(m - row);
                for (panel, at) in a_panels.chunks_exact_mut(depth * R).zip((0..rows).step_by(R)) {
                    pack_a::<T, R>(a, k, (row + at, inner), R.min(rows - at), panel);
                }
                for (b_panel, right) in b_panels.chunks_exact(depth * N).zip((0..columns).step_by(N)) {
                    for (a_panel, down) in a_panels.chunks_exact(depth * R).zip((0..rows).step_by(R)) {
                        let corner = ((row + down) * n + column + right) * T::SIZE;
                        let shape = (R.min(rows - down), N.min(columns - right));
                        let ends = (inner == 0, inner + depth == k);
                        tile::<T, R, N>(a_panel, b_panel, &mut c[corner..], n * T::SIZE, shape, ends);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Copies `rows` rows of A from (row, inner) on into a panel, in which the R elements of a column are together.
#[inline(always)]
fn pack_a<T: Number, const R: usize>(a: &[u8], k: usize, (row, inner): (usize, usize), rows: usize, panel: &mut [T]) {
    let depth = panel.len() / R;
    for index in 0..R {
        let column = panel[index..].iter_mut().step_by(R);
        if index < rows {
            let from = &a[((row + index) * k + inner) * T::SIZE..][..depth * T::SIZE];
            column.zip(from.chunks_exact(T::SIZE)).for_each(|(element, bytes)| *element = T::load(bytes));
        } else {
            column.for_each(|element| *element = T::default());
        }
    }
}

/// Copies `columns` columns of B from (inner, column) on into a panel, in which the N elements of a row are together.
#[inline(always)]
fn pack_b<T: Number, const N: usize>(
    b: &[u8],
    n: usize,
    (inner, column): (usize, usize),
    columns: usize,
    panel: &mut [T],
) {
    for (index, row) in panel.chunks_exact_mut(N).enumerate() {
        let from = &b[((inner + index) * n + column) * T::SIZE..][..columns * T::SIZE];
        let (there, missing) = row.split_at_mut(columns);
        there.iter_mut().zip(from.chunks_exact(T::SIZE)).for_each(|(element, bytes)| *element = T::load(bytes));
        missing.fill(T::default());
    }
}

/// Adds the products of two panels to the tile that begins `c`: `rows` x `columns` elements of it, with `stride` bytes from
/// one row to the next. The first time the tile begins at 0; after the last, each NaN is the one that results have.
#[inline(always)]
fn tile<T: Number, const R: usize, const N: usize>(
    a: &[T],
    b: &[T],
    c: &mut [u8],
    stride: usize,
    (rows, columns): (usize, usize),
    (first, last): (bool, bool),
) {
    let mut sums = [[T::default(); N]; R];
    if !first {
        for (row, sums) in sums.iter_mut().enumerate().take(rows) {
            let there = c[row * stride..][..columns * T::SIZE].chunks_exact(T::SIZE);
            sums.iter_mut().zip(there).for_each(|(sum, bytes)| *sum = T::load(bytes));
        }
    }
    let (a, b) = (a.as_chunks::<R>().0, b.as_chunks::<N>().0);
    for (a, b) in a.iter().zip(b) {
        for row in 0..R {
            for column in 0..N {
                sums[row][column] = sums[row][column].plus(a[row].times(b[column]));
            }
        }
    }
    for (row, sums) in sums.iter().enumerate().take(rows) {
        let there = c[row * stride..][..columns * T::SIZE].chunks_exact_mut(T::SIZE);
        there.zip(sums).for_each(|(bytes, sum)| if last { sum.canonical() } else { *sum }.store(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The three loops of the definition.
    fn definition<T: Number>([m, n, k]: [usize; 3], a: &[u8], b: &[u8]) -> Vec<u8> {
        let at = |bytes: &[u8], index: usize| T::load(&bytes[index * T::SIZE..][..T::SIZE]);
        let mut c = vec![0; m * n * T::SIZE];
        for (index, bytes) in c.chunks_exact_mut(T::SIZE).enumerate() {
            let (row, column) = (index / n, index % n);
            let sum = (0..k).fold(T::default(), |sum, i| sum.plus(at(a, row * k + i).times(at(b, i * n + column))));
            sum.canonical().store(bytes);
        }
        c
    }

    /// Bytes of `count` floats, with every special value among them.
    fn floats(count: usize, seed: u64) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut float = || match random.u32(..100) {
            0 => f32::INFINITY,
            1 => -0.0,
            2 => 1e-40,
            3 => f32::from_bits(0xffc1_2345),
            _ => (random.f32() - 0.5) * 2f32.powi(random.i32(-30..30)),
        };
        (0..count).flat_map(|_| float().to_le_bytes()).collect()
    }

    fn agrees<T: Number>(sides: [usize; 3], a: &[u8], b: &[u8]) -> Result<(), TestCaseError> {
        let ([m, n, _], wanted) = (sides, definition::<T>(sides, a, b));
        let cancellation = Cancellation::default();
        for (tile, multiply) in
            [("of this processor", product::<T> as fn(_, &_, &_, &mut _, &_) -> _), ("4 x 8", blocked::<T, 4, 8>)]
        {
            let mut c = vec![0xee; m * n * T::SIZE];
            multiply(sides, a, b, &mut c, &cancellation).unwrap();
            prop_assert!(c == wanted, "{sides:?}, tiles {tile}");
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn every_element_is_the_sum_in_the_order_of_k(m in 1usize..40, n in 1usize..70, k in 1usize..40, seed: u64) {
            let (a, b) = (floats(m * k, seed), floats(k * n, seed ^ 1));
            agrees::<f32>([m, n, k], &a, &b)?;
            agrees::<i32>([m, n, k], &a, &b)?;
        }
    }

    /// Around the sides of blocks, and behind the first block of each kind.
    #[test]
    fn blocks_join_without_a_trace() {
        for sides in [[1, 1, 513], [97, 3, 257], [2, 1041, 256], [95, 17, 255], [193, 5, 1], [13, 1025, 300]] {
            let [m, n, k] = sides;
            let (a, b) = (floats(m * k, 7), floats(k * n, 8));
            agrees::<f32>(sides, &a, &b).unwrap();
            agrees::<i32>(sides, &a, &b).unwrap();
        }
    }

    #[test]
    fn a_product_that_nobody_needs_ends() {
        let cancellation = Cancellation::default();
        cancellation.cancel();
        let outcome = product::<i32>([1, 1, 1], &[1; 4], &[1; 4], &mut [0; 4], &cancellation);
        assert_eq!(outcome, Err(Failure::CANCELLED));
    }
}
