// SPDX-License-Identifier: Apache-2.0
//! Region set-up: requests, memory, answers.

use std::sync::Arc;
use std::time::Duration;

use nacelle_roce::memory::Memory;
use nacelle_roce::{Access, SendWr};
use nacelle_wire::calls::{self, LongGiven, SetUp, SetUpAnswer, Step};
use nacelle_wire::extensions::Extensions;
use nacelle_wire::mrsp::{ARegion, Message, reason};

use super::SoftEngine;
use super::memory::OrderId;
use super::session::{Asked, At, Held, Session};
use super::windows::Found;
use crate::kernel::Run;

/// Regions of a connection, internal ones included.
pub(super) const MAX_REGIONS: usize = 32;

/// What a caller asks for.
pub(super) struct Wanted {
    pub(super) regions: Vec<Asked>,
    pub(super) steps: Vec<Step>,
    pub(super) deadline: Option<Duration>,
    /// It asked by a long set-up.
    pub(super) long: bool,
    /// What tells the owner of the window that it asks for.
    pub(super) told: Option<Arc<Run>>,
}

/// A request that waits for memory.
pub(super) struct Pending {
    order: OrderId,
    wanted: Wanted,
    /// Its immediate named its context.
    named: bool,
}

/// The regions of an answer.
enum Given {
    Short(Vec<ARegion>),
    Long(Vec<LongGiven>),
}

impl SoftEngine {
    /// Answers a region request. One that is wrong in its head changes nothing; any other takes the place of what the context
    /// had, whatever comes of it.
    pub(super) fn set_up(&mut self, at: At, named: bool, asked: Result<Wanted, u8>) {
        let given = asked.and_then(|mut wanted| {
            self.release_regions(at);
            if let Some(Found { run, memory }) = self.find_window(at, &wanted)? {
                wanted.told = Some(run);
                if let Some(memory) = memory {
                    return self.hold(at, wanted, vec![memory], true).map(Some);
                }
            }
            let sizes = self.reserve(at, &wanted.regions)?;
            match self.memory.make(sizes) {
                Ok(memory) => self.hold(at, wanted, memory, false).map(Some),
                Err(order) => {
                    if let Some(state) = self.sessions.context_mut(at) {
                        state.set_up = Some(Pending { order, wanted, named });
                    }
                    Ok(None)
                }
            }
        });
        if let Some(given) = given.transpose() {
            self.answer_set_up(at, named, given);
        }
    }

    /// The window that a request asks for, alone and without a chain.
    fn find_window(&self, at: At, wanted: &Wanted) -> Result<Option<Found>, u8> {
        let Some(session) = self.sessions.0.get(&at.conn) else { return Ok(None) };
        match (&wanted.regions[..], &wanted.steps[..]) {
            ([Asked { window: Some(number), flags, size, .. }], []) => {
                self.windows.find(session.party.peer, *number, *flags, *size).map(Some)
            }
            (regions, _) if regions.iter().any(|region| region.window.is_some()) => Err(reason::MALFORMED),
            _ => Ok(None),
        }
    }

    fn answer_set_up(&mut self, at: At, named: bool, given: Result<Given, u8>) {
        match &given {
            Ok(_) => {}
            Err(reason::NO_MEMORY | reason::NO_KEY | reason::NO_WINDOW | reason::WINDOW_TOO_SMALL) => {
                self.counters.regions_refused += 1
            }
            Err(_) => self.counters.messages_malformed += 1,
        }
        let mut answer = [0; calls::MAX_MESSAGE];
        let length = match &given {
            Ok(Given::Short(regions)) => Message::A(regions).write(&mut answer),
            Ok(Given::Long(regions)) => SetUpAnswer(regions).write(&mut answer),
            Err(code) => Message::Err(*code).write(&mut answer),
        };
        let answer = &answer[..length.expect("an answer of 32 regions fits")];
        self.answer(
            at,
            true,
            match named {
                true => SendWr::send_imm(0, answer, calls::answer_imm(at.context)),
                false => SendWr::send(0, answer),
            },
        );
    }

    /// Takes the memory for regions out of what is left, if there is enough. Gives the regions' sizes.
    fn reserve(&mut self, at: At, asked: &[Asked]) -> Result<Vec<usize>, u8> {
        let parameters = parameters(asked);
        if parameters == 0 || !asked[parameters..].iter().all(Asked::is_internal) {
            return Err(reason::MALFORMED);
        }
        let sizes = asked.iter().map(|region| usize::try_from(region.size));
        let sizes = sizes.collect::<Result<Vec<usize>, _>>().map_err(|_| reason::NO_MEMORY)?;
        let bytes = asked.iter().try_fold(0u64, |sum, region| sum.checked_add(region.size)).ok_or(reason::NO_MEMORY)?;
        let Some(session) = self.sessions.0.get_mut(&at.conn) else { return Err(reason::NO_MEMORY) };
        let holder = session.holder();
        let of_entry = session.by.and_then(|entry| self.admission.memory(entry));
        let of_caller = Some(self.config.memory_per_caller).filter(|quota| *quota != 0);
        let quota = of_entry.or(of_caller).unwrap_or(u64::MAX);
        let exceeds = |held: u64, limit: u64| held.checked_add(bytes).is_none_or(|sum| sum > limit);
        if exceeds(self.held.total(), self.config.memory_bytes) || exceeds(self.held.of(holder), quota) {
            return Err(reason::NO_MEMORY);
        }
        if let Some(state) = session.contexts.get_mut(usize::from(at.context.0)) {
            state.bytes = bytes;
            self.held.take(holder, bytes);
        }
        Ok(sizes)
    }

    /// Gives a context its regions, of this memory; all or none. `shared` memory is the program's, and only read.
    fn hold(&mut self, at: At, wanted: Wanted, memory: Vec<Memory>, shared: bool) -> Result<Given, u8> {
        let rights = match shared {
            true => Access::REMOTE_READ,
            false => Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
        };
        for (asked, memory) in wanted.regions.iter().zip(memory) {
            let here = self.endpoint.transport.register(memory, rights, Some(at.conn));
            match (here, self.sessions.context_mut(at)) {
                (Ok(here), Some(state)) => state.regions.push(Held { asked: *asked, here, shared }),
                _ => {
                    self.release_regions(at);
                    return Err(reason::NO_KEY);
                }
            }
        }
        let Some(state) = self.sessions.context_mut(at) else { return Err(reason::NO_KEY) };
        (state.steps, state.deadline, state.window) = (wanted.steps, wanted.deadline, wanted.told);
        let given = state.regions[..parameters(&wanted.regions)].iter();
        let given = given.map(|held| (held.here.addr, held.here.rkey, held.asked.size));
        Ok(if wanted.long {
            Given::Long(given.map(|(addr, rkey, size)| LongGiven::new(addr, rkey, size)).collect())
        } else {
            Given::Short(given.map(|(addr, rkey, size)| ARegion::new(addr, rkey, size as u32)).collect())
        })
    }

    /// Goes on with set-ups that there is memory for now.
    pub(super) fn serve_set_ups(&mut self) {
        while let Some((order, memory)) = self.memory.poll() {
            match self.sessions.ordered(order) {
                Some((at, Pending { wanted, named, .. })) => {
                    let given = self.hold(at, wanted, memory, false);
                    self.answer_set_up(at, named, given);
                    self.go_on(at);
                }
                // Its caller has gone.
                None => memory.into_iter().for_each(|memory| self.memory.discard(memory)),
            }
        }
    }
}

impl Pending {
    /// Whether this order is for it.
    pub(super) const fn waits_for(&self, order: OrderId) -> bool {
        self.order == order
    }
}

/// How many of the regions are parameters, which come first.
pub(super) fn parameters<'a>(asked: impl IntoIterator<Item = &'a Asked>) -> usize {
    asked.into_iter().take_while(|region| !region.is_internal()).count()
}

/// What a message asks for, or the code of what is wrong with its head.
pub(super) fn parse_request(message: &[u8], session: &Session) -> Result<Wanted, u8> {
    let wanted = if SetUp::is_one(message) && session.agreed.extensions.contains(Extensions::LONG_SET_UP) {
        let SetUp { deadline_ms, steps, regions } = SetUp::parse(message).map_err(|_| reason::MALFORMED)?;
        Wanted {
            regions: regions.iter().map(Asked::from).collect(),
            steps: steps.to_vec(),
            deadline: Some(Duration::from_millis(deadline_ms.into())).filter(|time| !time.is_zero()),
            long: true,
            told: None,
        }
    } else {
        let Ok(Message::Aar(asked)) = Message::parse(message) else { return Err(reason::MALFORMED) };
        let regions = asked.iter().map(Asked::from).collect();
        Wanted { regions, steps: Vec::new(), deadline: None, long: false, told: None }
    };
    match wanted.regions.len() {
        0 => Err(reason::MALFORMED),
        count if count > session.max_regions() => Err(reason::TOO_MANY_REGIONS),
        _ => Ok(wanted),
    }
}
