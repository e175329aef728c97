// SPDX-License-Identifier: Apache-2.0
//! A sign of life of a device without ICMP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nacelle_roce::SendWr;
use nacelle_wire::extensions::Agreement;
use nacelle_wire::{RemoteAddr, Rkey};

use crate::channel::Channel;
use crate::device::Shared;
use crate::engine::State;
use crate::inbox::deadline_in;
use crate::{Error, Step};

/// Opens a connection, WRITEs nothing, and returns the time until that was acknowledged.
///
/// # Errors
/// [`Error::Unreachable`] if no acknowledgement comes within `patience`; else as [`crate::Device::create`].
pub(crate) fn by_write(shared: &Arc<Shared>, patience: Duration) -> Result<Duration, Error> {
    let connection = Channel::open(Arc::clone(shared), Agreement::default())?;
    let (ip, id) = (shared.ip, connection.id);
    let began = Instant::now();
    shared.engine.act(|state| {
        // Without a byte no key is needed (IBTA 9.7.4.1.5).
        let posted = state.endpoint.transport.post_send(id, SendWr::write(0, Vec::new(), RemoteAddr(0), Rkey(0)));
        posted.map_err(|error| Error::lost(ip, Step::Connect, error))?;
        state.inbox.session(id).slot(0).sends += 1;
        Ok::<(), Error>(())
    })??;
    let look = |state: &mut State| {
        let session = state.inbox.session(id);
        (session.slot(0).sends == 0 || session.end.is_some()).then_some(session.end.clone())
    };
    match shared.engine.wait(&connection.wake(0), deadline_in(patience), look)? {
        Some(None) => Ok(began.elapsed()),
        Some(Some(end)) => Err(end.error(ip, Step::Connect, began.elapsed())),
        None => Err(Error::Unreachable { ip, waited: began.elapsed() }),
    }
}
