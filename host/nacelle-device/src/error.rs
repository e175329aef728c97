// SPDX-License-Identifier: Apache-2.0
//! What keeps a device or a host that accepts from running, with the codes of the client library.

use std::path::PathBuf;

use nacelle::{ErrorCode, explain};
use nacelle_link::LinkError;
use nacelle_slot::ServerError;

use crate::KernelError;

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
    /// The device was built without something that it is asked for.
    #[error("the simulated device was built without {what}")]
    Without {
        /// What it lacks.
        what: &'static str,
    },
    /// It cannot be put into a slot.
    #[error(transparent)]
    Slot(#[from] ServerError),
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
    /// The thread in which the device runs has ended by a panic.
    #[error("the thread of the device has ended by a defect")]
    Defect,
    /// A kernel cannot be used.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The wire cannot be used.
    #[error(transparent)]
    Link(#[from] LinkError),
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

    /// Its kind: `nacelle explain` has the same, and C and Python give it.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Library { .. } | Self::NoLibrary { .. } | Self::Create { .. } | Self::Without { .. } => {
                ErrorCode::SimulatedDevice
            }
            Self::Register { .. } | Self::Identity { .. } | Self::Memory { .. } => ErrorCode::Protocol,
            Self::Taken { .. } | Self::Link(LinkError::NameTaken { .. }) => ErrorCode::AddressTaken,
            Self::WindowOpen { .. } => ErrorCode::WindowOpen,
            Self::Defect => ErrorCode::Lost,
            Self::Kernel(_) => ErrorCode::KernelRefused,
            Self::Slot(ServerError::Taken { .. }) => ErrorCode::AddressTaken,
            Self::Link(_) | Self::Io { .. } | Self::Slot(_) => ErrorCode::Link,
        }
    }

    /// What to try, in one line: that of its kind, or something closer to the case.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Library { .. } | Self::Create { .. } => "build it again with 'make sim', or use --soft",
            Self::Without { .. } => {
                "build one whose device file has it, with 'make sim SIM_ARGS=\"--device FILE\"', and name its library with --library"
            }
            Self::Register { .. } | Self::Identity { .. } | Self::Memory { .. } => {
                "the library and this program are not of the same version: build both again"
            }
            Self::Taken { .. } => {
                "leave the name and the address out (--name, --ip) to get free ones, or end the other device"
            }
            Self::Defect => "start it again, and report what it has printed",
            Self::Kernel(KernelError::SameCode { .. } | KernelError::SameName { .. }) => {
                "leave one of the kernels out, or give it another name and other function codes"
            }
            Self::Slot(ServerError::Taken { .. }) => {
                "name another socket with --slot, --slot-net or --vhost-user, or end the other device"
            }
            Self::Slot(_) => "name a socket in a directory that is this user's with --slot, --slot-net or --vhost-user",
            Self::Link(error) => explain::links::advice(error),
            Self::Io { .. } => "name another wire with --wire",
            Self::NoLibrary { .. } | Self::WindowOpen { .. } | Self::Kernel(_) => self.code().text().advice,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// One of each.
    fn all() -> Vec<(DeviceError, ErrorCode)> {
        let kernel = KernelError::SameName { name: "k".into() };
        let (path, why) = (PathBuf::from("it"), "it is broken".to_owned());
        vec![
            (DeviceError::Library { path: path.clone(), why: why.clone() }, ErrorCode::SimulatedDevice),
            (DeviceError::NoLibrary { file: path.clone() }, ErrorCode::SimulatedDevice),
            (DeviceError::Create { why: why.clone() }, ErrorCode::SimulatedDevice),
            (DeviceError::Without { what: "IPv6" }, ErrorCode::SimulatedDevice),
            (DeviceError::Register { address: 4 }, ErrorCode::Protocol),
            (DeviceError::Identity { address: 4, value: 5 }, ErrorCode::Protocol),
            (DeviceError::Memory { address: 4, length: 5 }, ErrorCode::Protocol),
            (DeviceError::Taken { what: "soft0".into() }, ErrorCode::AddressTaken),
            (LinkError::NameTaken { name: "soft0".into(), dir: path.clone() }.into(), ErrorCode::AddressTaken),
            (DeviceError::WindowOpen { number: 7 }, ErrorCode::WindowOpen),
            (ServerError::Taken { path: path.clone() }.into(), ErrorCode::AddressTaken),
            (ServerError::System(io::ErrorKind::OutOfMemory.into()).into(), ErrorCode::Link),
            (DeviceError::Defect, ErrorCode::Lost),
            (kernel.into(), ErrorCode::KernelRefused),
            (KernelError::Library { path, why }.into(), ErrorCode::KernelRefused),
            (LinkError::NotLocal { address: [192, 0, 2, 1].into() }.into(), ErrorCode::Link),
            (DeviceError::io("bind it")(io::ErrorKind::AddrInUse.into()), ErrorCode::Link),
        ]
    }

    #[test]
    fn every_error_has_a_code_that_is_explained_and_a_hint() {
        for (error, code) in all() {
            assert_eq!(error.code(), code, "{error}");
            assert!(!error.hint().is_empty() && !error.to_string().is_empty(), "{error:?}");
            let explained = explain::find(Some(explain::Kind::Error), &code.number().to_string());
            assert!(explained.len() == 1 && explained[0].name == format!("{code:?}"), "{explained:?}");
        }
    }

    #[test]
    fn a_link_has_the_hint_that_callers_get() {
        let error = || LinkError::NotLocal { address: [192, 0, 2, 1].into() };
        assert_eq!(DeviceError::from(error()).hint(), nacelle::Error::from(error()).hint());
    }
}
