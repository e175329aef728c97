// SPDX-License-Identifier: Apache-2.0
//! A host that accepts, in this process.

use std::net::{IpAddr, Ipv4Addr};

use nacelle::{Connection, ConnectionOptions, Device, Options};
use nacelle_device::{Acceptor, AcceptorOptions, SoftPlace};
use nacelle_link::{DatagramLink, UdpLink, WireDir};

use super::datagrams::quick;

/// A loopback address that nobody has.
pub(crate) fn free_address() -> IpAddr {
    UdpLink::for_peer(Ipv4Addr::LOCALHOST.into()).unwrap().local().ip()
}

/// A host, and a folder for its wire.
pub(crate) struct Host {
    pub(crate) acceptor: Acceptor,
    pub(crate) wire: WireDir,
    _temp: tempfile::TempDir,
}

impl Host {
    pub(crate) fn at(place: SoftPlace, change: impl FnOnce(&mut AcceptorOptions)) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        let mut options = AcceptorOptions { wire: Some(wire.path().to_owned()), ..AcceptorOptions::at(place) };
        options.config.connect = quick();
        options.config.connections_per_caller = 0;
        change(&mut options);
        Self { acceptor: Acceptor::start(&options).unwrap(), wire, _temp: temp }
    }

    /// On a loopback address that nobody else has.
    pub(crate) fn new() -> Self {
        Self::at(SoftPlace::Udp(free_address()), |_| {})
    }

    pub(crate) fn options(&self) -> Options {
        Options { wire: Some(self.wire.path().to_owned()), connect: quick(), ..Options::default() }
    }

    pub(crate) fn connect(&self) -> Connection {
        let device = Device::connect(self.acceptor.address(), &self.options()).unwrap();
        device.open(&ConnectionOptions::default()).unwrap()
    }
}
