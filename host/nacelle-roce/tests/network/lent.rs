// SPDX-License-Identifier: Apache-2.0
//! Memory that its owner has taken for a while: peers wait for it, and nothing of theirs is lost.

use crate::raw::{Packet, Raw, TO_ENDPOINT};
use crate::sim::region_bytes;
use nacelle_roce::{
    Access, Discard, Region, SendWr,
    memory::Memory,
    wire::{
        Psn,
        bth::{AtomicEth, ImmDt, Opcode, Reth, RnrTimer, Syndrome},
        transport::Ext,
    },
};

fn psn(n: u32) -> Psn {
    TO_ENDPOINT.add(n)
}

fn shared(raw: &mut Raw, len: usize) -> Region {
    let all = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    raw.ep.transport.register(vec![5; len], all, raw.conn).unwrap()
}

fn syndromes(packets: &[Packet]) -> Vec<Syndrome> {
    let syndrome = |packet: &Packet| match packet.headers.ext {
        Ext::Aeth(aeth) | Ext::AethAtomic(aeth, _) => Some(aeth.syndrome()),
        _ => None,
    };
    packets.iter().filter_map(syndrome).collect()
}

#[test]
fn every_request_waits_until_the_memory_is_back() {
    type Request = (Opcode, fn(&Region) -> Ext, usize);
    let requests: [Request; 6] = [
        (Opcode::WriteOnly, |r| Ext::Reth(Reth::new(r.addr, r.rkey, 8)), 8),
        (Opcode::WriteFirst, |r| Ext::Reth(Reth::new(r.addr, r.rkey, 300)), 256),
        (Opcode::WriteOnlyImm, |r| Ext::RethImm(Reth::new(r.addr, r.rkey, 8), ImmDt::new(3)), 8),
        (Opcode::ReadRequest, |r| Ext::Reth(Reth::new(r.addr, r.rkey, 8)), 0),
        (Opcode::FetchAdd, |r| Ext::Atomic(AtomicEth::new(r.addr, r.rkey, 1, 0)), 0),
        (Opcode::CmpSwap, |r| Ext::Atomic(AtomicEth::new(r.addr, r.rkey, 1, 0)), 0),
    ];
    for (opcode, ext, len) in requests {
        let mut raw = Raw::passive();
        let region = shared(&mut raw, 300);
        raw.ep.transport.post_recv(raw.conn, nacelle_roce::RecvWr { id: 1, slice: None }).unwrap();
        let memory = raw.ep.transport.lend(region.id).unwrap();
        for _ in 0..3 {
            let outcome = raw.send(opcode, psn(0), ext(&region), &vec![9; len]);
            assert_eq!(outcome, Err(Discard::ReceiverNotReady), "{opcode:?}");
            // The longest time.
            assert_eq!(syndromes(&raw.drain()), [Syndrome::RnrNak(RnrTimer::new(0))], "{opcode:?}");
        }
        assert_eq!(memory.to_vec().unwrap(), vec![5; 300]);
        raw.ep.transport.give_back(region.id, memory).unwrap();
        raw.send(opcode, psn(0), ext(&region), &vec![9; len]).unwrap();
        assert_eq!(syndromes(&raw.drain()), [Syndrome::ACK], "{opcode:?}");
        let written = region_bytes(&raw.ep, region.id)[..len].iter().all(|byte| *byte == 9);
        assert!(written, "{opcode:?}");
    }
}

#[test]
fn other_requests_go_on_and_the_rest_of_a_message_waits_too() {
    let mut raw = Raw::passive();
    let (region, other) = (shared(&mut raw, 300), shared(&mut raw, 8));
    raw.send(Opcode::WriteFirst, psn(0), Ext::Reth(Reth::new(region.addr, region.rkey, 300)), &[1; 256]).unwrap();
    raw.drain();
    let memory = raw.ep.transport.lend(region.id).unwrap();
    assert_eq!(raw.send(Opcode::WriteLast, psn(1), Ext::None, &[2; 44]), Err(Discard::ReceiverNotReady));
    raw.drain();
    raw.ep.transport.give_back(region.id, memory).unwrap();
    raw.send(Opcode::WriteLast, psn(1), Ext::None, &[2; 44]).unwrap();
    assert_eq!(region_bytes(&raw.ep, region.id), [vec![1; 256], vec![2; 44]].concat());
    let memory = raw.ep.transport.lend(region.id).unwrap();
    // Nothing at all, as a keep-alive, and what is for another region.
    raw.send(Opcode::WriteOnly, psn(2), Ext::Reth(Reth::new(region.addr, region.rkey, 0)), &[]).unwrap();
    raw.send(Opcode::WriteOnly, psn(3), Ext::Reth(Reth::new(other.addr, other.rkey, 8)), &[3; 8]).unwrap();
    assert_eq!(region_bytes(&raw.ep, other.id), [3; 8]);
    drop(memory);
}

/// The response to a READ whose memory is lent meanwhile could only be a refusal: its owner waits for it.
#[test]
fn what_is_being_read_is_known_and_a_repeated_read_waits() {
    let mut raw = Raw::passive();
    let (region, other) = (shared(&mut raw, 1000), shared(&mut raw, 8));
    let read = Ext::Reth(Reth::new(region.addr, region.rkey, 1000));
    raw.send(Opcode::ReadRequest, psn(0), read, &[]).unwrap();
    let reads = |raw: &Raw, region: &Region| raw.ep.transport.is_being_read(raw.conn, region.id);
    assert!(reads(&raw, &region) && !reads(&raw, &other));
    assert_eq!(raw.drain().len(), 4);
    assert!(!reads(&raw, &region));
    let memory = raw.ep.transport.lend(region.id).unwrap();
    assert_eq!(raw.send(Opcode::ReadRequest, psn(0), read, &[]), Err(Discard::Duplicate));
    assert!(raw.drain().is_empty());
    raw.ep.transport.give_back(region.id, memory).unwrap();
    assert_eq!(raw.send(Opcode::ReadRequest, psn(0), read, &[]), Err(Discard::Duplicate));
    assert_eq!(raw.drain().len(), 4);
}

#[test]
fn memory_goes_back_only_where_it_came_from() {
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 8);
    let conn = raw.conn;
    let transport = &mut raw.ep.transport;
    let memory = transport.lend(region.id).unwrap();
    assert!(transport.lend(region.id).is_none(), "it is lent");
    assert!(transport.region(region.id).is_none() && transport.region_mut(region.id).is_none());
    assert!(transport.regions().any(|info| info.region == region && info.valid), "it has its key and length");
    let memory = transport.give_back(region.id, Memory::zeroed(9)).err().map(|_| memory).unwrap();
    transport.give_back(region.id, memory).unwrap();
    assert!(transport.give_back(region.id, Memory::zeroed(8)).is_err(), "it is there");
    transport.post_send(conn, SendWr::write(1, region.all(), region.addr, region.rkey)).unwrap();
    let memory = transport.lend(region.id).unwrap();
    assert!(transport.deregister(region.id).is_none());
    assert!(transport.give_back(region.id, memory).is_err(), "it is gone");
}
