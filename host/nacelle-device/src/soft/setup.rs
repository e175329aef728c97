// SPDX-License-Identifier: Apache-2.0
//! Region set-up: requests, memory, answers.

use nacelle_roce::memory::Memory;
use nacelle_roce::{Access, ConnId, SendWr};
use nacelle_wire::mrsp::{ARegion, AarRegion, MAX_MESSAGE, Message, RegionFlags, reason};

use super::buffer::Buffer;
use super::session::{Held, Session};
use super::{LAST, SoftEngine};

/// Regions of a connection, internal ones included.
pub(super) const MAX_REGIONS: usize = 32;

impl SoftEngine {
    /// Answers a region request. One that is wrong in its head changes nothing; any other takes the place of what the caller
    /// had, whatever comes of it.
    pub(super) fn set_up(&mut self, conn: ConnId, asked: Result<Vec<AarRegion>, u8>) {
        let given = asked.and_then(|asked| {
            self.release_regions(conn);
            self.reserve(conn, &asked)?;
            match self.memory.make(asked.iter().map(|region| region.size() as usize).collect()) {
                Ok(buffers) => self.hold(conn, &asked, buffers).map(Some),
                Err(order) => {
                    if let Some(session) = self.sessions.get_mut(&conn) {
                        session.set_up = Some((order, asked));
                    }
                    Ok(None)
                }
            }
        });
        if let Some(given) = given.transpose() {
            self.answer_set_up(conn, given);
        }
    }

    fn answer_set_up(&mut self, conn: ConnId, given: Result<Vec<ARegion>, u8>) {
        match &given {
            Ok(_) => {}
            Err(reason::NO_MEMORY | reason::NO_KEY) => self.counters.regions_refused += 1,
            Err(_) => self.counters.messages_malformed += 1,
        }
        let mut answer = [0; MAX_MESSAGE];
        let message = given.as_deref().map_or_else(|code| Message::Err(*code), Message::A);
        let length = message.write(&mut answer).expect("an answer of 32 regions fits");
        self.answer(conn, SendWr::send(LAST, &answer[..length]));
    }

    /// Takes the memory for regions out of what is left, if there is enough.
    fn reserve(&mut self, conn: ConnId, asked: &[AarRegion]) -> Result<(), u8> {
        let parameters = parameters(asked);
        if parameters == 0 || !asked[parameters..].iter().all(is_internal) {
            return Err(reason::MALFORMED);
        }
        let bytes: u64 = asked.iter().map(|region| u64::from(region.size())).sum();
        let peer = self.sessions.get(&conn).map(|session| session.peer);
        let callers = self.sessions.values().filter(|session| Some(session.peer) == peer);
        let callers = callers.map(|session| session.bytes).sum::<u64>();
        let callers = callers + peer.map_or(0, |peer| self.orphaned_by(peer));
        let quota = Some(self.config.memory_per_caller).filter(|quota| *quota != 0).unwrap_or(u64::MAX);
        if self.bytes + bytes > self.config.memory_bytes || callers + bytes > quota {
            return Err(reason::NO_MEMORY);
        }
        if let Some(session) = self.sessions.get_mut(&conn) {
            session.bytes = bytes;
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Gives a caller its regions, of these buffers; all or none.
    fn hold(&mut self, conn: ConnId, asked: &[AarRegion], buffers: Vec<Buffer>) -> Result<Vec<ARegion>, u8> {
        let rights = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        for (asked, buffer) in asked.iter().zip(buffers) {
            let here = self.endpoint.transport.register(Memory::new(buffer), rights, Some(conn));
            match (here, self.sessions.get_mut(&conn)) {
                (Ok(here), Some(session)) => session.regions.push(Held { asked: *asked, here }),
                _ => {
                    self.release_regions(conn);
                    return Err(reason::NO_KEY);
                }
            }
        }
        let Some(session) = self.sessions.get(&conn) else { return Err(reason::NO_KEY) };
        let given = session.regions[..parameters(asked)].iter();
        Ok(given.map(|held| ARegion::new(held.here.addr, held.here.rkey, held.asked.size())).collect())
    }

    /// Goes on with set-ups that there is memory for now.
    pub(super) fn serve_set_ups(&mut self) {
        while let Some((order, buffers)) = self.memory.poll() {
            let ordered = |session: &Session| session.set_up.as_ref().is_some_and(|(id, _)| *id == order);
            let found = self.sessions.iter_mut().find(|(_, session)| ordered(session));
            let set_up = found.and_then(|(conn, session)| Some((*conn, session.set_up.take()?.1)));
            match set_up {
                Some((conn, asked)) => {
                    let given = self.hold(conn, &asked, buffers);
                    self.answer_set_up(conn, given);
                    self.go_on(conn);
                }
                // Its caller has gone.
                None => buffers.into_iter().for_each(|buffer| self.memory.discard(buffer)),
            }
        }
    }
}

/// Whether a region is scratch memory.
pub(super) fn is_internal(region: &AarRegion) -> bool {
    region.flags().contains(RegionFlags::INTERNAL)
}

/// How many of the regions are parameters, which come first.
pub(super) fn parameters<'a>(asked: impl IntoIterator<Item = &'a AarRegion>) -> usize {
    asked.into_iter().take_while(|region| !is_internal(region)).count()
}

/// The regions that a message asks for, or the code of what is wrong with its head.
pub(super) fn parse_request(message: &[u8]) -> Result<Vec<AarRegion>, u8> {
    match Message::parse(message) {
        Ok(Message::Aar([])) => Err(reason::MALFORMED),
        Ok(Message::Aar(asked)) if asked.len() > MAX_REGIONS => Err(reason::TOO_MANY_REGIONS),
        Ok(Message::Aar(asked)) => Ok(asked.to_vec()),
        _ => Err(reason::MALFORMED),
    }
}
