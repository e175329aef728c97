// SPDX-License-Identifier: Apache-2.0
//! Region set-up: the caller's regions for the device's (MRSP).

use std::sync::Arc;

use nacelle_roce::{Access, Completion, RecvWr, SendWr, WcOpcode};
use nacelle_wire::mrsp::{ARegion, AarRegion, MAX_MESSAGE, Message};
use nacelle_wire::{RemoteAddr, Rkey};

use super::{Call, Parameter};
use crate::engine::State;
use crate::region::{Region, Role};
use crate::{Error, Step};

/// Device memory is requested in pages of this size, as upstream callers do.
const PAGE: u64 = 4096;

impl Call {
    /// Sends the regions to the device, and takes the device's regions from its answer.
    pub(super) fn set_up(&mut self, regions: Vec<Region>) -> Result<(), Error> {
        let (shared, conn) = (Arc::clone(&self.connection.shared), self.connection.id);
        let mut asked = 0u64;
        let answer = shared.engine.act(|state| self.ask_for_regions(state, regions, &mut asked))??;
        let outcome =
            self.connection.wait_until(Step::RegionSetup, |session| session.received.is_some() && session.sends == 0);
        let (completion, message) = {
            let mut state = shared.engine.lock();
            let message = state.endpoint.transport.deregister(answer.id).and_then(|memory| memory.into_vec().ok());
            (state.inbox.session(conn).received.take(), message)
        };
        outcome?;
        match completion {
            Some(Completion { opcode: WcOpcode::Recv, byte_len, .. }) => {
                self.accept_regions(message.as_deref().and_then(|all| all.get(..byte_len)).unwrap_or_default(), asked)
            }
            _ => Err(self
                .connection
                .broken(Step::RegionSetup, "it answered the region request by a WRITE, not by a SEND".into())),
        }
    }

    /// Registers the regions and posts the region request. Returns where the answer goes, and in `asked` how many bytes of
    /// device memory were asked for.
    fn ask_for_regions(
        &mut self,
        state: &mut State,
        regions: Vec<Region>,
        asked: &mut u64,
    ) -> Result<nacelle_roce::Region, Error> {
        let (ip, conn) = (self.connection.shared.ip, self.connection.id);
        let failed =
            |error: &dyn std::fmt::Display| Error::Lost { ip, step: Step::RegionSetup, detail: error.to_string() };
        let mut place = |size: usize| {
            let at = *asked;
            *asked += (size as u64).next_multiple_of(PAGE);
            at
        };
        let internal: Vec<AarRegion> = regions
            .iter()
            .filter(|region| region.role == Role::Internal)
            .map(|region| AarRegion::internal(place(region.size), region.size as u32))
            .collect();
        let mut aar = Vec::new();
        let endpoint = &mut state.endpoint;
        for Region { role, memory, size } in regions {
            if role == Role::Internal {
                self.places.push(None);
                continue;
            }
            // The device may write it while a call runs, and only then.
            let local = endpoint.transport.register(memory, Access::LOCAL, Some(conn)).map_err(|e| failed(&e))?;
            self.places.push(Some(self.parameters.len()));
            let remote = ARegion::new(RemoteAddr(0), Rkey(0), 0);
            self.parameters.push(Parameter { role, local, remote });
            aar.push(AarRegion::parameter(role.flags(), place(size), local.addr, local.rkey, size as u32));
        }
        aar.extend(internal);
        let mut message = [0; MAX_MESSAGE];
        let length = Message::Aar(&aar).write(&mut message).map_err(|e| Error::invalid(e.to_string()))?;
        let answer =
            endpoint.transport.register(vec![0; MAX_MESSAGE], Access::LOCAL, Some(conn)).map_err(|e| failed(&e))?;
        endpoint.transport.post_recv(conn, RecvWr { id: 0, slice: Some(answer.all()) }).map_err(|e| failed(&e))?;
        state.inbox.session(conn).receives = true;
        endpoint.transport.post_send(conn, SendWr::send(0, &message[..length])).map_err(|e| failed(&e))?;
        state.inbox.session(conn).sends += 1;
        Ok(answer)
    }

    fn accept_regions(&mut self, message: &[u8], asked: u64) -> Result<(), Error> {
        let ip = self.connection.shared.ip;
        let what = match Message::parse(message) {
            Ok(Message::A(given)) => match self.check_regions(given) {
                Ok(()) => {
                    self.parameters.iter_mut().zip(given).for_each(|(parameter, given)| parameter.remote = *given);
                    return Ok(());
                }
                Err(what) => what,
            },
            Ok(Message::Err(code)) => return Err(Error::RegionsRefused { ip, code, bytes: asked }),
            Ok(Message::Aar(_)) => "it answered a region request by one of its own".into(),
            Err(error) => format!("its answer to the region request is wrong: {error}"),
        };
        Err(self.connection.broken(Step::RegionSetup, what))
    }

    /// What is wrong with the regions that the device gives: each must be as long as was asked for, and none lie on another.
    fn check_regions(&self, given: &[ARegion]) -> Result<(), String> {
        if given.len() != self.parameters.len() {
            return Err(format!("it gave {} regions for {}", given.len(), self.parameters.len()));
        }
        let indices = self.places.iter().enumerate().filter_map(|(index, place)| place.map(|_| index));
        let mut extents = Vec::new();
        for ((index, parameter), given) in indices.zip(&self.parameters).zip(given) {
            let (got, want) = (given.size(), parameter.local.len);
            if got as usize != want {
                return Err(format!("it gave {got} bytes for region {index} of {want} bytes"));
            }
            let first = given.address().0;
            let Some(last) = first.checked_add(u64::from(got) - 1) else {
                return Err(format!("region {index} at {first:#x} lies beyond the end of the address space"));
            };
            extents.push((first, last, index));
        }
        extents.sort_unstable();
        match extents.windows(2).find(|pair| pair[1].0 <= pair[0].1) {
            Some(pair) => Err(format!("regions {} and {} overlap", pair[0].2, pair[1].2)),
            None => Ok(()),
        }
    }
}
