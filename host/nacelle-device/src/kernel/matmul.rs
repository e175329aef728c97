// SPDX-License-Identifier: Apache-2.0
//! Matrix multiply, as the RTL's kernel has it: the same checks, the same results, bit for bit.

use nacelle_wire::kernel::matmul::{Args, Dtype};

use super::product::product;
use super::{Call, Failure};

/// C = A x B. The regions may be larger than the matrices.
pub(super) fn run(call: &mut Call<'_>) -> Result<(), Failure> {
    let Call { parameters, cancellation, .. } = call;
    let [arguments, a, b, c] = &mut parameters[..] else { return Err(Failure::BAD_ARGUMENTS) };
    let arguments = arguments.first_chunk().ok_or(Failure::REGION_TOO_SMALL)?;
    let Args { dtype, m, n, k } = Args::parse(arguments).map_err(|_| Failure::BAD_ARGUMENTS)?;
    let [m, n, k] = [m, n, k].map(|side| side as usize);
    if [m, n, k].contains(&0) {
        return Err(Failure::BAD_ARGUMENTS);
    }
    let bytes = |rows: usize, columns: usize| {
        rows.checked_mul(columns).and_then(|count| count.checked_mul(dtype.size())).ok_or(Failure::REGION_TOO_SMALL)
    };
    let a = a.get(..bytes(m, k)?).ok_or(Failure::REGION_TOO_SMALL)?;
    let b = b.get(..bytes(k, n)?).ok_or(Failure::REGION_TOO_SMALL)?;
    let c = c.get_mut(..bytes(m, n)?).ok_or(Failure::REGION_TOO_SMALL)?;
    match dtype {
        Dtype::Int32 => product::<i32>([m, n, k], a, b, c, cancellation),
        Dtype::Float32 => product::<f32>([m, n, k], a, b, c, cancellation),
    }
}
