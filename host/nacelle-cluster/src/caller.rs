// SPDX-License-Identifier: Apache-2.0
//! A caller of a software device: regions, WRITEs, READs and calls, compared with a model.

use nacelle_roce::wire::mrsp::{
    AarRegion, CallImm, DEFAULT_PORT, FunctionCode, MAX_MESSAGE, Message, RegionFlags, ReturnCode,
};
use nacelle_roce::wire::{RemoteAddr, Rkey};
use nacelle_roce::{Access, Completion, ConnId, RecvWr, Region, SendWr, WcOpcode, WcStatus};

use crate::network::ip;
use crate::session::{Around, Cause, Watch};

/// Longest region, in bytes: with three, what a device's network thread calculates by itself, at once.
const REGION: usize = 5_000;
/// WRITEs before a READ or a call.
const WRITES: usize = 3;
/// Calls and READs that are still done when the end is near.
const FEW: usize = 3;
const RECEIVES: u64 = 2;

/// What it waits for.
#[derive(Debug, PartialEq)]
enum Stage {
    Connecting,
    SettingUp,
    Ready,
    Calling,
    /// For the bytes of a region, in memory of its own.
    Reading(usize, Region),
    Over,
}

/// A region at the device.
struct Remote {
    addr: RemoteAddr,
    rkey: Rkey,
    model: Vec<u8>,
    /// Where a call returns it.
    home: Region,
}

/// The caller's side of a connection; the device's has no other observer than its counters.
pub(crate) struct Caller {
    conn: ConnId,
    stage: Stage,
    message: Region,
    homes: Vec<Region>,
    remotes: Vec<Remote>,
    left: usize,
    next: u64,
}

impl Caller {
    /// Begins to connect.
    pub(crate) fn open(around: &mut Around<'_>, watch: &Watch) -> Self {
        let [node, device] = watch.nodes;
        let options = around.plan.options(around.rng);
        let sizes: Vec<usize> = (0..around.rng.usize(1..=3)).map(|_| around.rng.usize(1..=REGION)).collect();
        let now = around.world.now;
        let endpoint = around.world.endpoint(node);
        let conn = endpoint.connect(now, ip(device), DEFAULT_PORT, options).expect("an endpoint has room");
        let transport = &mut endpoint.transport;
        let mut register = |len| {
            transport.register(vec![0; len], Access::REMOTE_WRITE, Some(conn)).expect("there is room for a region")
        };
        let homes = sizes.into_iter().map(&mut register).collect();
        let message = register(MAX_MESSAGE);
        for id in 0..RECEIVES {
            transport.post_recv(conn, RecvWr { id, slice: Some(message.all()) }).expect("there is room for a receive");
        }
        around.owners.insert((node, conn), (watch.serial, 0));
        let left = around.plan.operations(around.rng);
        Self { conn, stage: Stage::Connecting, message, homes, remotes: Vec::new(), left, next: 0 }
    }

    fn post(&mut self, around: &mut Around<'_>, watch: &Watch, request: SendWr) {
        self.next += 1;
        // If it cannot be posted, the end of the connection is on the way.
        let _ = around.world.transport(watch.nodes[0]).post_send(self.conn, SendWr { id: self.next, ..request });
    }

    /// Asks for its regions.
    pub(crate) fn connected(&mut self, around: &mut Around<'_>, watch: &Watch) {
        assert_eq!(self.stage, Stage::Connecting, "a caller is connected twice");
        let flags = RegionFlags::INPUT | RegionFlags::OUTPUT;
        let regions =
            self.homes.iter().map(|home| AarRegion::parameter(flags, 0, home.addr, home.rkey, home.len as u32));
        let mut message = [0; MAX_MESSAGE];
        let length = Message::Aar(&regions.collect::<Vec<_>>()).write(&mut message).expect("three regions fit");
        self.stage = Stage::SettingUp;
        self.post(around, watch, SendWr::send(0, &message[..length]));
    }

    /// Writes, and reads a region or calls.
    pub(crate) fn act(&mut self, around: &mut Around<'_>, watch: &mut Watch) {
        if self.stage != Stage::Ready {
            return;
        }
        watch.moved = around.world.now;
        if self.left == 0 {
            return self.close(around, watch);
        }
        self.left -= 1;
        for _ in 0..around.rng.usize(..=WRITES) {
            let remote = around.rng.usize(..self.remotes.len());
            let Remote { addr, rkey, model, .. } = &mut self.remotes[remote];
            let at = around.rng.usize(..model.len());
            let mut bytes = vec![0; around.rng.usize(..=model.len() - at)];
            around.rng.fill(&mut bytes);
            model[at..at + bytes.len()].copy_from_slice(&bytes);
            let request = SendWr::write(0, bytes, RemoteAddr(addr.0 + at as u64), *rkey);
            self.post(around, watch, request);
        }
        if around.rng.bool() {
            let imm = CallImm::Start { function: FunctionCode::INCREMENT, user: [0; 3] }.to_u32();
            self.stage = Stage::Calling;
            self.post(around, watch, SendWr::write_imm(0, Vec::new(), RemoteAddr(0), Rkey(0), imm));
        } else {
            let number = around.rng.usize(..self.remotes.len());
            let Remote { addr, rkey, ref model, .. } = self.remotes[number];
            let transport = around.world.transport(watch.nodes[0]);
            let place =
                transport.register(vec![0; model.len()], Access::LOCAL, Some(self.conn)).expect("there is room");
            self.stage = Stage::Reading(number, place);
            self.post(around, watch, SendWr::read(0, place.all(), addr, rkey));
        }
    }

    pub(crate) fn completed(&mut self, around: &mut Around<'_>, watch: &mut Watch, done: &Completion) {
        assert!(self.stage != Stage::Over, "a completion after the end: {done:?}");
        if done.status != WcStatus::Success {
            // A flushed one says too little: the end of the connection says why.
            let flushed = done.status == WcStatus::WrFlushErr;
            assert!(flushed || watch.cause.is_some(), "caller {} failed without a cause: {done:?}", watch.serial);
            return;
        }
        let node = watch.nodes[0];
        match done.opcode {
            WcOpcode::Recv => self.set_up(around, watch),
            WcOpcode::RecvWrite => {
                assert_eq!(self.stage, Stage::Calling, "a call returns once");
                assert_eq!(done.imm.map(ReturnCode::from_imm), Some(ReturnCode::SUCCESS));
                around.report.calls += 1;
                for remote in &mut self.remotes {
                    remote.model.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                    let home = around.world.transport(node).region(remote.home.id).expect("it is registered");
                    assert!(home.to_vec().as_ref() == Ok(&remote.model), "a call returned other bytes");
                }
                let receive = RecvWr { id: done.id, slice: None };
                // If it cannot be posted, the end of the connection is on the way.
                let _ = around.world.transport(node).post_recv(self.conn, receive);
                self.stage = Stage::Ready;
            }
            WcOpcode::Read => {
                let Stage::Reading(number, place) = std::mem::replace(&mut self.stage, Stage::Ready) else {
                    panic!("a READ completes twice: {done:?}");
                };
                let memory =
                    around.world.transport(node).deregister(place.id).and_then(|memory| memory.into_vec().ok());
                assert!(memory.as_ref() == Some(&self.remotes[number].model), "a READ brought other bytes");
                around.report.operations += 1;
            }
            _ => around.report.operations += 1,
        }
    }

    fn set_up(&mut self, around: &mut Around<'_>, watch: &Watch) {
        assert_eq!(self.stage, Stage::SettingUp, "a set-up is answered once");
        let message =
            around.world.transport(watch.nodes[0]).region(self.message.id).and_then(|memory| memory.to_vec().ok());
        let message = message.expect("it is registered");
        let Ok(Message::A(given)) = Message::parse(&message[..4 + 16 * self.homes.len()]) else {
            panic!("the set-up of caller {} was refused", watch.serial);
        };
        let remote = |(given, home): (&nacelle_wire::mrsp::ARegion, &Region)| Remote {
            addr: given.address(),
            rkey: given.rkey(),
            model: vec![0; home.len],
            home: *home,
        };
        self.remotes = given.iter().zip(&self.homes).map(remote).collect();
        self.stage = Stage::Ready;
    }

    /// The connection is gone.
    pub(crate) fn ended(&mut self, around: &mut Around<'_>, watch: &Watch) {
        let node = watch.nodes[0];
        let read = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => panic!("a caller ends twice"),
            Stage::Reading(_, place) => Some(place),
            _ => None,
        };
        around.owners.remove(&(node, self.conn));
        for region in self.homes.iter().chain([&self.message]).chain(&read) {
            let memory = around.world.transport(node).deregister(region.id);
            assert!(memory.is_some(), "the memory of a connection is there until it is given back");
        }
    }

    /// A node has crashed. Returns whether the connection must end: what only begins may reach the device when it is there again.
    pub(crate) fn crashed(&mut self, node: usize, watch: &Watch) -> bool {
        if node == watch.nodes[0] {
            self.stage = Stage::Over;
        }
        self.stage != Stage::Connecting
    }

    pub(crate) fn hurry(&mut self) {
        self.left = self.left.min(FEW);
    }

    pub(crate) fn close(&mut self, around: &mut Around<'_>, watch: &mut Watch) {
        if self.stage == Stage::Over {
            return;
        }
        let now = around.world.now;
        watch.excuse(Cause::Closed);
        watch.end(now);
        around.world.transport(watch.nodes[0]).disconnect(now, self.conn);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    pub(crate) fn describe(&self) -> String {
        format!("caller {:?}, left {}", self.stage, self.left)
    }
}
