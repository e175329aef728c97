// SPDX-License-Identifier: Apache-2.0
//! REQs from forged addresses, which stay half open because the REP reaches no host.

use crate::{
    Failure,
    peer::{Peer, Terms},
};
use nacelle_wire::cm::Message;

/// CM response timeout that the REQ states: 4.096 us * 2^15 = 134 ms, so that the device times out early.
pub(crate) const SHORT: u8 = 15;

/// Sends a REQ from the address of `host`, which answers no ARP request.
///
/// # Errors
/// The link is broken.
pub(crate) fn forged(peer: &mut Peer, host: u16) -> Result<(), Failure> {
    peer.ip = peer.station.host(host);
    let (tid, mut req) = peer.req(&Terms::default());
    req.set_local_cm_timeout(SHORT);
    req.set_remote_cm_timeout(SHORT);
    req.set_max_cm_retries(1);
    peer.send_cm(tid, Message::Req(&req))
}
