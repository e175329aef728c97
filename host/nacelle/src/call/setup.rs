// SPDX-License-Identifier: Apache-2.0
//! Region set-up: the caller's regions for the device's, by MRSP or by a long set-up.

use std::net::IpAddr;

use nacelle_wire::calls::{LongRegion, SetUp, Step as WireStep};
use nacelle_wire::extensions::Extensions;
use nacelle_wire::mrsp::{AarRegion, Message};
use nacelle_wire::{RemoteAddr, Rkey, calls};

use super::{Call, Parameter, Program, lost};
use crate::exchange::{Answer, Given};
use crate::region::{Region, Role};
use crate::transport::{RegisterError, Transport, link_error};
use crate::{Error, Step};

/// Device memory is requested in pages of this size, as upstream callers do.
const PAGE: u64 = 4096;

impl Call {
    /// Registers the regions for the call's connection.
    pub(super) fn register(&mut self, regions: Vec<Region>) -> Result<(), Error> {
        let (ip, conn) = (self.line.shared.ip, self.channel.id);
        let mut state = self.line.shared.engine.lock();
        for Region { role, memory, size } in regions {
            if role == Role::Internal {
                self.places.push(None);
                self.internal.push(size as u64);
                continue;
            }
            // The device may write it while a call runs, and only then.
            let local = state.endpoint.transport.register(memory, role.comes_back(), conn);
            let local = local.map_err(|error| unregistered(ip, &error))?;
            self.places.push(Some(self.parameters.len()));
            self.parameters.push(Parameter { role, local, address: RemoteAddr(0), rkey: Rkey(0) });
        }
        Ok(())
    }

    /// Registers the regions again, for another connection.
    pub(super) fn register_again(&mut self) -> Result<(), Error> {
        let conn = self.channel.id;
        let mut state = self.line.shared.engine.lock();
        let transport: &mut Transport = &mut state.endpoint.transport;
        for parameter in &mut self.parameters {
            let Some(memory) = transport.deregister(parameter.local.id) else { continue };
            match transport.register(memory, parameter.role.comes_back(), conn) {
                Ok(local) => parameter.local = local,
                Err(error) => return Err(unregistered(self.line.shared.ip, &error)),
            }
        }
        Ok(())
    }

    /// Tells the device of the regions, and takes the device's regions from its answer.
    pub(super) fn set_up(&mut self) -> Result<(), Error> {
        let mut message = [0; calls::MAX_MESSAGE];
        let length = self.request(&mut message)?;
        let given = match self.channel.exchange(self.context, &message[..length])? {
            Answer::Given(given) => given,
            Answer::Refused(code) => {
                let sizes = self.parameters.iter().map(|parameter| parameter.local.len as u64);
                let sizes = sizes.chain(self.internal.iter().copied());
                let bytes = sizes.map(|size| size.next_multiple_of(PAGE)).sum();
                return Err(Error::RegionsRefused { ip: self.shared().ip, code, bytes });
            }
        };
        self.check_given(&given).map_err(|what| self.channel.broken(Step::RegionSetup, what))?;
        for (parameter, given) in self.parameters.iter_mut().zip(given) {
            (parameter.address, parameter.rkey) = (given.address, given.rkey);
        }
        self.is_set_up = true;
        self.calls = 0;
        Ok(())
    }

    /// Whether only a long set-up can say what this call needs.
    fn needs_long_set_up(&self) -> Option<&'static str> {
        let sizes = self.parameters.iter().map(|parameter| parameter.local.len as u64);
        if matches!(self.program, Program::Chain(_)) {
            Some("chains")
        } else if sizes.chain(self.internal.iter().copied()).any(|size| u32::try_from(size).is_err()) {
            Some("regions of 2^32 bytes and more")
        } else {
            None
        }
    }

    /// Writes the region request, and returns its length.
    fn request(&self, message: &mut [u8]) -> Result<usize, Error> {
        let is_long = self.channel.agreement.extensions.contains(Extensions::LONG_SET_UP);
        let needs = self.needs_long_set_up();
        if let (Some(what), false) = (needs, is_long) {
            return Err(Error::Unsupported { ip: self.shared().ip, what });
        }
        let length = if is_long && (needs.is_some() || self.deadline.is_some()) {
            self.long_request(message)
        } else {
            self.short_request(message)
        };
        length.map_err(|_| Error::invalid(format!("{} regions do not fit a region request", self.places.len())))
    }

    fn short_request(&self, message: &mut [u8]) -> Result<usize, nacelle_wire::BuildError> {
        let mut end = 0u64;
        let mut place = |size: u64| {
            let at = end;
            end += size.next_multiple_of(PAGE);
            at
        };
        let internal: Vec<_> =
            self.internal.iter().map(|&size| AarRegion::internal(place(size), size as u32)).collect();
        let parameters = self.parameters.iter().map(|Parameter { role, local, .. }| {
            let size = local.len as u64;
            AarRegion::parameter(role.flags(), place(size), local.addr, local.rkey, size as u32)
        });
        let regions: Vec<_> = parameters.chain(internal).collect();
        Message::Aar(&regions).write(message)
    }

    fn long_request(&self, message: &mut [u8]) -> Result<usize, nacelle_wire::BuildError> {
        let parameters = self.parameters.iter().map(|Parameter { role, local, .. }| {
            LongRegion::parameter(role.flags(), local.addr, local.rkey, local.len as u64)
        });
        let regions: Vec<_> = parameters.chain(self.internal.iter().map(|&size| LongRegion::internal(size))).collect();
        let steps: Vec<_> = match &self.program {
            Program::Function(_) => Vec::new(),
            Program::Chain(steps) => steps
                .iter()
                .map(|step| {
                    let [a, b, c] = step.user;
                    let (first, count) = (step.regions.start as u8, step.regions.len() as u8);
                    WireStep::new(step.function, first, count, u32::from_le_bytes([a, b, c, 0]))
                })
                .collect(),
        };
        // A deadline of less than a millisecond is one all the same.
        let deadline = self.deadline.map_or(0, |deadline| deadline.as_millis().max(1));
        let deadline_ms = u32::try_from(deadline).unwrap_or(u32::MAX);
        SetUp { deadline_ms, steps: &steps, regions: &regions }.write(message)
    }

    /// What is wrong with the regions that the device gives: each must be as long as was asked for, and none lie on another.
    fn check_given(&self, given: &[Given]) -> Result<(), String> {
        if given.len() != self.parameters.len() {
            return Err(format!("it gave {} regions for {}", given.len(), self.parameters.len()));
        }
        let indices = self.places.iter().enumerate().filter_map(|(index, place)| place.map(|_| index));
        let mut extents = Vec::new();
        for ((index, parameter), given) in indices.zip(&self.parameters).zip(given) {
            let (got, want) = (given.size, parameter.local.len as u64);
            if got != want {
                return Err(format!("it gave {got} bytes for region {index} of {want} bytes"));
            }
            let first = given.address.0;
            let Some(last) = first.checked_add(got - 1) else {
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

/// Memory was not registered.
fn unregistered(ip: IpAddr, error: &RegisterError) -> Error {
    match error {
        RegisterError::Software(error) => lost(ip, Step::RegionSetup, error),
        RegisterError::Nic(error) => Error::Link(link_error(error)),
    }
}
