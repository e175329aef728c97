// SPDX-License-Identifier: Apache-2.0
//! Many connections between several endpoints over a bad network, every operation mixed, ends and restarts at any time.
//! Every byte, every answer and the order of all completions are checked; at the end nothing is left.

use crate::sim::{Impairment, Net, PORT, Rng, config, region_bytes};
use nacelle_roce::{
    Access, Completion, ConnId, ConnectOptions, Counters, Event, ProtectionDomain, RecvWr, Region, Scope, SendOp,
    SendWr, WcOpcode, WcStatus,
    wire::{Psn, RemoteAddr, Rkey, bth::RnrTimer, cm::PathMtu},
};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

/// Bytes that the peer writes and reads; behind them are the words of atomics.
const BYTES: usize = 12_000;
const WORDS: usize = 8;
const RECV: usize = 6_000;
const LONG: Duration = Duration::from_secs(400);

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    pub connections: usize,
    pub operations: u64,
    /// Connections that were ended or cut in the middle of their work.
    pub cut: usize,
    /// Counters of all endpoints.
    pub retransmitted: u64,
    pub placed_early: u64,
}

impl Report {
    pub fn add(&mut self, other: Self) {
        self.connections += other.connections;
        self.operations += other.operations;
        self.cut += other.cut;
        self.retransmitted += other.retransmitted;
        self.placed_early += other.placed_early;
    }
}

/// What a receive must bring.
#[derive(Debug, PartialEq)]
enum Arrival {
    Send(Vec<u8>, Option<u32>, Option<Rkey>, bool),
    WriteImm(usize, u32, bool),
}

/// A work request that must complete next, with the place of its answer and what must be there.
struct Pending {
    id: u64,
    opcode: WcOpcode,
    len: usize,
    answer: Option<(Region, Vec<u8>)>,
}

/// One end of a connection.
struct Side {
    node: usize,
    conn: ConnId,
    /// What the peer reaches, and what must be in it once all that the peer has posted is done.
    target: Region,
    model: Vec<u8>,
    /// What the peer may invalidate, while it has the key.
    spare: Region,
    spare_known: bool,
    recvs: VecDeque<(u64, Region)>,
    next_recv: u64,
    arrivals: VecDeque<Arrival>,
    pending: VecDeque<Pending>,
    /// Answers of READs and atomics that are posted, by number.
    left: usize,
    next_send: u64,
    /// A READ was posted after the last fence: what changes memory must wait for it.
    unfenced_read: bool,
    gone: bool,
}

/// A connection: its two sides, and whether it has been cut.
struct Link {
    sides: [Side; 2],
    cut: bool,
}

struct Soak {
    net: Net,
    rng: Rng,
    links: Vec<Link>,
    by_conn: HashMap<(usize, ConnId), (usize, usize)>,
    posted: u64,
}

/// Runs with one seed. Panics if anything is not as it must be.
pub fn run(seed: u64, max_connections: usize, operations: usize) -> Report {
    let mut rng = Rng(seed ^ 0x50a6);
    let nodes = 2 + rng.below(3);
    let mtus = [300, 600, 1500, 4200];
    let configs = (0..nodes).map(|i| {
        let mut c = config(i, seed);
        c.interface.ip_mtu = mtus[rng.below(mtus.len())].max(400);
        c
    });
    let mut net = Net::with(seed, configs.collect::<Vec<_>>());
    let bad = |rng: &mut Rng, most: usize| if rng.below(2) == 0 { 0.0 } else { rng.below(most * 10) as f64 / 10.0 };
    net.impairment =
        Impairment { loss: bad(&mut rng, 6), duplicate: bad(&mut rng, 6), corrupt: 0.0, reorder: bad(&mut rng, 6) };
    let mut soak = Soak { net, rng, links: Vec::new(), by_conn: HashMap::new(), posted: 0 };
    let connections = 1 + soak.rng.below(max_connections);
    (0..connections).for_each(|_| soak.connect(nodes, operations));
    // Addresses have been learned from ARP, which nothing but the FCS protects, and there is none here.
    soak.net.impairment.corrupt = bad(&mut soak.rng, 4);
    soak.work(nodes);
    let cut = soak.links.iter().filter(|l| l.cut).count();
    soak.finish(nodes);
    let mut report = Report { connections, operations: soak.posted, cut, ..Report::default() };
    for node in &soak.net.nodes {
        let c: Counters = node.ep.counters();
        report.retransmitted += c.retransmitted;
        report.placed_early += c.placed_early;
    }
    report
}

impl Soak {
    fn connect(&mut self, nodes: usize, operations: usize) {
        let a = self.rng.below(nodes);
        let b = (a + 1 + self.rng.below(nodes - 1)) % nodes;
        let rng = &mut self.rng;
        let mut options = || ConnectOptions {
            cm_timeout: Duration::from_millis(1),
            cm_retries: 15,
            ack_timeout: Duration::from_millis(1),
            rnr_retry: 7,
            rnr_timer: RnrTimer::new(4),
            window: 1 + rng.below(150) as u32,
            path_mtu: (rng.below(3) == 0).then_some(PathMtu::Mtu256),
            starting_psn: (rng.below(2) == 0).then(|| Psn::new(0u32.wrapping_sub(rng.below(200) as u32))),
            selective_repeat: rng.below(3) != 0,
            initiator_depth: 1 + rng.below(16) as u8,
            responder_resources: 1 + rng.below(16) as u8,
            ..ConnectOptions::default()
        };
        let (active, passive) = (options(), options());
        let (ca, cb) = self.net.connect_with(a, b, &active, &passive, |_, _| {});
        let link = self.links.len();
        let sides = [(a, ca), (b, cb)].map(|(node, conn)| {
            let whole = self.rng.below(2) == 0;
            let scope = if whole { Scope::Domain(ProtectionDomain::DEFAULT) } else { Scope::Connection(conn) };
            let model = self.rng.bytes(BYTES + WORDS * 8);
            let access = Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
            let ep = self.net.ep(node);
            Side {
                node,
                conn,
                target: ep.transport.register(model.clone(), access, scope).unwrap(),
                model,
                spare: ep.transport.register(vec![0; 8], Access::REMOTE_INVALIDATE, scope).unwrap(),
                spare_known: true,
                recvs: VecDeque::new(),
                next_recv: 0,
                arrivals: VecDeque::new(),
                pending: VecDeque::new(),
                left: operations,
                next_send: 0,
                unfenced_read: false,
                gone: false,
            }
        });
        for (i, side) in sides.iter().enumerate() {
            self.by_conn.insert((side.node, side.conn), (link, i));
        }
        self.links.push(Link { sides, cut: false });
    }

    /// Traffic on all connections until all of it is done; now and then one is ended, or a node starts anew.
    fn work(&mut self, nodes: usize) {
        let mut restarts = self.rng.below(2);
        let mut guard = 0;
        loop {
            for link in 0..self.links.len() {
                for i in [0, 1] {
                    self.act(link, i);
                }
            }
            if self.rng.below(3000) == 0 {
                self.end_one();
            }
            if restarts > 0 && self.rng.below(2000) == 0 {
                restarts -= 1;
                let node = self.rng.below(nodes);
                self.restart(node);
            }
            let end = self.net.now + Duration::from_micros(1 + self.rng.next() % 50);
            while self.net.step(end) {}
            self.take_events(nodes);
            let busy = |s: &Side| s.left > 0 || !s.pending.is_empty() || !s.arrivals.is_empty();
            if self.links.iter().all(|l| l.cut || !l.sides.iter().any(busy)) {
                return;
            }
            guard += 1;
            assert!(guard < 3_000_000, "it hangs");
        }
    }

    fn act(&mut self, link: usize, i: usize) {
        if self.links[link].cut {
            return;
        }
        let side = &mut self.links[link].sides[i];
        // Receives come late now and then, so that the peer meets RNR NAKs.
        if side.recvs.len() < 4 && self.rng.below(4) == 0 {
            let ep = self.net.ep(side.node);
            let region = ep.transport.register(vec![0; RECV], Access::LOCAL, None).unwrap();
            ep.transport.post_recv(side.conn, RecvWr { id: side.next_recv, slice: Some(region.all()) }).unwrap();
            side.recvs.push_back((side.next_recv, region));
            side.next_recv += 1;
        }
        if side.left > 0 && side.pending.len() < 20 && self.rng.below(3) == 0 {
            self.post(link, i);
        }
    }

    fn post(&mut self, link: usize, i: usize) {
        let rng = &mut self.rng;
        let len = match rng.below(6) {
            0 => 0,
            1 => 1 + rng.below(16),
            2 => [256, 512, 1024, 2048, 4096][rng.below(5)],
            _ => rng.below(RECV),
        };
        let Link { sides, .. } = &mut self.links[link];
        let [a, b] = sides;
        let (side, peer) = if i == 0 { (a, b) } else { (b, a) };
        let (node, id) = (side.node, side.next_send);
        let offset = rng.below(BYTES - len + 1);
        let at = |offset: usize| RemoteAddr(peer.target.addr.0 + offset as u64);
        let rkey = peer.target.rkey;
        let word = BYTES + 8 * rng.below(WORDS);
        let old = u64::from_ne_bytes(peer.model[word..word + 8].try_into().unwrap());
        let imm = (rng.below(2) == 0).then(|| rng.next() as u32);
        let solicited = rng.below(2) == 0;
        let mut answer = |bytes: Vec<u8>| {
            let region = self.net.ep(node).transport.register(vec![0; bytes.len()], Access::LOCAL, None).unwrap();
            (region, bytes)
        };
        let mut answered = None;
        let mut fence = rng.below(8) == 0;
        let mut wr = match rng.below(8) {
            0 | 1 => {
                let bytes = rng.bytes(len);
                peer.arrivals.push_back(Arrival::Send(bytes.clone(), imm, None, solicited));
                SendWr { op: SendOp::Send { imm }, ..SendWr::send(id, bytes) }
            }
            2 if peer.spare_known => {
                let bytes = rng.bytes(len);
                peer.spare_known = false;
                let key = peer.spare.rkey;
                peer.arrivals.push_back(Arrival::Send(bytes.clone(), None, Some(key), solicited));
                SendWr::send_invalidate(id, bytes, key)
            }
            2..=4 => {
                let bytes = rng.bytes(len);
                fence |= side.unfenced_read;
                peer.model[offset..offset + len].copy_from_slice(&bytes);
                if let Some(imm) = imm {
                    peer.arrivals.push_back(Arrival::WriteImm(len, imm, solicited));
                }
                SendWr { op: SendOp::Write { addr: at(offset), rkey, imm }, ..SendWr::write(id, bytes, at(0), rkey) }
            }
            5 | 6 => {
                side.unfenced_read = true;
                let (region, bytes) = answer(peer.model[offset..offset + len].to_vec());
                answered = Some((region, bytes));
                SendWr::read(id, region.all(), at(offset), rkey)
            }
            _ => {
                fence |= side.unfenced_read;
                let (region, bytes) = answer(old.to_ne_bytes().to_vec());
                answered = Some((region, bytes));
                let operand = rng.next();
                let (wr, new) = match rng.below(3) {
                    0 => (SendWr::fetch_add(id, region.all(), at(word), rkey, operand), old.wrapping_add(operand)),
                    1 => (SendWr::cmp_swap(id, region.all(), at(word), rkey, old, operand), operand),
                    _ => (SendWr::cmp_swap(id, region.all(), at(word), rkey, old ^ 1, operand), old),
                };
                peer.model[word..word + 8].copy_from_slice(&new.to_ne_bytes());
                wr
            }
        };
        if fence {
            side.unfenced_read = answered.is_some() && matches!(wr.op, SendOp::Read { .. });
        }
        wr.fence = fence;
        wr.solicited = solicited;
        // A request with a response must be signalled.
        wr.signaled = answered.is_some() || rng.below(4) != 0;
        let opcode = match wr.op {
            SendOp::Send { .. } | SendOp::SendInvalidate { .. } => WcOpcode::Send,
            SendOp::Write { .. } => WcOpcode::Write,
            SendOp::Read { .. } => WcOpcode::Read,
            SendOp::FetchAdd { .. } => WcOpcode::FetchAdd,
            _ => WcOpcode::CmpSwap,
        };
        let (len, signaled) = (wr.data.len(), wr.signaled);
        self.net.ep(node).transport.post_send(side.conn, wr).unwrap();
        self.posted += 1;
        if signaled {
            side.pending.push_back(Pending { id, opcode, len, answer: answered });
        }
        side.next_send += 1;
        side.left -= 1;
    }

    /// One side ends a connection in the middle of its work.
    fn end_one(&mut self) {
        let (link, i) = (self.rng.below(self.links.len()), self.rng.below(2));
        if !self.links[link].cut {
            self.links[link].cut = true;
            let Side { node, conn, .. } = self.links[link].sides[i];
            let now = self.net.now;
            self.net.ep(node).transport.disconnect(now, conn);
        }
    }

    /// A node restarts without state.
    fn restart(&mut self, node: usize) {
        for link in &mut self.links {
            link.cut |= link.sides.iter().any(|s| s.node == node);
        }
        self.net.ep(node).transport.reset();
        assert_eq!(self.net.ep(node).transport.regions().count(), 0);
    }

    fn take_events(&mut self, nodes: usize) {
        for node in 0..nodes {
            while let Some(event) = self.net.nodes[node].events.pop_front() {
                match event {
                    Event::Completion(c) => {
                        let (link, i) = self.by_conn[&(node, c.conn)];
                        self.check(link, i, c);
                    }
                    Event::Disconnected { conn, .. } => {
                        let (link, i) = self.by_conn[&(node, conn)];
                        assert!(self.links[link].cut, "a connection fails: {event:?}");
                        assert!(!std::mem::replace(&mut self.links[link].sides[i].gone, true), "it ends twice");
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn check(&mut self, link: usize, i: usize, c: Completion) {
        let Link { sides, cut } = &mut self.links[link];
        let side = &mut sides[i];
        let ep = &mut self.net.nodes[side.node].ep;
        assert!(!side.gone, "a completion after the end");
        if c.status != WcStatus::Success {
            assert!(*cut, "{c:?}");
            // Receives end in order too.
            if c.opcode.is_recv() {
                let (id, region) = side.recvs.pop_front().unwrap();
                assert_eq!(c.id, id);
                ep.transport.deregister(region.id);
            } else {
                while let Some(p) = side.pending.front()
                    && p.id <= c.id
                {
                    assert_eq!(p.id, c.id, "a work request is left out");
                    side.pending.pop_front();
                }
            }
            return;
        }
        if !c.opcode.is_recv() {
            let p = side.pending.pop_front().unwrap();
            assert_eq!((c.id, c.opcode, c.byte_len), (p.id, p.opcode, p.len));
            if let Some((region, expected)) = p.answer {
                let seen = ep.transport.deregister(region.id);
                // After a restart of this node its memory is gone.
                assert!(
                    seen.is_none() && *cut || seen.is_some_and(|m| m.into_vec() == Ok(expected)),
                    "{:?} brought other bytes",
                    c
                );
            }
            return;
        }
        let (id, region) = side.recvs.pop_front().unwrap();
        assert_eq!(c.id, id);
        let Some(buffer) = ep.transport.deregister(region.id).map(|m| m.into_vec().unwrap()) else {
            assert!(*cut);
            return;
        };
        let seen = if c.opcode == WcOpcode::Recv {
            assert!(buffer[c.byte_len..].iter().all(|&b| b == 0), "bytes behind the message changed");
            Arrival::Send(buffer[..c.byte_len].to_vec(), c.imm, c.invalidated, c.solicited)
        } else {
            assert!(buffer.iter().all(|&b| b == 0), "a WRITE changed a receive");
            Arrival::WriteImm(c.byte_len, c.imm.unwrap(), c.solicited)
        };
        assert!(side.arrivals.pop_front() == Some(seen), "a receive brought something else");
        if c.invalidated.is_some()
            && let Some(renewed) = ep.transport.rekey(side.spare.id)
        {
            side.spare = renewed;
            side.spare_known = true;
        }
    }

    /// Ends what is left and looks whether anything stays behind.
    fn finish(&mut self, nodes: usize) {
        let idle = |net: &mut Net, links: &[Link]| {
            let open = |s: &Side| net.nodes[s.node].ep.transport.connection(s.conn).is_some_and(|c| c.sends > 0);
            !links.iter().filter(|l| !l.cut).flat_map(|l| &l.sides).any(open)
        };
        let links = std::mem::take(&mut self.links);
        assert!(self.net.run_until(LONG, |net| idle(net, &links)), "unsignaled work never ends");
        self.links = links;
        self.take_events(nodes);
        for link in 0..self.links.len() {
            if self.links[link].cut {
                continue;
            }
            for side in &self.links[link].sides {
                let seen = region_bytes(&self.net.nodes[side.node].ep, side.target.id);
                assert!(seen == side.model, "the memory of a connection differs");
            }
            let first = self.rng.below(2);
            self.links[link].cut = true;
            let Side { node, conn, .. } = self.links[link].sides[first];
            let now = self.net.now;
            self.net.ep(node).transport.disconnect(now, conn);
        }
        self.net.run(LONG);
        self.take_events(nodes);
        for link in 0..self.links.len() {
            for i in [0, 1] {
                // A side that received nothing because its peer had restarted is idle, and is closed by the test.
                let (node, conn) = (self.links[link].sides[i].node, self.links[link].sides[i].conn);
                let now = self.net.now;
                self.net.ep(node).transport.disconnect(now, conn);
            }
        }
        self.net.run(LONG);
        self.take_events(nodes);
        for side in self.links.iter().flat_map(|l| &l.sides) {
            assert!(side.gone, "a connection has no end");
            assert!(side.recvs.is_empty() && side.pending.is_empty(), "work is left");
        }
        for (i, node) in self.net.nodes.iter_mut().enumerate() {
            node.ep.transport.unlisten(PORT);
            assert_eq!(node.ep.transport.connections().count(), 0, "a connection is left at node {i}");
            assert_eq!(node.ep.next_deadline(), None, "a timer is left at node {i}");
            let ids: Vec<_> = node.ep.transport.regions().map(|r| r.region.id).collect();
            ids.into_iter().for_each(|id| drop(node.ep.transport.deregister(id).unwrap()));
            assert_eq!((node.ep.transport.regions().count(), node.events.len()), (0, 0));
        }
    }
}

#[test]
fn few_connections() {
    crate::sim::seeds(0..60, |seed| assert!(run(seed, 4, 30).operations > 0));
}

#[test]
fn many_connections() {
    let total = std::sync::Mutex::new(Report::default());
    crate::sim::seeds(1000..1008, |seed| total.lock().unwrap().add(run(seed, 64, 10)));
    let total = *total.lock().unwrap();
    assert!(total.retransmitted > 0 && total.placed_early > 0 && total.cut > 0, "{total:?}");
}
