// SPDX-License-Identifier: Apache-2.0
//! A PCI Express function as a driver in user space sees it. Two ways lead to one, with the same trait:
//!
//! - [`UserDevice`]: vfio-user, over a UNIX socket, to a simulated device in a slot (the crate `nacelle-slot`).
//! - [`KernelDevice`]: the kernel's VFIO, to a board. **It has not run on hardware**, as nobody has given us a board: it is written
//!   after `linux/vfio.h` and `linux/iommufd.h`, tested against a model of the calls, and was tried in a guest of QEMU.
//!
//! A driver is written once:
//!
//! ```no_run
//! # fn main() -> Result<(), nacelle_pci::PciError> {
//! use std::time::Duration;
//! use nacelle_pci::{Access, PciDevice, UserDevice, UserConfig};
//!
//! let mut device = UserDevice::connect("/tmp/slot".as_ref(), UserConfig::default())?;
//! device.set_bus_master(true)?;
//! let buffer = device.alloc_dma(1 << 16, Access::BOTH)?;
//! let interrupts = device.interrupts(1)?;
//! device.write64(0, 8, buffer.iova())?;
//! device.wait(&interrupts[0], Duration::from_secs(1))?;
//! # Ok(())
//! # }
//! ```
//!
//! See docs/reference/vfio-user.md.

#![deny(unsafe_op_in_unsafe_fn)]

mod areas;
mod buffer;
mod device;
mod error;
mod interrupt;
mod iova;
pub mod kernel;
mod user;

pub use buffer::DmaBuffer;
pub use device::{Identity, PciDevice};
pub use error::PciError;
pub use interrupt::Interrupt;
pub use kernel::KernelDevice;
pub use nacelle_slot::pages::{Access, OutOfPages, Pages};
pub use user::{Share, UserConfig, UserDevice};
