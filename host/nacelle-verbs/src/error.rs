// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with an RDMA NIC.

use core::net::IpAddr;
use std::io;

use crate::DeviceName;

/// Why an RDMA NIC cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerbsError {
    /// A library cannot be loaded.
    #[error("cannot load {library}: {why}")]
    Library {
        /// Its file name.
        library: &'static str,
        /// What the dynamic linker said.
        why: String,
    },
    /// No port of an RDMA device has the address.
    #[error("no RDMA device of this machine has the address {address}{}", among(others))]
    NoDevice {
        /// The address from which packets to the peer leave.
        address: IpAddr,
        /// The devices that there are.
        others: Vec<DeviceName>,
    },
    /// There is no such device.
    #[error("there is no RDMA device {device}{}", among(others))]
    UnknownDevice {
        /// The name that was asked for.
        device: DeviceName,
        /// The devices that there are.
        others: Vec<DeviceName>,
    },
    /// The device does not have the address from which packets to the peer leave.
    #[error("no port of {device} has the address {address}, from which packets to the device leave")]
    OtherDevice {
        /// The device.
        device: DeviceName,
        /// The address.
        address: IpAddr,
    },
    /// The port is not active.
    #[error("port {port} of {device} is {state}")]
    PortDown {
        /// The device.
        device: DeviceName,
        /// The port's number.
        port: u8,
        /// Its state, as the kernel names it.
        state: String,
    },
    /// No more memory may be locked for the NIC.
    #[error("cannot register {length} bytes with the RDMA NIC: the limit of locked memory is reached")]
    MemoryLock {
        /// Bytes of the region.
        length: usize,
    },
    /// The kernel or the NIC's driver refused.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What was said.
        source: io::Error,
    },
}

fn among(devices: &[DeviceName]) -> String {
    match devices {
        [] => ": there are none".into(),
        _ => format!(": there are {}", devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

impl VerbsError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Library { .. } => {
                "install librdmacm and libibverbs with the NIC's provider (Debian: librdmacm1, ibverbs-providers), or use --link udp"
            }
            Self::NoDevice { .. } | Self::OtherDevice { .. } => {
                "give the NIC's interface an address in the device's network, name the address with --source, or use --link udp; \
                 'rdma link' shows the NICs, 'rdma link add rxe0 type rxe netdev INTERFACE' makes one of an Ethernet"
            }
            Self::UnknownDevice { .. } => {
                "name a device that 'rdma link' shows, or none: then it is found by the address"
            }
            Self::PortDown { .. } => "plug the cable in, or set its interface up: ip link set INTERFACE up",
            Self::MemoryLock { .. } => {
                "raise the limit: 'ulimit -l unlimited', or memlock in /etc/security/limits.conf; or use smaller regions"
            }
            Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "let this user open /dev/infiniband/rdma_cm and /dev/infiniband/uverbs*"
            }
            Self::System { source, .. } if source.kind() == io::ErrorKind::NotFound || is_no_device(source) => {
                "load the kernel's modules: modprobe -a ib_uverbs rdma_ucm"
            }
            Self::System { .. } => "see the kernel's log (dmesg) for what the NIC's driver says, or use --link udp",
        }
    }

    /// What the system said last about `what`.
    pub(crate) fn last(what: &'static str) -> Self {
        Self::System { what, source: io::Error::last_os_error() }
    }
}

fn is_no_device(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENODEV)
}
