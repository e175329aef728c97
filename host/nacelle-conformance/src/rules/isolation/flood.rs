// SPDX-License-Identifier: Apache-2.0
//! One caller keeps as many requests outstanding as it may: another is answered between the answers to it, not after them all. These rules
//! count the packets that the greedy caller gets first, not time.

use super::{CONTRACT, Rule, nacelle};
use crate::{
    Failure,
    attack::flood,
    failure::ensure,
    peer::{Peer, Qp, Terms},
};
use nacelle_wire::{
    RemoteAddr, Rkey,
    bth::{Opcode, Reth},
    cm::{Dreq, Message, Rtu},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.reads_of_one_caller_delay_no_other", CONTRACT, |peer| tried(peer, reads)),
    nacelle("isolation.atomics_of_one_caller_delay_no_other", CONTRACT, |peer| tried(peer, atomics)),
    nacelle("isolation.writes_of_one_caller_delay_no_other", CONTRACT, |peer| tried(peer, writes)),
    nacelle("isolation.caller_that_connects_continuously_delays_no_other", CONTRACT, open_and_close),
];

/// See [`tried`].
const ATTEMPTS: usize = 4;

/// The greedy caller and the other.
fn two(peer: &mut Peer, greedy: usize) -> Result<(Vec<Qp>, Qp), Failure> {
    peer.act_as_host(0);
    let many = flood::greedy(peer, greedy)?;
    peer.act_as_host(1);
    Ok((many, peer.connect(&Terms::default())?))
}

/// The other sends a WRITE of nothing.
fn ask(peer: &mut Peer, other: &Qp) -> Result<(), Failure> {
    let nothing = Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0));
    peer.send(other, Opcode::WriteOnly, other.next, nothing, &[])
}

/// Packets for the greedy caller that came before the answer to the other, and how many may.
struct Earlier {
    packets: usize,
    most: usize,
}

/// Takes the answer to the other, and ends all connections.
fn in_turn(peer: &mut Peer, greedy: &[Qp], other: &Qp, most: usize) -> Result<Earlier, Failure> {
    let own = other.own_qpn;
    let answer = peer.station.expect_and_earlier(|p| p.headers.bth.dest_qp() == own)?;
    let (_, earlier) = answer.ok_or(Failure::Missing("answer to the other caller"))?;
    let them: Vec<_> = greedy.iter().map(|qp| qp.own_qpn).collect();
    let packets = earlier.iter().filter(|p| them.contains(&p.headers.bth.dest_qp())).count();
    for qp in greedy {
        peer.disconnect(qp)?;
    }
    peer.disconnect(other)?;
    Ok(Earlier { packets, most })
}

/// Tries this more than once: on a loaded machine the device may have answered the greedy caller before this program has sent the other's
/// request.
fn tried(peer: &mut Peer, attempt: impl Fn(&mut Peer) -> Result<Earlier, Failure>) -> Result<(), Failure> {
    let mut fewest = attempt(peer)?;
    for _ in 1..ATTEMPTS {
        if fewest.packets <= fewest.most {
            break;
        }
        let again = attempt(peer)?;
        if again.packets < fewest.packets {
            fewest = again;
        }
    }
    let Earlier { packets, most } = fewest;
    ensure!(
        packets <= most,
        "{packets} packets for one caller came before the answer to another, instead of {most} at most"
    );
    Ok(())
}

fn reads(peer: &mut Peer) -> Result<Earlier, Failure> {
    let (greedy, other) = two(peer, 2)?;
    let mut asked = 0;
    for qp in &greedy {
        asked += flood::reads(peer, qp)?;
    }
    ask(peer, &other)?;
    in_turn(peer, &greedy, &other, asked / 2)
}

fn atomics(peer: &mut Peer) -> Result<Earlier, Failure> {
    // As many as it takes, on many connections. The other asks when half of them are under way: the second half does not overtake it.
    let (greedy, other) = two(peer, 12)?;
    let mut asked = 0;
    for (index, qp) in greedy.iter().enumerate() {
        if index == greedy.len() / 2 {
            ask(peer, &other)?;
        }
        asked += flood::atomics(peer, qp)?;
    }
    in_turn(peer, &greedy, &other, asked * 3 / 4)
}

fn writes(peer: &mut Peer) -> Result<Earlier, Failure> {
    let (greedy, other) = two(peer, 2)?;
    let mut asked = 0;
    for round in 0..32 {
        if round == 16 {
            ask(peer, &other)?;
        }
        for qp in &greedy {
            flood::write(peer, qp, round)?;
            asked += 1;
        }
    }
    in_turn(peer, &greedy, &other, asked * 3 / 4)
}

fn open_and_close(peer: &mut Peer) -> Result<(), Failure> {
    let mut bystander = super::bystander::Bystander::new(peer)?;
    peer.act_as_host(0);
    for _ in 0..6 {
        let mut asked = Vec::new();
        for _ in 0..8 {
            let (tid, req) = peer.req(&Terms::default());
            peer.send_cm(tid, Message::Req(&req))?;
            asked.push((tid, req));
        }
        bystander.works_on(peer)?;
        for (tid, req) in asked {
            let qp = peer.answered(tid, &req)?;
            peer.send_cm(tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
            peer.send_cm(tid + 1, Message::Dreq(&Dreq::new(qp.own_comm_id, qp.comm_id, qp.qpn)))?;
        }
        bystander.brings_another(peer)?;
        bystander.works_on(peer)?;
    }
    bystander.leaves(peer)
}
