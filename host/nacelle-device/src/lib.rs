// SPDX-License-Identifier: Apache-2.0
//! Runs a device on a wire.
//!
//! A device is an [`Engine`]: the simulated RTL ([`RtlEngine`]) or the software one ([`SoftEngine`]). [`Host`] puts it on a wire,
//! or on a UDP socket: it carries frames or datagrams, lets device time pass, and answers on the management socket.

#![deny(unsafe_code)]

mod acceptor;
mod engine;
mod gate;
mod host;
mod in_process;
mod kernel;
mod loading;
mod manage;
mod place;
mod port;
mod rtl;
mod sim;
mod soft;
mod trace;

use std::path::PathBuf;

pub use acceptor::{Acceptor, AcceptorOptions};
pub use engine::{DatagramEngine, Engine, Facts, FrameEngine, Identity};
pub use gate::Gate;
pub use host::{Host, SERVICE_PORT};
pub use in_process::{SoftDevice, SoftPlace};
pub use kernel::{Call, Cancellation, Failure, Kernel, KernelError, KernelSet, Regions, Run};
pub use manage::Management;
pub use place::{DEFAULT_ADDRESS, Place};
pub use port::{EthernetPort, Port, UdpPort};
pub use rtl::{Bounds, RtlEngine, find_library};
pub use sim::{PushError, Sim, SimConfig, SimInfo, SimLibrary, SimStats, Stamp};
pub use soft::{IncomingRead, IncomingWrite, SoftConfig, SoftEngine, Window, Windows};
pub use trace::TraceLog;

/// Why a device cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The library of the simulated device cannot be used.
    #[error("cannot use {} as the simulated device: {why}", path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No library of the simulated device was found.
    #[error("found no {} in this directory, beside this program, or above them", file.display())]
    NoLibrary {
        /// What was looked for.
        file: PathBuf,
    },
    /// The library could not make a device.
    #[error("cannot make the simulated device: {why}")]
    Create {
        /// The library's own sentence.
        why: String,
    },
    /// A register access was answered with an error.
    #[error("the device answers register {address:#07x} with an error")]
    Register {
        /// The register's address.
        address: u32,
    },
    /// The registers are not those of a device that this program supports.
    #[error("the device does not say that it is one: register {address:#07x} is {value:#010x}")]
    Identity {
        /// The register's address.
        address: u32,
        /// What is in it.
        value: u32,
    },
    /// The range lies outside of device memory.
    #[error("{length} bytes at {address:#x} are not in device memory")]
    Memory {
        /// First address.
        address: u64,
        /// Length in bytes.
        length: usize,
    },
    /// Another device has the name or the address.
    #[error("{what} is used by another device on this wire")]
    Taken {
        /// The name or address.
        what: String,
    },
    /// Another window of the same direction has the number.
    #[error("window {number} is open already")]
    WindowOpen {
        /// The number.
        number: u32,
    },
    /// A kernel cannot be used.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The wire cannot be used.
    #[error(transparent)]
    Link(#[from] nacelle_link::LinkError),
    /// A file of the wire cannot be written or bound.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl DeviceError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// What to try, in one line.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoLibrary { .. } => {
                "build it with 'make sim' (for waveforms 'make sim-waves'), name it with --library, or use --soft"
            }
            Self::Library { .. } | Self::Create { .. } => "build it again with 'make sim', or use --soft",
            Self::Register { .. } | Self::Identity { .. } | Self::Memory { .. } => {
                "the library and this program are not of the same version: build both again"
            }
            Self::Kernel(KernelError::SameCode { .. } | KernelError::SameName { .. }) => {
                "leave one of the kernels out, or give it another name and other function codes"
            }
            Self::WindowOpen { .. } => "close the other window, or choose another number",
            Self::Kernel(_) => "build the kernel again with the nacelle_kernel.h of this version, or leave it out",
            Self::Taken { .. } => "omit --name and --ip to get free ones, or end the other device",
            Self::Link(nacelle_link::LinkError::NameTaken { .. }) => "choose another --name, or end the one that runs",
            Self::Link(_) | Self::Io { .. } => "name another wire with --wire",
        }
    }
}
