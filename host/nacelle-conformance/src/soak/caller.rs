// SPDX-License-Identifier: Apache-2.0
//! An honest caller: one connection, a model of its regions' content, and its random operations.

use super::{Failure, clock::Clock};
use core::time::Duration;
use nacelle_roce::{
    Completion, ConnId, RecvWr, Region, RegionId, SendWr, Transport, WcOpcode, WcStatus,
    wire::{
        RemoteAddr, Rkey,
        mrsp::{self, AarRegion, CallImm, FunctionCode, RegionFlags, ReturnCode},
    },
};
use std::{collections::HashMap, time::Instant};

/// A region of the device, and the model of its content.
struct Memory {
    addr: RemoteAddr,
    rkey: Rkey,
    model: Vec<u8>,
    /// The caller's buffer to which a call returns the region.
    home: Region,
}

/// What is checked at a completion.
enum Wanted {
    Nothing,
    /// The buffer contains these bytes.
    Bytes(RegionId, Vec<u8>),
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    SettingUp,
    Working,
    /// Waits for the result of a call.
    Calling,
    Over,
}

/// A caller of the device.
pub(super) struct Caller {
    pub(super) conn: ConnId,
    stage: Stage,
    rng: fastrand::Rng,
    regions: Vec<Memory>,
    message: Option<RegionId>,
    homes: Vec<Region>,
    pending: HashMap<u64, Wanted>,
    next_id: u64,
    left: u32,
    depth: usize,
    /// The next operation is a call, which waits until nothing is outstanding.
    call_next: bool,
    /// A READ or atomic is outstanding: the next operation that changes memory needs a fence.
    fence: bool,
    /// When the connection last made progress.
    since: Instant,
    /// The `since` for which `patience` has passed, and the device's time when that was detected.
    late: Option<(Instant, Duration)>,
    /// The device's time when the current call was posted.
    called: Duration,
    pub(super) calls: u64,
    pub(super) operations: u64,
    pub(super) bytes: u64,
    /// The longest call, in the device's time.
    pub(super) worst: Duration,
}

/// Device time that a caller may wait in addition to its `patience`; see [`Caller::is_stuck`].
const DEVICE_PATIENCE: Duration = Duration::from_secs(10);
/// Bound of the whole wait, in multiples of `patience`.
const LONGEST: u32 = 10;
/// Receives posted at the start. One is used at a time; the second covers the moment before it is replaced.
const RECEIVES: u64 = 2;
const RECEIVE_ID: u64 = 1 << 32;

impl Caller {
    /// A caller for the connection attempt `conn`, with `operations` to do. It counts as waiting since `since`.
    pub(super) fn new(
        transport: &mut Transport,
        conn: ConnId,
        mut rng: fastrand::Rng,
        operations: u32,
        since: Instant,
    ) -> Result<Self, Failure> {
        let sizes: Vec<usize> = (0..rng.usize(1..=3))
            .map(|_| match rng.u8(..) {
                0..80 => rng.usize(8..300),
                80..200 => rng.usize(300..8192),
                _ => rng.usize(8192..=65536),
            })
            .collect();
        let mut register = |len| {
            transport
                .register(vec![0; len], nacelle_roce::Access::REMOTE_WRITE, Some(conn))
                .map_err(|e| Failure::Failed(format!("a buffer cannot be registered: {e}")))
        };
        let homes = sizes.into_iter().map(&mut register).collect::<Result<_, _>>()?;
        let answer = register(mrsp::MAX_MESSAGE)?;
        for i in 0..RECEIVES {
            transport
                .post_recv(conn, RecvWr { id: RECEIVE_ID + i, slice: Some(answer.all()) })
                .map_err(|e| Failure::Failed(format!("a receive cannot be posted: {e}")))?;
        }
        let depth = rng.usize(1..=8);
        Ok(Self {
            conn,
            stage: Stage::Connecting,
            rng,
            regions: Vec::new(),
            message: Some(answer.id),
            homes,
            pending: HashMap::new(),
            next_id: 0,
            left: operations,
            depth,
            call_next: false,
            fence: false,
            since,
            late: None,
            called: Duration::ZERO,
            calls: 0,
            operations: 0,
            bytes: 0,
            worst: Duration::ZERO,
        })
    }

    /// Whether all operations are done and checked.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// When the connection last made progress.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Whether the connection has made no progress for too long: for `patience`, and then for [`DEVICE_PATIENCE`] of the device's time, which
    /// covers its retransmissions and passes slowly while a simulated device is flooded; for [`LONGEST`] times `patience` at most.
    pub(super) fn is_stuck(&mut self, patience: Duration, clock: &Clock) -> bool {
        let waited = self.since.elapsed();
        if waited <= patience {
            return false;
        }
        let now = clock.now();
        let seen = match self.late {
            Some((since, seen)) if since == self.since => seen,
            _ => now,
        };
        self.late = Some((self.since, seen));
        now.saturating_sub(seen) > DEVICE_PATIENCE || waited > patience * LONGEST
    }

    /// The state in one line, for the report of a failed run.
    pub(super) fn describe(&self) -> String {
        format!("{:?}: {:?}, {} operations left, {} outstanding", self.conn, self.stage, self.left, self.pending.len())
    }

    /// The connection is established: sends the region request.
    pub(super) fn connected(&mut self, transport: &mut Transport) -> Result<(), Failure> {
        self.since = Instant::now();
        let flags = RegionFlags::INPUT | RegionFlags::OUTPUT;
        let request: Vec<AarRegion> =
            self.homes.iter().map(|h| AarRegion::parameter(flags, 0, h.addr, h.rkey, h.len as u32)).collect();
        let mut message = [0; mrsp::MAX_MESSAGE];
        let len = mrsp::Message::Aar(&request).write(&mut message).expect("few regions fit a message");
        self.stage = Stage::SettingUp;
        self.post(transport, |id| SendWr::send(id, &message[..len]), Wanted::Nothing)
    }

    fn post(
        &mut self,
        transport: &mut Transport,
        make: impl FnOnce(u64) -> SendWr,
        wanted: Wanted,
    ) -> Result<(), Failure> {
        self.next_id += 1;
        let wr = make(self.next_id);
        self.bytes += wr.data.len() as u64;
        self.pending.insert(self.next_id, wanted);
        transport.post_send(self.conn, wr).map_err(|e| Failure::Failed(format!("a request cannot be posted: {e}")))
    }

    /// Posts random operations up to the caller's depth.
    pub(super) fn act(&mut self, transport: &mut Transport, clock: &Clock) -> Result<(), Failure> {
        while self.stage == Stage::Working && self.pending.len() < self.depth {
            if self.left == 0 {
                if self.pending.is_empty() {
                    self.stage = Stage::Over;
                }
                return Ok(());
            }
            // A call changes every region, so it is posted only when nothing else is outstanding.
            self.call_next = self.call_next || self.rng.u8(..) < 12;
            if self.call_next && !self.pending.is_empty() {
                return Ok(());
            }
            self.left -= 1;
            if core::mem::take(&mut self.call_next) {
                self.calls += 1;
                self.called = clock.now();
                return self.call(transport);
            }
            self.operations += 1;
            self.one_sided(transport)?;
        }
        Ok(())
    }

    fn call(&mut self, transport: &mut Transport) -> Result<(), Failure> {
        self.stage = Stage::Calling;
        let imm = CallImm::Start { function: FunctionCode::INCREMENT, user: [0; 3] }.to_u32();
        self.post(transport, |id| SendWr::write_imm(id, Vec::new(), RemoteAddr(0), Rkey(0), imm), Wanted::Nothing)
    }

    fn one_sided(&mut self, transport: &mut Transport) -> Result<(), Failure> {
        let region = self.rng.usize(..self.regions.len());
        let size = self.regions[region].model.len();
        let (addr, rkey) = (self.regions[region].addr, self.regions[region].rkey);
        let at = |offset: usize| RemoteAddr(addr.0 + offset as u64);
        let scratch = |transport: &mut Transport, len: usize, conn| {
            transport
                .register(vec![0; len], nacelle_roce::Access::LOCAL, Some(conn))
                .map_err(|e| Failure::Failed(format!("a buffer cannot be registered: {e}")))
        };
        match self.rng.u8(..100) {
            0..45 => {
                let offset = self.rng.usize(..size);
                let len = self.rng.usize(..=size - offset);
                let mut bytes = vec![0; len];
                self.rng.fill(&mut bytes);
                self.regions[region].model[offset..offset + len].copy_from_slice(&bytes);
                let fence = core::mem::take(&mut self.fence);
                self.post(
                    transport,
                    |id| SendWr { fence, ..SendWr::write(id, bytes, at(offset), rkey) },
                    Wanted::Nothing,
                )
            }
            45..80 => {
                let offset = self.rng.usize(..size);
                let len = self.rng.usize(..=size - offset);
                let to = scratch(transport, len, self.conn)?;
                let wanted = Wanted::Bytes(to.id, self.regions[region].model[offset..offset + len].to_vec());
                self.fence = true;
                self.post(transport, |id| SendWr::read(id, to.all(), at(offset), rkey), wanted)
            }
            choice => {
                // Regions begin at a multiple of 8, as atomics need.
                let word = self.rng.usize(..size / 8) * 8;
                let place = &mut self.regions[region].model[word..word + 8];
                let before = u64::from_le_bytes(place.try_into().expect("eight bytes"));
                let (value, other) = (self.rng.u64(..), self.rng.u64(..));
                let compare = if self.rng.bool() { before } else { other };
                let after = match choice {
                    80..90 => before.wrapping_add(value),
                    _ if compare == before => value,
                    _ => before,
                };
                place.copy_from_slice(&after.to_le_bytes());
                let to = scratch(transport, 8, self.conn)?;
                let wanted = Wanted::Bytes(to.id, before.to_ne_bytes().to_vec());
                let fence = core::mem::replace(&mut self.fence, true);
                self.post(
                    transport,
                    |id| SendWr {
                        fence,
                        ..match choice {
                            80..90 => SendWr::fetch_add(id, to.all(), at(word), rkey, value),
                            _ => SendWr::cmp_swap(id, to.all(), at(word), rkey, compare, value),
                        }
                    },
                    wanted,
                )
            }
        }
    }

    /// Deregisters the buffers of a caller whose connection was refused.
    pub(super) fn give_back(self, transport: &mut Transport) {
        for buffer in self.homes.iter().map(|home| home.id).chain(self.message) {
            let _ = transport.deregister(buffer);
        }
    }

    /// Checks a completion of this connection.
    pub(super) fn completed(
        &mut self,
        transport: &mut Transport,
        done: &Completion,
        clock: &Clock,
    ) -> Result<(), Failure> {
        // The receives of a refused connection are flushed before the event of the refusal.
        if done.status == WcStatus::WrFlushErr && self.stage == Stage::Connecting {
            return Ok(());
        }
        if done.status != WcStatus::Success {
            return Err(Failure::Failed(format!("{:?} ended with {}; {}", done.opcode, done.status, self.describe())));
        }
        self.since = Instant::now();
        match done.opcode {
            WcOpcode::Recv => self.set_up(transport),
            WcOpcode::RecvWrite => self.returned(transport, done.imm, clock),
            _ => match self.pending.remove(&done.id) {
                None => Err(Failure::Failed(format!("request {} completed twice", done.id))),
                Some(Wanted::Nothing) => Ok(()),
                Some(Wanted::Bytes(buffer, wanted)) => {
                    let found =
                        transport.deregister(buffer).and_then(|memory| memory.into_vec().ok()).unwrap_or_default();
                    compare(&format!("{:?}", done.opcode), &found, &wanted)
                }
            },
        }
    }

    fn set_up(&mut self, transport: &mut Transport) -> Result<(), Failure> {
        let answer = self.message.take().and_then(|m| bytes(transport, m)).unwrap_or_default();
        let len = 4 + 16 * self.homes.len();
        match mrsp::Message::parse(answer.get(..len).unwrap_or_default()) {
            Ok(mrsp::Message::A(given)) if self.stage == Stage::SettingUp => {
                self.regions = given
                    .iter()
                    .zip(&self.homes)
                    .map(|(r, h)| Memory { addr: r.address(), rkey: r.rkey(), model: vec![0; h.len], home: *h })
                    .collect();
            }
            other => return Err(Failure::Content(format!("the set-up is answered with {other:?}"))),
        }
        // The device clears memory before it grants it: the model begins with zeros.
        self.stage = Stage::Working;
        Ok(())
    }

    fn returned(&mut self, transport: &mut Transport, imm: Option<u32>, clock: &Clock) -> Result<(), Failure> {
        let code = imm.map(ReturnCode::from_imm);
        if self.stage != Stage::Calling || code != Some(ReturnCode::SUCCESS) {
            return Err(Failure::Failed(format!("a call returned {code:?}; {}", self.describe())));
        }
        self.stage = Stage::Working;
        self.worst = self.worst.max(clock.now().saturating_sub(self.called));
        for memory in &mut self.regions {
            memory.model.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            compare("a call", &bytes(transport, memory.home.id).unwrap_or_default(), &memory.model)?;
        }
        transport
            .post_recv(self.conn, RecvWr { id: RECEIVE_ID + 9, slice: None })
            .map_err(|e| Failure::Failed(format!("a receive cannot be posted: {e}")))
    }
}

fn compare(what: &str, found: &[u8], wanted: &[u8]) -> Result<(), Failure> {
    if found == wanted {
        return Ok(());
    }
    let at = found.iter().zip(wanted).position(|(a, b)| a != b);
    Err(Failure::Content(match at {
        None => format!("{what} brought {} bytes instead of {}", found.len(), wanted.len()),
        Some(at) => {
            let wrong = found.iter().zip(wanted).filter(|(a, b)| a != b).count();
            format!(
                "{what} brought {wrong} wrong bytes of {}, the first at {at}: {:#04x} instead of {:#04x}",
                wanted.len(),
                found[at],
                wanted[at]
            )
        }
    }))
}

/// The bytes of a region.
fn bytes(transport: &Transport, region: RegionId) -> Option<Vec<u8>> {
    transport.region(region)?.to_vec().ok()
}
