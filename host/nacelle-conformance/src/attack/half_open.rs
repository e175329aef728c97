// SPDX-License-Identifier: Apache-2.0
//! REQs that nobody follows up, from addresses that nobody has.

use crate::{
    Failure,
    peer::{Peer, Terms},
};
use nacelle_wire::cm::Message;

/// CM response timeout of those who do not answer: 4.096 us * 2^15 = 134 ms. They are forgotten soon.
pub(crate) const SHORT: u8 = 15;

/// Sends a REQ of this host. Nobody answers for its address, and nobody hears what is sent to it.
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
