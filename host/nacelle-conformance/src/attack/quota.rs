// SPDX-License-Identifier: Apache-2.0
//! One caller opens connections until the device refuses.

use crate::{
    Failure,
    peer::{Answer, Peer, Qp, Terms},
};
use nacelle_wire::cm::{Message, RejReason, Rtu};

/// Bound of connections that are tried on any device.
pub(crate) const MOST: usize = 1024;

/// Opens connections until the device refuses one or `most` are open. Returns them, and the reason of the refusal if there was one.
///
/// # Errors
/// The device does not answer.
pub(crate) fn fill(peer: &mut Peer, most: usize) -> Result<(Vec<Qp>, Option<RejReason>), Failure> {
    let mut open = Vec::new();
    while open.len() < most {
        let (tid, req) = peer.req(&Terms::default());
        let answer = peer.ask(tid, &req)?;
        if let Answer::Rej(rej) = &answer {
            return Ok((open, Some(rej.reason())));
        }
        let qp = peer.accepted(tid, &req, answer)?;
        peer.send_cm(tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
        open.push(qp);
    }
    Ok((open, None))
}

/// Whether the reason says that there is no room for another connection: the caller has its share, or the device is full.
pub(crate) fn is_full(reason: RejReason) -> bool {
    matches!(reason, RejReason::NO_RESOURCES | RejReason::NO_QP)
}

/// Closes the connections.
///
/// # Errors
/// The device does not confirm one of them.
pub(crate) fn close(peer: &mut Peer, open: &[Qp]) -> Result<(), Failure> {
    open.iter().try_for_each(|qp| peer.disconnect_only(qp))
}
