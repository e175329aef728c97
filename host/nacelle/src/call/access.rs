// SPDX-License-Identifier: Apache-2.0
//! WRITE and READ of a region at the device, between calls.

use nacelle_roce::SendWr;

use super::start::MAX_WRITE;
use super::{Call, lost};
use crate::engine::State;
use crate::{Error, Step};

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToDevice,
    FromDevice,
}

impl Call {
    /// WRITEs region `index` as the caller has it into device memory, without a call, and returns when the device has
    /// acknowledged it: the data is there then. Regions of 2^31 bytes and more are refused.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the caller has no such region, it is too long, or a call runs; [`Error::Transport`] if the
    /// device refuses the access; [`Error::Timeout`] or [`Error::Lost`] if it stops responding.
    pub fn write_region(&mut self, index: usize) -> Result<(), Error> {
        self.transfer(index, Way::ToDevice)
    }

    /// READs region `index` from device memory into the caller's, without a call.
    ///
    /// # Errors
    /// As [`Call::write_region`].
    pub fn read_region(&mut self, index: usize) -> Result<(), Error> {
        self.transfer(index, Way::FromDevice)
    }

    fn transfer(&mut self, index: usize, way: Way) -> Result<(), Error> {
        if self.running.is_some() {
            return Err(Error::invalid("the call runs: its regions belong to the device until it ends"));
        }
        let parameter = self.parameter(index)?;
        let (ip, conn, context) = (self.line.shared.ip, self.channel.id, self.context);
        let (local, remote, rkey) = (parameter.local, parameter.address, parameter.rkey);
        if local.len > MAX_WRITE {
            return Err(Error::invalid(format!(
                "region {index} of {} bytes: one access has at most {MAX_WRITE}",
                local.len
            )));
        }
        let step = if way == Way::ToDevice { Step::Inputs } else { Step::Outputs };
        let id = u64::from(context);
        let request = match way {
            Way::ToDevice => SendWr::write(id, local.all(), remote, rkey),
            Way::FromDevice => SendWr::read(id, local.all(), remote, rkey),
        };
        self.line.shared.engine.act(|state| {
            let State { endpoint, inbox, .. } = state;
            let session = inbox.session(conn);
            if let Some(end) = &session.end {
                return Err(end.error(ip, step, std::time::Duration::ZERO));
            }
            endpoint.transport.post_send(conn, request).map_err(|error| lost(ip, step, &error))?;
            session.slot(context).sends += 1;
            Ok(())
        })??;
        self.channel.wait_until(step, context, |session| session.slot(context).sends == 0)
    }
}
