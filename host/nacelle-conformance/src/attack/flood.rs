// SPDX-License-Identifier: Apache-2.0
//! Floods: as many READs, atomics or WRITEs outstanding at once as the device admits.

use crate::{
    Failure,
    peer::{Peer, Qp, Terms},
};
use nacelle_wire::{
    bth::{AtomicEth, Opcode},
    transport::Ext,
};

/// Size of each flooding caller's region, in bytes.
pub(crate) const LONG: u32 = 1 << 20;

/// Opens `connections` connections with the largest MTU and depth, each with a region of [`LONG`] bytes.
///
/// # Errors
/// The device refuses one of them.
pub(crate) fn greedy(peer: &mut Peer, connections: usize) -> Result<Vec<Qp>, Failure> {
    let terms = Terms { mtu: 5, initiator_depth: 16, ..Terms::default() };
    (0..connections).map(|_| peer.connect_with(&terms, &[LONG])).collect()
}

/// Sends READs of the whole region, as many as the device admits at once (4 at most). Returns the number of response packets.
///
/// # Errors
/// The link is broken.
pub(crate) fn reads(peer: &mut Peer, qp: &Qp) -> Result<usize, Failure> {
    let packets = LONG / qp.mtu as u32;
    let reads = u32::from(qp.responder_resources.min(4));
    for i in 0..reads {
        let reth = Ext::Reth(qp.regions[0].reth(0, LONG));
        peer.send_quietly(qp, Opcode::ReadRequest, qp.next.add(i * packets), reth, &[])?;
    }
    Ok((reads * packets) as usize)
}

/// Sends as many atomics as the device admits at once. Returns their number.
///
/// # Errors
/// The link is broken.
pub(crate) fn atomics(peer: &mut Peer, qp: &Qp) -> Result<usize, Failure> {
    for i in 0..u32::from(qp.responder_resources) {
        let eth = AtomicEth::new(qp.regions[0].at(8 * u64::from(i)), qp.regions[0].rkey, 1, 0);
        peer.send_quietly(qp, Opcode::FetchAdd, qp.next.add(i), Ext::Atomic(eth), &[])?;
    }
    Ok(qp.responder_resources.into())
}

/// Sends a WRITE of one full packet, at `index` PSNs behind the next one.
///
/// # Errors
/// The link is broken.
pub(crate) fn write(peer: &mut Peer, qp: &Qp, index: u32) -> Result<(), Failure> {
    let reth = Ext::Reth(qp.regions[0].reth(0, qp.mtu as u32));
    peer.send(qp, Opcode::WriteOnly, qp.next.add(index), reth, &vec![1; qp.mtu])
}
