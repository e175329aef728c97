// SPDX-License-Identifier: Apache-2.0
//! Requests with keys that are deregistered, of another caller, or guessed.

use crate::{
    Failure,
    peer::{Memory, Peer, Qp},
    rules::pattern,
};
use nacelle_wire::{
    bth::{AtomicEth, NakCode, Opcode},
    transport::Ext,
};

/// Every operation that carries an R_Key.
pub(crate) const OPERATIONS: [Opcode; 5] =
    [Opcode::WriteOnly, Opcode::WriteFirst, Opcode::ReadRequest, Opcode::FetchAdd, Opcode::CmpSwap];

/// Sends an operation on memory that is not the caller's, as its next request, and expects NAK Remote Access Error.
///
/// # Errors
/// The device answers otherwise.
pub(crate) fn refused(peer: &mut Peer, qp: &Qp, opcode: Opcode, at: &Memory) -> Result<(), Failure> {
    let (ext, len) = match opcode {
        Opcode::WriteFirst => (Ext::Reth(at.reth(0, 2 * qp.mtu as u32)), qp.mtu),
        Opcode::WriteOnly => (Ext::Reth(at.reth(0, 64)), 64),
        Opcode::ReadRequest => (Ext::Reth(at.reth(0, 64)), 0),
        _ => (Ext::Atomic(AtomicEth::new(at.addr, at.rkey, 0xdead_beef, 0)), 0),
    };
    peer.send(qp, opcode, qp.next, ext, &pattern(66, len))?;
    peer.expect_nak(qp, qp.next, NakCode::RemoteAccessError)
}
