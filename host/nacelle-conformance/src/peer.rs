// SPDX-License-Identifier: Apache-2.0
//! A peer of the device, packet by packet: connections, requests of any form, and their responses.

mod called;
mod calls;
mod connection;
mod contexts;
mod hosts;
mod long_call;
mod long_set_up;
mod messages;
mod packets;
mod regions;

use crate::{Failure, manage::Manage, station::Station};
use core::net::Ipv4Addr;
use nacelle_wire::{
    Psn, Qpn, RemoteAddr, Rkey,
    admission::Token,
    bth::Reth,
    cm::{Rej, Rep},
    extensions::Agreement,
};
use std::time::Duration;

/// After a failed rule: how long [`Peer::recover`] waits for the device to free its queue pairs.
const RECOVERY: Duration = Duration::from_secs(12);

pub(crate) use called::Called;
pub(crate) use calls::{EMPTY, Output, raw_message};
pub(crate) use contexts::{Many, Reply};
pub(crate) use long_call::LongCall;
pub(crate) use long_set_up::{long_message, long_region, step};
pub(crate) use regions::{own_address, region, region_request};

/// The suite's side of a connection with the device.
#[derive(Clone, Debug)]
pub(crate) struct Qp {
    /// The host that the suite is on this connection.
    pub(crate) ip: Ipv4Addr,
    /// The device's queue pair.
    pub(crate) qpn: Qpn,
    /// The suite's.
    pub(crate) own_qpn: Qpn,
    /// The device's communication id, and the suite's.
    pub(crate) comm_id: u32,
    /// The suite's.
    pub(crate) own_comm_id: u32,
    /// Transaction of the REQ.
    pub(crate) tid: u64,
    /// The next PSN to the device.
    pub(crate) next: Psn,
    /// The next PSN of the device's own requests.
    pub(crate) expected: Psn,
    /// Payload of a full packet, in bytes.
    pub(crate) mtu: usize,
    /// What the REP agreed to.
    pub(crate) agreed: Agreement,
    /// READs and atomics that the device takes at once.
    pub(crate) responder_resources: u8,
    /// The device's regions, in the order of the request.
    pub(crate) regions: Vec<Memory>,
}

/// Memory of the device that the connection may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Address of its first byte.
    pub(crate) addr: RemoteAddr,
    /// Its key.
    pub(crate) rkey: Rkey,
}

impl Memory {
    /// An address in it.
    pub(crate) fn at(&self, offset: u64) -> RemoteAddr {
        RemoteAddr(self.addr.0.wrapping_add(offset))
    }

    /// RETH for `len` bytes from `offset` on.
    pub(crate) fn reth(&self, offset: u64, len: u32) -> Reth {
        Reth::new(self.at(offset), self.rkey, len)
    }
}

/// Key and address of the caller's own regions, which have no memory: the suite only checks the device's packets to them.
pub(crate) const OWN_RKEY: Rkey = Rkey(0x0ca1_1e57);
const OWN_ADDR: u64 = 0x7000_0000_0000;

/// The parameters of a REQ.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Path MTU code, 1 (256 bytes) to 5 (4096).
    pub(crate) mtu: u8,
    /// PSN at which the device begins to send.
    pub(crate) device_psn: Psn,
    /// Local ACK timeout code for the device's queue pair: 4.096 us * 2^code.
    pub(crate) ack_timeout: u8,
    /// Retries that the device's requests may have.
    pub(crate) retry_count: u8,
    /// And on RNR NAKs.
    pub(crate) rnr_retry_count: u8,
    /// READs and atomics that the suite may have outstanding.
    pub(crate) initiator_depth: u8,
    /// What is offered beyond the standard.
    pub(crate) offer: Agreement,
    /// What the suite is to be admitted by.
    pub(crate) token: Option<Token>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            mtu: 1,
            device_psn: Psn::new(0xff_fffe),
            ack_timeout: 14,
            retry_count: 7,
            rnr_retry_count: 7,
            initiator_depth: 4,
            offer: Agreement::default(),
            token: None,
        }
    }
}

/// The suite as a peer of one device.
pub(crate) struct Peer {
    /// Its station on the wire.
    pub(crate) station: Station,
    /// The device's service port.
    pub(crate) port: u16,
    /// The host that connects: the suite's own address, or another that it acts as.
    pub(crate) ip: Ipv4Addr,
    /// The device's management, if the suite can reach it.
    manage: Option<Manage>,
    next_id: u32,
    /// Connections that have not ended.
    open: Vec<Qp>,
    /// A call that takes long on this device, once it is known.
    long_call: Option<LongCall>,
}

/// How a REQ ended.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Accepted.
    Rep(Box<Rep>),
    /// Refused.
    Rej(Box<Rej>),
}

impl Peer {
    /// A peer of the station's device.
    pub(crate) fn new(station: Station, port: u16, manage: Option<Manage>) -> Self {
        let ip = station.ip();
        Self {
            station,
            port,
            ip,
            manage,
            next_id: fastrand::u32(1..0x7fff_ffff) & !0xff,
            open: Vec::new(),
            long_call: None,
        }
    }

    /// The device's management.
    ///
    /// # Errors
    /// The suite cannot reach it.
    pub(crate) fn manage(&mut self) -> Result<&mut Manage, Failure> {
        self.manage.as_mut().ok_or(Failure::NotTried("the device's management is not on this wire"))
    }
}
