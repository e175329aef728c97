// SPDX-License-Identifier: Apache-2.0
//! A host that others write to and read from, by RDMA.
//!
//! ```
//! use std::net::IpAddr;
//! use std::sync::Arc;
//! use nacelle::memory::Shared;
//! use nacelle::{Device, Options};
//! use nacelle_device::{Acceptor, AcceptorOptions};
//!
//! let temp = tempfile::tempdir()?;
//! let wire = temp.path().join("wire");
//! let address: IpAddr = "127.0.3.7".parse()?;
//! let host = Acceptor::start(&AcceptorOptions { wire: Some(wire.clone()), ..AcceptorOptions::by_udp(address) })?;
//! let _log = host.accept_incoming_write(1, 1 << 20, |write| {
//!     println!("{} wrote {:?}", write.peer, write.bytes);
//!     Ok(())
//! })?;
//! let table = Arc::new(Shared::new(b"something to read".to_vec()));
//! let _table = host.accept_incoming_read(1, &table, |_| Ok(()))?;
//!
//! // Elsewhere:
//! let peer = Device::connect(address, &Options { wire: Some(wire), ..Options::default() })?;
//! let connection = peer.open(&Default::default())?;
//! connection.write(1, vec![1, 2, 3], 0)?;
//! let bytes = connection.read(1, vec![0; 9])?;
//! assert_eq!(bytes.to_vec()?, b"something");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(doc)]
use crate::Windows;
use crate::kernel::{Failure, KernelSet};
use crate::{DeviceError, IncomingRead, IncomingWrite, SoftConfig, SoftDevice, SoftPlace, Window};
use nacelle_link::WireDir;
use nacelle_roce::memory::Shared;

/// Where a host accepts, and what it gives.
#[derive(Debug, Clone)]
pub struct AcceptorOptions {
    /// Where it is reached.
    pub place: SoftPlace,
    /// The directory of the wire, on which it is published. Default: [`WireDir::default_path`].
    pub wire: Option<PathBuf>,
    /// The name under which it is published. Default: the first free one.
    pub name: Option<String>,
    /// Bounds: memory of all writers and of one, connections, threads that run callbacks and their time. It may have kernels, too; by
    /// default none.
    pub config: SoftConfig,
}

impl AcceptorOptions {
    /// At this place.
    #[must_use]
    pub fn at(place: SoftPlace) -> Self {
        let config = SoftConfig { kernels: KernelSet::new(), ..SoftConfig::default() };
        Self { place, wire: None, name: None, config }
    }

    /// On a UDP socket at this address of the machine.
    #[must_use]
    pub fn by_udp(address: IpAddr) -> Self {
        Self::at(SoftPlace::Udp(address))
    }
}

/// A host that accepts what others write, and gives what others read. It has its own threads: callbacks run side by side in as many as
/// [`SoftConfig::workers`] says, each with the time of [`SoftConfig::kernel_time`], and never in the thread that moves packets.
///
/// It ends when it is dropped; peers then get [`nacelle::Error::Lost`].
#[derive(Debug)]
pub struct Acceptor {
    device: SoftDevice,
}

impl Acceptor {
    /// Starts it. When this returns, peers can connect.
    ///
    /// # Errors
    /// If the name or address is taken, or the wire cannot be used.
    pub fn start(options: &AcceptorOptions) -> Result<Self, DeviceError> {
        let wire = WireDir::open(options.wire.clone().unwrap_or_else(WireDir::default_path))?;
        let device = SoftDevice::start(options.config.clone(), &wire, options.name.as_deref(), options.place)?;
        Ok(Self { device })
    }

    /// The address that peers connect to.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.device.descriptor().ip
    }

    /// The name that peers on this machine may use instead.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.device.descriptor().name
    }

    /// As [`Windows::accept_incoming_write`].
    ///
    /// # Errors
    /// [`DeviceError::WindowOpen`].
    pub fn accept_incoming_write(
        &self,
        number: u32,
        longest: usize,
        callback: impl Fn(IncomingWrite<'_>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Result<Window, DeviceError> {
        self.device.windows().accept_incoming_write(number, longest, callback)
    }

    /// As [`Windows::accept_incoming_read`].
    ///
    /// # Errors
    /// [`DeviceError::WindowOpen`].
    pub fn accept_incoming_read(
        &self,
        number: u32,
        bytes: &Arc<Shared>,
        callback: impl Fn(IncomingRead) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Result<Window, DeviceError> {
        self.device.windows().accept_incoming_read(number, bytes, callback)
    }

    /// Ends it.
    ///
    /// # Errors
    /// What ended it before, if its link broke.
    pub fn close(self) -> Result<(), DeviceError> {
        self.device.close()
    }
}
