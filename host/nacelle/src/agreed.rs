// SPDX-License-Identifier: Apache-2.0
//! What the two sides of a connection have agreed on.

use std::net::IpAddr;
use std::time::Duration;

use nacelle_wire::MacAddr;
use nacelle_wire::extensions::Extensions;
use serde::Serialize;

use crate::Connection;
use crate::channel::Channel;

/// What the two sides of a connection have agreed on by REQ and REP, and the way between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Agreed {
    /// Calls that the connection can have at a time; 0 if the device does not know contexts: then there is one.
    pub contexts: u8,
    /// Whether there are chains, regions of 2^32 bytes and more, and deadlines that the device keeps.
    pub long_set_up: bool,
    /// Whether the peer has windows.
    pub windows: bool,
    /// Whether only lost packets are sent again.
    pub selective_repeat: bool,
    /// Whether the acknowledgement of a message may follow the answer to it.
    pub late_acknowledgement: bool,
    /// Payload bytes of a full packet.
    pub path_mtu: usize,
    /// READs and atomics that the caller may have outstanding.
    pub reads: u8,
    /// The caller's address.
    pub local: IpAddr,
    /// The Ethernet address that packets to the device have; `None` by UDP, where that is the kernel's.
    pub mac: Option<String>,
    /// What the device is called, and no other: its GUID. `None` if the link does not show it.
    pub device_id: Option<String>,
    /// The caller's queue pair.
    pub local_qp: u32,
    /// The device's queue pair.
    pub remote_qp: u32,
    /// Time from the REQ to the RTU, in seconds.
    #[serde(serialize_with = "seconds")]
    pub opened_in: Duration,
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl Channel {
    /// What was agreed on; `None` once the connection is gone.
    pub(crate) fn agreed(&self) -> Option<Agreed> {
        let info = self.shared.engine.lock().endpoint.transport.connection(self.id)?;
        let path = info.path?;
        let mac = path.hop.mac();
        Some(Agreed {
            contexts: self.agreement.contexts,
            long_set_up: self.agreement.extensions.contains(Extensions::LONG_SET_UP),
            windows: self.agreement.extensions.contains(Extensions::WINDOWS),
            selective_repeat: info.selective_repeat,
            late_acknowledgement: info.late_acknowledgement,
            path_mtu: info.path_mtu.bytes(),
            reads: info.initiator_depth,
            local: path.local,
            mac: (mac != MacAddr([0; 6])).then(|| mac.to_string()),
            device_id: info.remote_guid.filter(|guid| *guid != 0).map(|guid| format!("{guid:016x}")),
            local_qp: info.local_qpn.get(),
            remote_qp: info.remote_qpn?.get(),
            opened_in: self.opened.wall,
        })
    }
}

impl Connection {
    /// What both sides have agreed on; `None` once the connection has ended.
    #[must_use]
    pub fn agreed(&self) -> Option<Agreed> {
        self.current().filter(|channel| !channel.has_ended())?.agreed()
    }
}
