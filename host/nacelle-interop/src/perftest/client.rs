// SPDX-License-Identifier: Apache-2.0
//! perftest's client. The server waits for an exact number of messages in the exchange.

use super::{
    EXCHANGE_SLOTS, Plan, Remote, Test, Tool,
    exchange::{Dest, LONGEST, VERSION},
};
use crate::{
    failure::{Outcome, check},
    station::{Inbox, Station},
};
use core::net::Ipv4Addr;
use nacelle_roce::{
    ConnId, ConnectOptions, Endpoint, RecvWr, SendWr, WcOpcode,
    wire::{RemoteAddr, Rkey},
};
use std::collections::VecDeque;

/// Work requests have numbers of their own: receives have those of their slots.
const SEND: u64 = 1 << 32;
/// Work requests under way.
const DEPTH: u32 = 128;

impl Tool {
    /// How often the sides meet before the test, after the second connection is there and its first meeting.
    fn meetings(self) -> u32 {
        match self {
            Self::WriteBw | Self::ReadBw | Self::AtomicBw => 3,
            Self::SendBw | Self::SendLat | Self::WriteLat | Self::ReadLat | Self::AtomicLat => 4,
        }
    }

    /// Whether the sides meet after the test.
    fn meets_again(self) -> bool {
        self != Self::WriteLat
    }

    /// Whether the sides exchange what they have measured.
    fn reports(self) -> bool {
        matches!(self, Self::WriteBw | Self::ReadBw | Self::AtomicBw)
    }
}

/// The exchange.
struct Control {
    conn: ConnId,
    inbox: Inbox,
}

impl Control {
    /// Sends a message and returns the answer.
    fn ask(&self, s: &mut Station, what: &str, message: Vec<u8>) -> Outcome<Vec<u8>> {
        let len = message.len();
        s.ep().transport.post_send(self.conn, SendWr::send(SEND, message))?;
        s.done(what, self.conn, SEND)?;
        let answer = self.inbox.recv(s, what)?;
        check(answer.len() == len, || format!("{what}: {} bytes instead of {len}", answer.len()))?;
        Ok(answer)
    }

    fn meet(&self, s: &mut Station, what: &str, own: &Dest) -> Outcome<Dest> {
        Dest::parse(&self.ask(s, what, own.bytes())?)
    }

    /// The last meeting. The server may disconnect as soon as it has this side's message: if its acknowledgement is lost, the work
    /// request is flushed. So the answer, not the completion, shows that the message has arrived.
    fn meet_at_the_end(&self, s: &mut Station, what: &str, own: &Dest) -> Outcome {
        let message = own.bytes();
        let len = message.len();
        s.ep().transport.post_send(self.conn, SendWr::send(SEND, message))?;
        let answer = s.completion(what, self.conn, |c| c.opcode.is_recv())?;
        check(answer.byte_len == len, || format!("{what}: {} bytes instead of {len}", answer.byte_len))
    }
}

/// The client's side of a whole session.
pub(crate) fn client(s: &mut Station, peer: Ipv4Addr, plan: &Plan) -> Outcome {
    let options = ConnectOptions { rnr_retry: 7, ..ConnectOptions::default() };
    let post = |ep: &mut Endpoint, conn| Inbox::post(ep, conn, EXCHANGE_SLOTS, LONGEST);
    let (conn, inbox) = s.connect(peer, plan.port, &options, post)?;
    let control = Control { conn, inbox };
    let version = control.ask(s, "exchanging versions", VERSION.to_vec())?;
    println!("ok: the server has version {} of the exchange", String::from_utf8_lossy(&version).trim_end_matches('\0'));
    control.ask(s, "exchanging page sizes", 4096u32.to_be_bytes().to_vec())?;
    control.ask(s, "exchanging cache line sizes", 64u32.to_be_bytes().to_vec())?;
    let mtu = s.ep().transport.connection(conn).map_or(3, |info| info.path_mtu.code());
    let theirs = control.ask(s, "exchanging path MTUs", vec![b'0' + mtu, 0])?;
    check(theirs[0] == b'0' + mtu, || format!("the server's path MTU is {theirs:?}"))?;
    control.meet(s, "meeting before the second connection", &Dest::default())?;

    let (conn, region) = s.connect(peer, plan.port, &plan.tool.options(), |ep, conn| {
        let region = ep.transport.register(vec![0; plan.memory()], plan.tool.access(), Some(conn))?;
        if plan.tool == Tool::SendLat {
            for _ in 0..plan.iterations.min(512) {
                ep.transport.post_recv(conn, RecvWr { id: 0, slice: Some(region.slice(0, plan.size)) })?;
            }
        }
        Ok(region)
    })?;
    let test = Test { conn, region };
    control.meet(s, "meeting after the second connection", &Dest::default())?;
    let qpn = s.ep().transport.connection(conn).map_or(0, |info| info.local_qpn.get());
    let (rkey, vaddr, ip) = (region.rkey.0, region.addr.0, Some(s.ep().interface.ip()));
    let own = Dest { out_reads: 1, qpn, psn: 0, rkey, vaddr, ip };
    let theirs = control.meet(s, "exchanging destinations", &own)?;
    for _ in 1..plan.tool.meetings() {
        control.meet(s, "meeting before the test", &own)?;
    }
    let remote = Remote { addr: RemoteAddr(theirs.vaddr), rkey: Rkey(theirs.rkey) };
    match plan.tool {
        Tool::SendLat => turns_by_send(s, &test, plan)?,
        Tool::WriteLat => turns_by_write(s, &test, remote, plan)?,
        _ => stream(s, &test, remote, plan)?,
    }
    if plan.tool.reports() {
        control.meet(s, "meeting after the test", &own)?;
        for number in [plan.size as u64, plan.iterations.into(), 0, 0, 0] {
            control.ask(s, "exchanging reports", number.to_be_bytes().to_vec())?;
        }
        control.meet_at_the_end(s, "meeting after the reports", &own)?;
    } else if plan.tool.meets_again() {
        control.meet_at_the_end(s, "meeting after the test", &own)?;
    }
    s.disconnect(test.conn)?;
    s.disconnect(control.conn)?;
    println!("ok: both connections ended");
    Ok(())
}

/// One work request after the other; as many under way as the tool has.
fn stream(s: &mut Station, test: &Test, remote: Remote, plan: &Plan) -> Outcome {
    let depth = if plan.tool.is_latency() { 1 } else { DEPTH };
    let payload: Vec<u8> = (0..plan.size).map(|i| (i * 31 + 7) as u8).collect();
    let own = s.ep().transport.register(payload.clone(), nacelle_roce::Access::LOCAL, None)?;
    let mut old = VecDeque::new();
    let mut first = None;
    let (mut posted, mut done) = (0, 0);
    while done < plan.iterations {
        while posted < plan.iterations && posted - done < depth {
            let id = SEND + u64::from(posted);
            s.ep().transport.post_send(
                test.conn,
                match plan.tool {
                    Tool::ReadBw | Tool::ReadLat => {
                        SendWr::read(id, test.region.slice(0, plan.size), remote.addr, remote.rkey)
                    }
                    Tool::AtomicBw | Tool::AtomicLat => {
                        // Each to a place of its own for its result.
                        let slot = posted as usize % (plan.memory() / 8);
                        SendWr::fetch_add(id, test.region.slice(slot * 8, 8), remote.addr, remote.rkey, 1)
                    }
                    Tool::SendBw | Tool::SendLat => SendWr::send(id, own.all()),
                    Tool::WriteBw | Tool::WriteLat => SendWr::write(id, own.all(), remote.addr, remote.rkey),
                },
            )?;
            posted += 1;
        }
        s.done("working", test.conn, SEND + u64::from(done))?;
        if plan.tool.is_atomic() {
            let slot = done as usize % (plan.memory() / 8);
            let bytes = s.bytes(&test.region.slice(slot * 8, 8))?;
            old.push_back(u64::from_ne_bytes(std::array::from_fn(|i| bytes[i])));
        } else if plan.tool.is_read() && depth == 1 {
            let got = s.bytes(&test.region.slice(0, plan.size))?;
            check(*first.get_or_insert_with(|| got.clone()) == got, || format!("READ {done} brought something else"))?;
        }
        done += 1;
    }
    if plan.tool.is_atomic() {
        let counts = old.iter().zip(old.iter().skip(1)).all(|(a, b)| a.wrapping_add(1) == *b);
        check(counts, || format!("the values do not count up: {old:?}"))?;
        println!("ok: {done} FETCH-ADDs, each with the value that the one before has left");
    } else {
        println!("ok: {done} messages of {} bytes", plan.size);
    }
    Ok(())
}

/// Each side answers a SEND by a SEND; the client begins.
fn turns_by_send(s: &mut Station, test: &Test, plan: &Plan) -> Outcome {
    for i in 0..plan.iterations {
        s.ep().transport.post_send(test.conn, SendWr::send(SEND, vec![i as u8; plan.size]))?;
        let c = s.completion("waiting for the answer", test.conn, |c| c.opcode == WcOpcode::Recv)?;
        check(c.byte_len == plan.size, || format!("an answer of {} bytes", c.byte_len))?;
        s.ep().transport.post_recv(test.conn, RecvWr { id: 0, slice: Some(test.region.slice(0, plan.size)) })?;
        s.done("sending", test.conn, SEND)?;
    }
    println!("ok: {} messages of {} bytes, each answered", plan.iterations, plan.size);
    Ok(())
}

/// Each side answers a WRITE by a WRITE, whose last byte is its number; the server begins.
fn turns_by_write(s: &mut Station, test: &Test, remote: Remote, plan: &Plan) -> Outcome {
    let last_byte = test.region.slice(plan.size - 1, 1);
    for i in 1..=plan.iterations {
        s.until("waiting for the server's WRITE", |s| Ok((s.bytes(&last_byte)? == [i as u8]).then_some(())))?;
        let mut data = vec![0x5a; plan.size];
        data[plan.size - 1] = i as u8;
        s.ep().transport.post_send(test.conn, SendWr::write(SEND, data, remote.addr, remote.rkey))?;
        s.done("writing", test.conn, SEND)?;
    }
    println!("ok: {} WRITEs of {} bytes each way, in turn", plan.iterations, plan.size);
    Ok(())
}
