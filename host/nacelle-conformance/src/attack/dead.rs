// SPDX-License-Identifier: Apache-2.0
//! Callers that vanish in the middle of a call.

use super::half_open::SHORT;
use crate::{
    Failure,
    peer::{EMPTY, Peer, Qp, Terms},
};
use nacelle_wire::cm::{Message, Rtu};

/// Connects, sets up a region and posts a call, but does not read the result. The connection has short timeouts, so that the device
/// detects the dead caller early.
///
/// # Errors
/// The device refuses the connection or the set-up, or does not answer.
pub(crate) fn caller(peer: &mut Peer) -> Result<Qp, Failure> {
    let (tid, mut req) = peer.req(&Terms { ack_timeout: 14, retry_count: 1, ..Terms::default() });
    req.set_local_cm_timeout(SHORT);
    req.set_remote_cm_timeout(SHORT);
    let answer = peer.ask(tid, &req)?;
    let mut qp = peer.accepted(tid, &req, answer)?;
    peer.send_cm(tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
    peer.set_up_regions(&mut qp, &[64])?;
    peer.post_immediate(&mut qp, EMPTY)?;
    Ok(qp)
}
