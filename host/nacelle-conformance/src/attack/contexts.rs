// SPDX-License-Identifier: Apache-2.0
//! One caller fills all contexts of its connection, within the rules and beyond them.

use crate::{
    Failure,
    peer::{EMPTY, LongCall, Many, Peer, Qp, raw_message, region_request},
};

/// Starts a long call on each context of a connection. Nothing is waited for but the acknowledgements.
///
/// # Errors
/// The device refuses the set-up, or gives no contexts.
pub(crate) fn long_calls(peer: &mut Peer) -> Result<Many, Failure> {
    let long = peer.long_call()?;
    let mut many = peer.connect_most_contexts(2, false)?;
    for context in 0..many.count() {
        long.prepare(peer, &mut many, context)?;
    }
    for context in 0..many.count() {
        many.start(peer, context, LongCall::START)?;
    }
    Ok(many)
}

/// Sends set-ups, malformed messages, starts and cancels on each context, without a wait and without an acknowledgement of any answer:
/// far more than a caller may have outstanding.
///
/// # Errors
/// The link is broken.
pub(crate) fn torrent(peer: &mut Peer, qp: &mut Qp, contexts: u8) -> Result<(), Failure> {
    for round in 0..8u32 {
        for context in (0..contexts).map(|context| u32::from(context) << 24) {
            peer.post_named(qp, Some(context | 1), &region_request(&[4096 + round]))?;
            peer.post_immediate(qp, context | EMPTY)?;
            peer.post_named(qp, Some(context | 2), &[])?;
            peer.post_named(qp, Some(context | 1), &raw_message(9, 7, &[]))?;
            peer.post_immediate(qp, context | 0x81)?;
            peer.post_named(qp, Some(context | 2), &[])?;
        }
    }
    Ok(())
}
