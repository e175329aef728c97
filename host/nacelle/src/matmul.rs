// SPDX-License-Identifier: Apache-2.0
//! Matrix multiply on a device.

use nacelle_wire::kernel::matmul::{Args, Dtype};
use nacelle_wire::mrsp::FunctionCode;
use ndarray::{Array2, ArrayView2};

use crate::{Call, Device, Error, Region, Report};

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for f32 {}
}

/// A type of elements that devices multiply.
pub trait Element: sealed::Sealed + Copy {
    /// Its name on the wire.
    const DTYPE: Dtype;
    /// Its bytes in device memory.
    fn to_bytes(self) -> [u8; 4];
    /// Reads it from device memory.
    fn from_bytes(bytes: [u8; 4]) -> Self;
}

impl Element for i32 {
    const DTYPE: Dtype = Dtype::Int32;
    fn to_bytes(self) -> [u8; 4] {
        self.to_le_bytes()
    }
    fn from_bytes(bytes: [u8; 4]) -> Self {
        Self::from_le_bytes(bytes)
    }
}

impl Element for f32 {
    const DTYPE: Dtype = Dtype::Float32;
    fn to_bytes(self) -> [u8; 4] {
        self.to_le_bytes()
    }
    fn from_bytes(bytes: [u8; 4]) -> Self {
        Self::from_le_bytes(bytes)
    }
}

/// Row after row, whatever the order in memory is here.
fn to_region<T: Element>(matrix: ArrayView2<'_, T>) -> Region {
    let bytes: Vec<u8> = matrix.iter().flat_map(|element| element.to_bytes()).collect();
    Region::input(bytes)
}

/// Multiplies two matrices on the device: `a` (m x k) by `b` (k x n). Sums of integers wrap; those of floats are made in the
/// device's order, so the last bits may differ from another's.
///
/// # Errors
/// [`Error::InvalidArgument`] if the shapes do not fit each other or a side is empty, else those of [`crate::Call`].
pub fn matmul<T: Element>(
    device: &Device,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
) -> Result<(Array2<T>, Report), Error> {
    matmul_with(device, a, b, Call::wait)
}

/// As [`matmul`], with a wait of the program's own for the call, which may show how far it has come.
///
/// # Errors
/// As [`matmul`], and those of `wait`.
pub fn matmul_with<T: Element>(
    device: &Device,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    wait: impl FnOnce(&mut Call) -> Result<(), Error>,
) -> Result<(Array2<T>, Report), Error> {
    let ((m, k), (rows, n)) = (a.dim(), b.dim());
    if k != rows {
        return Err(Error::invalid(format!("cannot multiply {m}x{k} by {rows}x{n}: {k} columns meet {rows} rows")));
    }
    let side = |length: usize| u32::try_from(length).ok().filter(|length| *length > 0);
    let (Some(sides), Some(size)) = ([m, n, k].map(side).into_iter().collect::<Option<Vec<u32>>>(), m.checked_mul(n))
    else {
        return Err(Error::invalid(format!("cannot multiply {m}x{k} by {rows}x{n} on a device")));
    };
    let args = Args { dtype: T::DTYPE, m: sides[0], n: sides[1], k: sides[2] };
    let size = size.checked_mul(T::DTYPE.size()).ok_or_else(|| Error::invalid("the product is too large"))?;
    let regions = vec![Region::input(args.to_bytes().to_vec()), to_region(a), to_region(b), Region::output(size)];
    let mut call = device.create(FunctionCode::MATMUL, regions)?;
    call.invoke()?;
    wait(&mut call)?;
    let report = call.report().clone();
    let product = call.close()?.pop().and_then(|memory| memory.into_vec().ok());
    let bytes = product.unwrap_or_default();
    let elements = bytes.chunks_exact(4).map(|chunk| T::from_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
    let product = Array2::from_shape_vec((m, n), elements.collect())
        .map_err(|error| Error::invalid(format!("the product has another shape: {error}")))?;
    Ok((product, report))
}
