// SPDX-License-Identifier: Apache-2.0
//! Kernels of the software device: functions that work on the regions of one call, in place.
//!
//! A [`Kernel`] is a description, in the same format as those of the RTL's kernels, and the code of each function in it. A
//! [`KernelSet`] is what a device offers. Kernels also come from shared libraries ([`Kernel::load`]).

mod builtin;
mod call;
mod description;
mod increment;
mod library;
mod matmul;
mod number;
mod product;
mod set;
mod vector;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use nacelle::description::Function;
use nacelle_manage::Digest;
use nacelle_wire::mrsp::FunctionCode;
use sha2::{Digest as _, Sha256};

pub use call::{Call, Cancellation, Failure, Regions};
use description::Description;
pub use set::KernelSet;
pub(crate) use set::Origin;

/// The code of a function. It may be called from several threads at a time, each with a call of its own.
pub type Run = dyn Fn(&mut Call<'_>) -> Result<(), Failure> + Send + Sync;

/// Why a kernel cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// Its description is wrong.
    #[error("the description of {kernel} is wrong: {why}")]
    Description {
        /// The kernel's name, or "a kernel" if it has none.
        kernel: String,
        /// What is wrong.
        why: String,
    },
    /// Code was given for a function that the description does not have, or twice.
    #[error("the kernel {kernel} has no function {code} that still needs its code")]
    NotDescribed {
        /// The kernel's name.
        kernel: String,
        /// The function's code.
        code: u8,
    },
    /// A function is described and has no code.
    #[error("the kernel {kernel} describes function {code} and has no code for it")]
    NoCode {
        /// The kernel's name.
        kernel: String,
        /// The function's code.
        code: u8,
    },
    /// Two kernels have a function with the same code.
    #[error("the kernels {first} and {second} both have function {code}")]
    SameCode {
        /// The kernel that was there.
        first: String,
        /// The one that was added.
        second: String,
        /// The code.
        code: u8,
    },
    /// Two kernels have the same name.
    #[error("there are two kernels {name}")]
    SameName {
        /// The name.
        name: String,
    },
    /// There is no kernel of this name whose place another could take.
    #[error("there is no kernel {name} whose socket another kernel could use")]
    NoSocket {
        /// The name.
        name: String,
    },
    /// A socket cannot hold so many kernels.
    #[error("the socket of {name} can hold {limit} kernels, not more")]
    TooMany {
        /// The kernel that is there.
        name: String,
        /// The most.
        limit: usize,
    },
    /// What all kernels say of themselves is more than callers read.
    #[error("with the kernel {kernel} the description of the device has {length} bytes, more than {limit}")]
    TooLong {
        /// The kernel that was added.
        kernel: String,
        /// Bytes with it.
        length: usize,
        /// The most.
        limit: usize,
    },
    /// A shared library is no kernel.
    #[error("cannot use {} as a kernel: {why}", path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Functions that belong together, and what they say of themselves.
///
/// ```
/// use nacelle::FunctionCode;
/// use nacelle_device::{Failure, Kernel, SoftConfig};
///
/// let kernel = Kernel::from_toml(
///     r#"
///     name = "invert"
///     version = "1.0"
///
///     [[functions]]
///     code = 80
///     name = "invert"
///     doc = "Inverts every bit."
///     regions = [{ name = "data", access = "inout", doc = "any bytes" }]
///
///     [errors]
///     0x10 = "not one region"
///     "#,
/// )?
/// .with(FunctionCode::new(80).unwrap(), |call| {
///     let [data] = &mut call.parameters[..] else { return Err(Failure::BAD_ARGUMENTS) };
///     for piece in data.chunks_mut(1 << 20) {
///         call.cancellation.check()?;
///         piece.iter_mut().for_each(|byte| *byte = !*byte);
///     }
///     Ok(())
/// })?;
/// let mut config = SoftConfig::default();
/// config.kernels.add(kernel)?;
/// # Ok::<_, nacelle_device::KernelError>(())
/// ```
#[derive(Clone)]
pub struct Kernel {
    name: String,
    /// By code.
    functions: BTreeMap<u8, Function>,
    code: BTreeMap<u8, Arc<Run>>,
    /// A call may run in the network's thread if all its regions together are not larger.
    quick: usize,
    /// Of the description, or of the file that the kernel is from.
    digest: Digest,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).field("functions", &self.functions).finish_non_exhaustive()
    }
}

impl Kernel {
    /// A kernel with this description, in the format of a kernel file (docs/reference/device-description.md). Its functions
    /// have no code yet: see [`Kernel::with`].
    ///
    /// # Errors
    /// [`KernelError::Description`].
    pub fn from_toml(description: &str) -> Result<Self, KernelError> {
        Description::from_toml(description).and_then(|said| Self::described(said, description.as_bytes()))
    }

    /// `image`: what its digest is of.
    fn described(description: Description, image: &[u8]) -> Result<Self, KernelError> {
        let (name, functions) = description.check()?;
        let digest = Digest(Sha256::digest(image).into());
        Ok(Self { name, functions, code: BTreeMap::new(), quick: 0, digest })
    }

    /// Gives a function of the description its code.
    ///
    /// # Errors
    /// [`KernelError::NotDescribed`].
    pub fn with(
        mut self,
        function: FunctionCode,
        run: impl Fn(&mut Call<'_>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Result<Self, KernelError> {
        let code = function.get();
        if !self.functions.contains_key(&code) || self.code.contains_key(&code) {
            return Err(KernelError::NotDescribed { kernel: self.name, code });
        }
        self.code.insert(code, Arc::new(run));
        Ok(self)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tells it from others: SHA-256 of its shared library, or of its description.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// What its functions say of themselves, by code.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }
}
