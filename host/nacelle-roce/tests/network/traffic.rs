// SPDX-License-Identifier: Apache-2.0
//! Random traffic both ways over a bad network; every byte and every completion is checked.

use crate::sim::{Impairment, Net, Rng, config, region_bytes, seeds};
use nacelle_roce::{
    Access, ConnId, ConnectOptions, DisconnectReason, Event, RecvWr, Region, SendOp, SendWr, WcOpcode, WcStatus,
    wire::{Psn, bth::RnrTimer, cm::PathMtu},
};
use std::{collections::VecDeque, time::Duration};

const REGION: usize = 40_000;
const RECV: usize = 20_000;

/// What a receive must bring.
#[derive(Debug, PartialEq)]
enum Expected {
    Send(Vec<u8>, Option<u32>, bool),
    WriteImm(usize, u32, bool),
}

/// One end of the connection, and what it must see.
struct Side {
    conn: ConnId,
    /// Written by the peer.
    target: Region,
    /// What must be in it at the end.
    model: Vec<u8>,
    source: Region,
    recvs: VecDeque<(u64, Region)>,
    next_recv: u64,
    expected: VecDeque<Expected>,
    sends: VecDeque<(u64, WcOpcode, usize)>,
    left_to_post: usize,
    next_send: u64,
    unsignaled: usize,
}

fn run(seed: u64, impairment: Impairment, operations: usize) {
    let mut rng = Rng(seed ^ 0x5eed);
    let mtus = [300, 600, 1500, 2200, 4200];
    let mut net = Net::with(
        seed,
        (0..2).map(|i| {
            let mut c = config(i, seed);
            c.interface.ip_mtu = mtus[rng.below(mtus.len())].max(400);
            c
        }),
    );
    net.impairment = impairment;
    let options = ConnectOptions {
        cm_timeout: Duration::from_millis(1),
        cm_retries: 15,
        ack_timeout: Duration::from_millis(1),
        rnr_retry: 7,
        rnr_timer: RnrTimer::new(4),
        window: 1 + rng.below(64) as u32,
        path_mtu: (rng.below(2) == 0).then_some(PathMtu::Mtu256),
        // Half of the connections wrap round soon.
        starting_psn: (rng.below(2) == 0).then(|| Psn::new(0u32.wrapping_sub(rng.below(200) as u32))),
        ..ConnectOptions::default()
    };
    let (a, b) = net.connect(0, 1, &options);
    let mut sides: Vec<Side> = [(0, a), (1, b)]
        .into_iter()
        .map(|(i, conn)| {
            let data = rng.bytes(REGION);
            let ep = net.ep(i);
            Side {
                conn,
                target: ep.transport.register(vec![0; REGION], Access::REMOTE_WRITE, Some(conn)).unwrap(),
                model: vec![0; REGION],
                source: ep.transport.register(data, Access::LOCAL, None).unwrap(),
                recvs: VecDeque::new(),
                next_recv: 0,
                expected: VecDeque::new(),
                sends: VecDeque::new(),
                left_to_post: operations,
                next_send: 0,
                unsignaled: 0,
            }
        })
        .collect();

    let mut guard = 0;
    loop {
        for i in [0, 1] {
            if sides[i].left_to_post > 0 && sides[i].sends.len() < 20 && rng.below(3) == 0 {
                post(&mut net, i, &mut sides, &mut rng);
            }
            // Receives come late now and then, so that the peer meets RNR NAKs.
            let side = &mut sides[i];
            if side.recvs.len() < 4 && rng.below(4) == 0 {
                let ep = net.ep(i);
                let region = ep.transport.register(vec![0; RECV], Access::LOCAL, None).unwrap();
                ep.transport.post_recv(side.conn, RecvWr { id: side.next_recv, slice: Some(region.all()) }).unwrap();
                side.recvs.push_back((side.next_recv, region));
                side.next_recv += 1;
            }
        }
        let end = net.now + Duration::from_micros(1 + rng.next() % 50);
        while net.step(end) {}
        for i in [0, 1] {
            while let Some(event) = net.nodes[i].events.pop_front() {
                let Event::Completion(c) = event else { panic!("{event:?}") };
                assert_eq!(c.status, WcStatus::Success, "{c:?}");
                check(&mut net, i, &mut sides[i], c);
            }
        }
        if sides.iter().all(|s| s.left_to_post == 0 && s.sends.is_empty() && s.expected.is_empty()) {
            break;
        }
        guard += 1;
        assert!(guard < 2_000_000, "it hangs");
    }
    // Unsignaled sends leave no trace but their effect: wait until the queues are empty.
    let idle = |net: &mut Net| {
        [(0, a), (1, b)].into_iter().all(|(i, c)| net.ep(i).transport.connection(c).is_some_and(|info| info.sends == 0))
    };
    assert!(net.run_until(Duration::from_secs(60), idle));
    for (i, side) in sides.iter().enumerate() {
        assert!(region_bytes(net.ep(i), side.target.id) == side.model, "the target of side {i} differs");
    }

    let now = net.now;
    let first = rng.below(2);
    net.ep(first).transport.disconnect(now, sides[first].conn);
    if rng.below(3) == 0 {
        net.ep(1 - first).transport.disconnect(now, sides[1 - first].conn);
    }
    for i in [0, 1] {
        for _ in 0..sides[i].recvs.len() {
            let flushed = net.completion(i);
            assert_eq!((flushed.opcode, flushed.status), (WcOpcode::Recv, WcStatus::WrFlushErr));
        }
        match net.event(i, Duration::from_secs(60)) {
            Some(Event::Disconnected { reason, stats, .. }) => {
                assert!(matches!(reason, DisconnectReason::Local | DisconnectReason::Remote));
                assert!(stats.established.is_some());
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(net.ep(i).transport.connections().count(), 0, "a connection is left");
    }
    net.run(Duration::from_secs(60));
    for i in [0, 1] {
        assert_eq!(net.nodes[i].events, []);
        assert_eq!(net.ep(i).next_deadline(), None, "a timer is left");
    }
}

fn post(net: &mut Net, i: usize, sides: &mut [Side], rng: &mut Rng) {
    let target = sides[1 - i].target;
    let side = &mut sides[i];
    let len = match rng.below(6) {
        0 => 0,
        1 => 1 + rng.below(16),
        2 => [256, 512, 1024, 2048, 4096][rng.below(5)],
        _ => rng.below(RECV),
    };
    let bytes = rng.bytes(len);
    let data = if rng.below(2) == 0 {
        bytes.clone().into()
    } else {
        let offset = rng.below(REGION - len);
        // No work request that is under way may read what is changed here; inline data is used while any does.
        if side.sends.is_empty() && net.ep(i).transport.connection(side.conn).unwrap().sends == 0 {
            net.ep(i).transport.region_mut(side.source.id).unwrap().write(offset, &bytes).unwrap();
            side.source.slice(offset, len).into()
        } else {
            bytes.clone().into()
        }
    };
    let imm = (rng.below(2) == 0).then(|| rng.next() as u32);
    let solicited = rng.below(2) == 0;
    let signaled = rng.below(4) != 0;
    let (op, opcode) = if rng.below(2) == 0 {
        sides[1 - i].expected.push_back(Expected::Send(bytes, imm, solicited));
        (SendOp::Send { imm }, WcOpcode::Send)
    } else {
        let offset = rng.below(REGION - len + 1);
        let peer = &mut sides[1 - i];
        peer.model[offset..offset + len].copy_from_slice(&bytes);
        if let Some(imm) = imm {
            peer.expected.push_back(Expected::WriteImm(len, imm, solicited));
        }
        let addr = target.addr.checked_add(offset as u64).unwrap();
        (SendOp::Write { addr, rkey: target.rkey, imm }, WcOpcode::Write)
    };
    let side = &mut sides[i];
    let wr = SendWr { id: side.next_send, op, data, solicited, signaled, fence: false };
    net.ep(i).transport.post_send(side.conn, wr).unwrap();
    if signaled {
        side.sends.push_back((side.next_send, opcode, len));
    } else {
        side.unsignaled += 1;
    }
    side.next_send += 1;
    side.left_to_post -= 1;
}

fn check(net: &mut Net, i: usize, side: &mut Side, c: nacelle_roce::Completion) {
    match c.opcode {
        opcode if !opcode.is_recv() => {
            assert_eq!(side.sends.pop_front(), Some((c.id, c.opcode, c.byte_len)));
        }
        _ => {
            let (id, region) = side.recvs.pop_front().unwrap();
            assert_eq!(c.id, id);
            let buffer = net.ep(i).transport.deregister(region.id).unwrap().into_vec().unwrap();
            let seen = if c.opcode == WcOpcode::Recv {
                assert!(buffer[c.byte_len..].iter().all(|&b| b == 0), "bytes behind the message changed");
                Expected::Send(buffer[..c.byte_len].to_vec(), c.imm, c.solicited)
            } else {
                assert!(buffer.iter().all(|&b| b == 0), "a WRITE changed a receive");
                Expected::WriteImm(c.byte_len, c.imm.unwrap(), c.solicited)
            };
            assert!(side.expected.pop_front() == Some(seen), "a receive brought something else");
        }
    }
}

#[test]
fn perfect_network() {
    seeds(0..40, |seed| run(seed, Impairment::default(), 30));
}

#[test]
fn loss() {
    seeds(100..160, |seed| run(seed, Impairment { loss: (seed % 15) as f64, ..Impairment::default() }, 25));
}

#[test]
fn duplication() {
    seeds(200..240, |seed| run(seed, Impairment { duplicate: 20.0, ..Impairment::default() }, 25));
}

#[test]
fn reordering() {
    seeds(300..340, |seed| run(seed, Impairment { reorder: 10.0, ..Impairment::default() }, 25));
}

#[test]
fn corruption() {
    seeds(400..440, |seed| run(seed, Impairment { corrupt: 8.0, ..Impairment::default() }, 25));
}

#[test]
fn everything_at_once() {
    let bad = Impairment { loss: 4.0, duplicate: 4.0, corrupt: 3.0, reorder: 4.0 };
    seeds(500..580, |seed| run(seed, bad, 25));
}
