// SPDX-License-Identifier: Apache-2.0
//! One caller takes all connections that it gets.

use crate::{
    Failure,
    peer::{Answer, Peer, Qp, Terms},
};
use nacelle_wire::cm::{Message, RejReason, Rtu};

/// More connections than this no device is asked for.
pub(crate) const MOST: usize = 1024;

/// Opens connections until the device refuses, or there are so many: the connections, and the reason of the refusal.
///
/// # Errors
/// It does not answer.
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

/// The device has no room for another connection: the caller has its share, or all is taken.
pub(crate) fn is_full(reason: RejReason) -> bool {
    matches!(reason, RejReason::NO_RESOURCES | RejReason::NO_QP)
}

/// Gives them back.
///
/// # Errors
/// The device does not agree.
pub(crate) fn close(peer: &mut Peer, open: &[Qp]) -> Result<(), Failure> {
    open.iter().try_for_each(|qp| peer.disconnect_only(qp))
}
