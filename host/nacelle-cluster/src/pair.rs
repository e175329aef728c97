// SPDX-License-Identifier: Apache-2.0
//! A connection between two endpoints: random operations from both sides, and the model that they are compared with.

use std::collections::VecDeque;

use nacelle_roce::wire::RemoteAddr;
use nacelle_roce::{Access, Completion, ConnId, RecvWr, Region, SendOp, SendWr, WcOpcode, WcStatus};

use crate::model::{BYTES, Model, WORDS};
use crate::network::ip;
use crate::plan::PORT;
use crate::session::{Around, Cause, Watch};

/// Longest message, and bytes of a receive.
const MESSAGE: usize = 6_000;
/// Receives that a side posts.
const RECEIVES: usize = 4;
/// Requests that a side has under way.
const DEPTH: usize = 20;
/// Operations that a side still does when the end is near.
const FEW: usize = 5;

/// What a receive must bring.
#[derive(Debug, PartialEq)]
enum Arrival {
    Send(Vec<u8>, Option<u32>, bool),
    WriteImm(usize, u32, bool),
}

/// A signaled request, with the place of its answer and what must be there.
struct Pending {
    id: u64,
    opcode: WcOpcode,
    len: usize,
    answer: Option<(Region, Vec<u8>)>,
}

/// One end of it.
struct Side {
    node: usize,
    conn: Option<ConnId>,
    up: bool,
    /// The connection is gone here.
    over: bool,
    /// What the peer reaches, and what must be in it.
    target: Option<Region>,
    model: Model,
    /// What was in it when the connection was gone.
    memory: Option<Vec<u8>>,
    receives: VecDeque<(u64, Region)>,
    next_receive: u64,
    arrivals: VecDeque<Arrival>,
    pending: VecDeque<Pending>,
    left: usize,
    next_request: u64,
    /// A READ was posted after the last fence: what changes memory must wait for it.
    unfenced_read: bool,
}

/// Both ends.
pub(crate) struct Pair {
    sides: [Side; 2],
    /// All work was done before it was closed.
    complete: bool,
}

impl Pair {
    /// Begins to connect.
    pub(crate) fn open(around: &mut Around<'_>, watch: &Watch) -> Self {
        let side = |node, around: &mut Around<'_>| {
            let mut content = vec![0; BYTES + 8 * WORDS];
            around.rng.fill(&mut content);
            Side {
                node,
                conn: None,
                up: false,
                over: false,
                target: None,
                model: Model::new(content),
                memory: None,
                receives: VecDeque::new(),
                next_receive: 0,
                arrivals: VecDeque::new(),
                pending: VecDeque::new(),
                left: around.plan.operations(around.rng),
                next_request: 0,
                unfenced_read: false,
            }
        };
        let mut pair = Self { sides: watch.nodes.map(|node| side(node, around)), complete: false };
        let mut options = around.plan.options(around.rng);
        options.private_data = watch.serial.to_be_bytes().to_vec();
        let now = around.world.now;
        let [from, to] = watch.nodes;
        let conn = around.world.endpoint(from).connect(now, ip(to), PORT, options);
        pair.sides[0].begin(around, watch, 0, conn.expect("an endpoint has room for a connection"));
        pair
    }

    pub(crate) fn requested(&mut self, around: &mut Around<'_>, watch: &Watch, conn: ConnId) -> bool {
        let side = &mut self.sides[1];
        if side.conn.is_some() || side.over || watch.ending.is_some() {
            return false;
        }
        side.begin(around, watch, 1, conn);
        let (options, now) = (around.plan.options(around.rng), around.world.now);
        around.world.transport(side.node).accept(now, conn, options).expect("the request waits");
        true
    }

    pub(crate) fn connected(&mut self, side: usize) {
        assert!(!std::mem::replace(&mut self.sides[side].up, true), "a side is connected twice");
    }

    pub(crate) fn act(&mut self, around: &mut Around<'_>, watch: &mut Watch, side: usize) {
        let done = |side: &Side| side.up && side.left == 0 && side.pending.is_empty() && side.arrivals.is_empty();
        if self.sides.iter().all(done) {
            self.complete = true;
            return self.close(around, watch);
        }
        let [a, b] = &mut self.sides;
        let (here, there) = if side == 0 { (a, b) } else { (b, a) };
        if here.conn.is_some() {
            here.post_receives(around);
        }
        if here.up && here.left > 0 && here.pending.len() < DEPTH && there.target.is_some() {
            here.post(around, there);
        }
        // Without requests there is nothing to wait for.
        if here.pending.is_empty() && there.pending.is_empty() && here.up && there.up {
            watch.moved = around.world.now;
        }
    }

    pub(crate) fn completed(&mut self, around: &mut Around<'_>, watch: &mut Watch, side: usize, done: &Completion) {
        let [a, b] = &mut self.sides;
        let (here, there) = if side == 0 { (a, b) } else { (b, a) };
        assert!(!here.over, "a completion after the end: {done:?}");
        if done.status != WcStatus::Success {
            // A flushed one says too little: the end of the connection says why.
            let flushed = done.status == WcStatus::WrFlushErr;
            assert!(
                flushed || watch.cause.is_some(),
                "at {:?} connection {} of nodes {:?} failed without a cause: {done:?}",
                around.world.now,
                watch.serial,
                watch.nodes
            );
            return here.failed(around, done);
        }
        around.report.operations += 1;
        if done.opcode.is_recv() {
            return here.received(around, done);
        }
        there.model.complete(done.id);
        let request = here.pending.pop_front().expect("a request that completes was posted");
        assert_eq!((done.id, done.opcode, done.byte_len), (request.id, request.opcode, request.len));
        if let Some((region, expected)) = request.answer {
            let memory =
                around.world.transport(here.node).deregister(region.id).and_then(|memory| memory.into_vec().ok());
            assert!(memory == Some(expected), "{done:?} brought other bytes");
        }
    }

    pub(crate) fn ended(&mut self, around: &mut Around<'_>, side: usize) {
        self.sides[side].end(around);
        // The other side has never heard of it, and will not take it any more.
        if side == 0 && self.sides[1].conn.is_none() {
            self.sides[1].over = true;
        }
    }

    /// A node has crashed. Returns whether the connection must end.
    pub(crate) fn crashed(&mut self, node: usize) -> bool {
        for side in self.sides.iter_mut().filter(|side| side.node == node) {
            side.over = true;
        }
        if self.sides[1].conn.is_none() {
            self.sides[1].over = true;
        }
        true
    }

    pub(crate) fn hurry(&mut self) {
        self.sides.iter_mut().for_each(|side| side.left = side.left.min(FEW));
    }

    pub(crate) fn close(&mut self, around: &mut Around<'_>, watch: &mut Watch) {
        let first = around.rng.usize(..2);
        let open = [first, 1 - first].into_iter().find_map(|side| {
            let Side { node, conn, over, .. } = self.sides[side];
            conn.filter(|_| !over).map(|conn| (node, conn))
        });
        let Some((node, conn)) = open else { return };
        let now = around.world.now;
        watch.excuse(Cause::Closed);
        watch.end(now);
        around.world.transport(node).disconnect(now, conn);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.sides.iter().all(|side| side.over)
    }

    pub(crate) fn finish(&self, watch: &Watch) {
        for side in &self.sides {
            let Some(memory) = &side.memory else { continue };
            let right = if self.complete { side.model.is_complete(memory) } else { side.model.is_possible(memory) };
            assert!(right, "the memory of connection {} at node {} is wrong", watch.serial, side.node);
        }
    }

    pub(crate) fn describe(&self) -> String {
        let side = |side: &Side| {
            let Side { up, over, left, .. } = side;
            let (pending, arrivals) = (side.pending.len(), side.arrivals.len());
            format!("up {up}, over {over}, left {left}, pending {pending}, arrivals {arrivals}")
        };
        self.sides.iter().map(side).collect::<Vec<_>>().join("; ")
    }
}

impl Side {
    /// Its endpoint has the connection.
    fn begin(&mut self, around: &mut Around<'_>, watch: &Watch, side: usize, conn: ConnId) {
        self.conn = Some(conn);
        around.owners.insert((self.node, conn), (watch.serial, side));
        let access = Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        let content = self.model.range(0, BYTES + 8 * WORDS).to_vec();
        self.target =
            Some(around.world.transport(self.node).register(content, access, Some(conn)).expect("there is room"));
        self.post_receives(around);
    }

    fn post_receives(&mut self, around: &mut Around<'_>) {
        // They come late now and then, so that the peer meets RNR NAKs.
        while self.receives.len() < RECEIVES && around.rng.u8(..8) != 0 {
            let transport = around.world.transport(self.node);
            let region = transport.register(vec![0; MESSAGE], Access::LOCAL, None).expect("there is room");
            let receive = RecvWr { id: self.next_receive, slice: Some(region.all()) };
            if transport.post_recv(self.conn.expect("it has begun"), receive).is_err() {
                // It is about to end.
                transport.deregister(region.id);
                return;
            }
            self.receives.push_back((self.next_receive, region));
            self.next_receive += 1;
        }
    }

    /// Posts a random request to the other side.
    fn post(&mut self, around: &mut Around<'_>, peer: &mut Self) {
        let Around { world, rng, .. } = around;
        let Some(target) = peer.target else { return };
        let len = match rng.u8(..6) {
            0 => 0,
            1 => rng.usize(1..=16),
            2 => [256, 512, 1024, 2048, 4096][rng.usize(..5)],
            _ => rng.usize(..MESSAGE),
        };
        let id = self.next_request;
        let offset = rng.usize(..=BYTES - len);
        let word = BYTES + 8 * rng.usize(..WORDS);
        let place = |offset: usize| RemoteAddr(target.addr.0 + offset as u64);
        let imm = rng.bool().then(|| rng.u32(..));
        let solicited = rng.bool();
        let mut bytes = vec![0; len];
        rng.fill(&mut bytes);
        let mut answer = None;
        let mut fence = rng.u8(..8) == 0;
        let mut expect = |bytes: Vec<u8>| {
            let place = vec![0; bytes.len()];
            let region = world.transport(self.node).register(place, Access::LOCAL, None).expect("there is room");
            answer = Some((region, bytes));
            region.all()
        };
        let mut request = match rng.u8(..8) {
            0..3 => {
                peer.arrivals.push_back(Arrival::Send(bytes.clone(), imm, solicited));
                SendWr { op: SendOp::Send { imm }, ..SendWr::send(id, bytes) }
            }
            3..5 => {
                fence |= self.unfenced_read;
                peer.model.post(id, offset, bytes.clone());
                if let Some(imm) = imm {
                    peer.arrivals.push_back(Arrival::WriteImm(len, imm, solicited));
                }
                let op = SendOp::Write { addr: place(offset), rkey: target.rkey, imm };
                SendWr { op, ..SendWr::write(id, bytes, place(0), target.rkey) }
            }
            5..7 => SendWr::read(id, expect(peer.model.range(offset, len).to_vec()), place(offset), target.rkey),
            _ => {
                fence |= self.unfenced_read;
                let old = u64::from_ne_bytes(peer.model.range(word, 8).try_into().expect("eight bytes"));
                let to = expect(old.to_ne_bytes().to_vec());
                let (at, key, operand) = (place(word), target.rkey, rng.u64(..));
                let (request, new) = match rng.u8(..3) {
                    0 => (SendWr::fetch_add(id, to, at, key, operand), old.wrapping_add(operand)),
                    1 => (SendWr::cmp_swap(id, to, at, key, old, operand), operand),
                    _ => (SendWr::cmp_swap(id, to, at, key, old ^ 1, operand), old),
                };
                peer.model.post(id, word, new.to_ne_bytes().to_vec());
                request
            }
        };
        let opcode = match request.op {
            SendOp::Write { .. } => WcOpcode::Write,
            SendOp::Read { .. } => WcOpcode::Read,
            SendOp::FetchAdd { .. } => WcOpcode::FetchAdd,
            SendOp::CmpSwap { .. } => WcOpcode::CmpSwap,
            _ => WcOpcode::Send,
        };
        if fence {
            self.unfenced_read = false;
        }
        self.unfenced_read |= opcode == WcOpcode::Read;
        (request.fence, request.solicited) = (fence, solicited);
        // The last one, too, so that it says that all are done.
        request.signaled = answer.is_some() || self.left == 1 || rng.u8(..4) != 0;
        if request.signaled {
            self.pending.push_back(Pending { id, opcode, len: request.data.len(), answer });
        }
        let conn = self.conn.expect("it is connected");
        if world.transport(self.node).post_send(conn, request).is_err() {
            // Its failure is on the way: the model has more than was done, which it may.
            self.left = 1;
            if let Some(Pending { answer: Some((region, _)), .. }) = self.pending.pop_back_if(|last| last.id == id) {
                world.transport(self.node).deregister(region.id);
            }
        }
        self.next_request += 1;
        self.left -= 1;
    }

    /// A work request has failed.
    fn failed(&mut self, around: &mut Around<'_>, done: &Completion) {
        let transport = around.world.transport(self.node);
        if done.opcode.is_recv() {
            let (id, region) = self.receives.pop_front().expect("a receive that ends was posted");
            assert_eq!(done.id, id, "receives end in order");
            transport.deregister(region.id);
            return;
        }
        while let Some(request) = self.pending.pop_front_if(|request| request.id <= done.id) {
            assert_eq!(request.id, done.id, "a request is left out");
            if let Some((region, _)) = request.answer {
                transport.deregister(region.id);
            }
        }
    }

    /// A receive brings something.
    fn received(&mut self, around: &mut Around<'_>, done: &Completion) {
        let (id, region) = self.receives.pop_front().expect("a receive that completes was posted");
        assert_eq!(done.id, id, "receives complete in order");
        let memory = around.world.transport(self.node).deregister(region.id).expect("it is registered");
        let buffer = memory.into_vec().expect("it is heap memory");
        let seen = if done.opcode == WcOpcode::Recv {
            assert!(buffer[done.byte_len..].iter().all(|&byte| byte == 0), "bytes behind the message changed");
            Arrival::Send(buffer[..done.byte_len].to_vec(), done.imm, done.solicited)
        } else {
            assert!(buffer.iter().all(|&byte| byte == 0), "a WRITE changed a receive");
            Arrival::WriteImm(done.byte_len, done.imm.expect("it has an immediate"), done.solicited)
        };
        assert!(self.arrivals.pop_front() == Some(seen), "a receive brought something else, or twice");
        self.post_receives(around);
    }

    /// The connection is gone here.
    fn end(&mut self, around: &mut Around<'_>) {
        assert!(!std::mem::replace(&mut self.over, true), "a connection ends twice");
        assert!(self.receives.is_empty() && self.pending.is_empty(), "a connection ends before its work requests");
        if let Some(conn) = self.conn {
            around.owners.remove(&(self.node, conn));
        }
        let memory = self.target.and_then(|target| around.world.transport(self.node).deregister(target.id));
        self.memory = memory.and_then(|memory| memory.into_vec().ok());
        assert!(self.memory.is_some(), "the memory of a connection is there until it is given back");
    }
}
