// SPDX-License-Identifier: Apache-2.0
//! The kernels that every software device has.

use nacelle_wire::kernel::vector::Vector;
use nacelle_wire::mrsp::FunctionCode;

use super::{Kernel, KernelError, KernelSet, increment, matmul, vector};

/// What the kernels of the RTL say of themselves; those here are the same.
const INCREMENT: &str = include_str!("../../../../rtl/compute/kernels/kernel_increment.toml");
const MATMUL: &str = include_str!("../../../../rtl/compute/kernels/kernel_matmul.toml");
/// This one is of the software device alone.
const VECTOR: &str = include_str!("vector.toml");

/// A call on regions that are not larger is over sooner than a thread can be woken for it.
const QUICK: usize = 16 << 10;

impl KernelSet {
    /// `increment`, `matmul` and `vector` (docs/reference/kernels.md).
    #[must_use]
    pub fn standard() -> Self {
        let mut set = Self::new();
        for kernel in [increment(), matmul(), vector()] {
            let kernel = kernel.map(|kernel| Kernel { quick: QUICK, ..kernel });
            kernel.and_then(|kernel| set.add(kernel)).expect("the kernels here are tested");
        }
        set
    }
}

fn increment() -> Result<Kernel, KernelError> {
    Kernel::from_toml(INCREMENT)?.with(FunctionCode::INCREMENT, increment::run)?.with(FunctionCode::EMPTY, |_| Ok(()))
}

fn matmul() -> Result<Kernel, KernelError> {
    Kernel::from_toml(MATMUL)?.with(FunctionCode::MATMUL, matmul::run)
}

fn vector() -> Result<Kernel, KernelError> {
    let kernel = Kernel::from_toml(VECTOR)?;
    Vector::ALL
        .into_iter()
        .try_fold(kernel, |kernel, function| kernel.with(function.code(), move |call| vector::run(function, call)))
}
