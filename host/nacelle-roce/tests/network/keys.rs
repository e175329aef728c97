// SPDX-License-Identifier: Apache-2.0
//! A key that has been taken back opens nothing any more, also to what began under it.

use crate::raw::{Packet, Raw, TO_ENDPOINT};
use crate::sim::region_bytes;
use nacelle_roce::{
    Access, Completion, Event, RecvWr, Region, Scope, WcStatus,
    wire::{
        Psn, RemoteAddr,
        bth::{AtomicEth, Ieth, NakCode, Opcode, Reth, Syndrome},
        transport::Ext,
    },
};

const REFUSED: Syndrome = Syndrome::Nak(NakCode::RemoteAccessError);

fn psn(n: u32) -> Psn {
    TO_ENDPOINT.add(n)
}

fn shared(raw: &mut Raw, len: usize) -> Region {
    let all = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::REMOTE_INVALIDATE;
    raw.ep.transport.register(vec![0; len], all, raw.conn).unwrap()
}

fn whole(region: &Region) -> Ext {
    Ext::Reth(Reth::new(region.addr, region.rkey, region.len as u32))
}

/// The one packet refuses, and the queue pair has failed.
fn assert_refused(raw: &mut Raw, packets: &[Packet]) {
    let [Packet { headers, .. }] = packets else { panic!("{packets:?}") };
    let Ext::Aeth(aeth) = headers.ext else { panic!("{headers:?}") };
    assert_eq!(aeth.syndrome(), REFUSED);
    let ended = std::iter::from_fn(|| raw.ep.transport.poll_event()).any(|event| {
        use nacelle_roce::DisconnectReason::Error;
        matches!(event, Event::Disconnected { reason: Error(WcStatus::LocAccessErr), .. })
    });
    assert!(ended);
    assert_eq!(raw.ep.counters().resp_remote_access_errors, 1);
}

/// Every way in which a region's owner takes its key back.
fn revocations() -> [fn(&mut Raw, &Region); 3] {
    [
        |raw, region| assert!(raw.ep.transport.invalidate(region.id)),
        |raw, region| assert_ne!(raw.ep.transport.rekey(region.id).unwrap().rkey, region.rkey),
        |raw, region| {
            // A second key for the same memory: the buffer is registered anew, as for its next owner.
            let buffer = raw.ep.transport.deregister(region.id).unwrap();
            raw.ep.transport.register(buffer, Access::REMOTE_WRITE, Scope::Local).unwrap();
        },
    ]
}

fn bytes(raw: &Raw) -> Vec<u8> {
    raw.ep.transport.regions().flat_map(|info| region_bytes(&raw.ep, info.region.id).to_vec()).collect()
}

#[test]
fn a_write_ends_with_its_key() {
    for revoke in revocations() {
        for (opcode, len) in [(Opcode::WriteMiddle, 256), (Opcode::WriteLast, 88)] {
            let mut raw = Raw::passive();
            let region = shared(&mut raw, if len == 256 { 600 } else { 344 });
            raw.send(Opcode::WriteFirst, psn(0), whole(&region), &[1; 256]).unwrap();
            raw.drain();
            revoke(&mut raw, &region);
            let before = bytes(&raw);
            raw.send(opcode, psn(1), Ext::None, &vec![2; len]).unwrap();
            let said = raw.drain();
            assert_refused(&mut raw, &said);
            assert_eq!(bytes(&raw), before, "{opcode:?}");
        }
    }
}

#[test]
fn data_of_a_read_stays_here_once_its_key_is_gone() {
    for revoke in revocations() {
        for sent in [0, 1, 3] {
            let mut raw = Raw::passive();
            let region = shared(&mut raw, 1000);
            raw.send(Opcode::ReadRequest, psn(0), whole(&region), &[]).unwrap();
            let mut buf = vec![0; raw.ep.frame_len()];
            for _ in 0..sent {
                assert!(raw.ep.poll_transmit(raw.now, &mut buf).is_some());
            }
            revoke(&mut raw, &region);
            let said = raw.drain();
            assert_refused(&mut raw, &said);
            assert_eq!(said[0].headers.bth.psn(), psn(sent), "instead of the data that was next");
        }
    }
}

/// A duplicate READ is dropped; it may be a late copy, so it does not end the connection.
#[test]
fn a_read_that_comes_again_is_checked_again() {
    for revoke in revocations() {
        let mut raw = Raw::passive();
        let region = shared(&mut raw, 300);
        raw.send(Opcode::ReadRequest, psn(0), whole(&region), &[]).unwrap();
        assert_eq!(raw.drain().len(), 2);
        revoke(&mut raw, &region);
        let _duplicate = raw.send(Opcode::ReadRequest, psn(0), whole(&region), &[]);
        assert!(raw.drain().is_empty());
    }
}

#[test]
fn an_atomic_needs_a_key_when_it_is_carried_out() {
    for revoke in revocations() {
        let mut raw = Raw::passive();
        let region = shared(&mut raw, 8);
        let add = Ext::Atomic(AtomicEth::new(region.addr, region.rkey, 1, 0));
        raw.send(Opcode::FetchAdd, psn(0), add, &[]).unwrap();
        raw.drain();
        revoke(&mut raw, &region);
        let before = bytes(&raw);
        raw.send(Opcode::FetchAdd, psn(1), add, &[]).unwrap();
        let said = raw.drain();
        assert_refused(&mut raw, &said);
        assert_eq!(bytes(&raw), before);
    }
}

/// The peer takes its own key back while data of its READ is still to be sent.
#[test]
fn an_invalidation_by_the_peer_counts_as_well() {
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 1000);
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: None }).unwrap();
    raw.send(Opcode::ReadRequest, psn(0), whole(&region), &[]).unwrap();
    raw.send(Opcode::SendOnlyInvalidate, psn(4), Ext::Ieth(Ieth::new(region.rkey)), &[]).unwrap();
    let Some(Event::Completion(Completion { invalidated, .. })) = raw.ep.transport.poll_event() else { panic!() };
    assert_eq!(invalidated, Some(region.rkey));
    let said = raw.drain();
    assert_refused(&mut raw, &said);
}

/// One WRITE at a region that is still there under another key does not reach it by the old one's address.
#[test]
fn a_new_key_does_not_revive_what_the_old_one_began() {
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 600);
    raw.send(Opcode::WriteFirst, psn(0), whole(&region), &[1; 256]).unwrap();
    let renewed = raw.ep.transport.rekey(region.id).unwrap();
    assert_eq!((renewed.addr, renewed.len), (RemoteAddr(region.addr.0), region.len));
    raw.drain();
    raw.send(Opcode::WriteMiddle, psn(1), Ext::None, &[2; 256]).unwrap();
    let said = raw.drain();
    assert_refused(&mut raw, &said);
    assert_eq!(region_bytes(&raw.ep, region.id)[256..], [0; 344]);
}
