// SPDX-License-Identifier: Apache-2.0
//! A host that others write to and read from, by RDMA.
//!
//! ```
//! use std::net::IpAddr;
//! use std::sync::Arc;
//! use nacelle::memory::Shared;
//! use nacelle::{Device, Options};
//! use nacelle_device::{Acceptor, AcceptorOptions, Windows};
//!
//! let temp = tempfile::tempdir()?;
//! let wire = temp.path().join("wire");
//! let address: IpAddr = "127.0.3.7".parse()?;
//! let windows = Windows::new();
//! let _log = windows.accept_incoming_write(1, 1 << 20, |write| {
//!     println!("{} wrote {:?}", write.peer, write.bytes);
//!     Ok(())
//! })?;
//! let table = Arc::new(Shared::new(b"something to read".to_vec()));
//! let _table = windows.accept_incoming_read(1, &table, |_| Ok(()))?;
//! // From here on peers can connect, and find the windows.
//! let options = AcceptorOptions { wire: Some(wire.clone()), ..AcceptorOptions::by_udp(address) };
//! let host = Acceptor::start(&options.with_windows(&windows))?;
//!
//! // Elsewhere:
//! let peer = Device::connect(host.address(), &Options { wire: Some(wire), ..Options::default() })?;
//! let connection = peer.open(&Default::default())?;
//! connection.write(1, vec![1, 2, 3], 0)?;
//! let bytes = connection.read(1, vec![0; 9])?;
//! assert_eq!(bytes.to_vec()?, b"something");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::net::IpAddr;
use std::path::PathBuf;

use nacelle_link::WireDir;

use crate::kernel::KernelSet;
use crate::{DeviceError, SoftConfig, SoftDevice, SoftPlace, Windows};

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

    /// With these windows, which peers find from the start on ([`SoftConfig::windows`]).
    #[must_use]
    pub fn with_windows(mut self, windows: &Windows) -> Self {
        self.config.windows = windows.clone();
        self
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
    /// Starts it. When this returns, peers can connect, and find the windows of the options.
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

    /// Its windows.
    #[must_use]
    pub fn windows(&self) -> &Windows {
        self.device.windows()
    }

    /// Ends it.
    ///
    /// # Errors
    /// What ended it before, if its link broke.
    pub fn close(self) -> Result<(), DeviceError> {
        self.device.close()
    }
}
