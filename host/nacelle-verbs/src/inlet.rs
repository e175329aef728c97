// SPDX-License-Identifier: Apache-2.0
//! What comes from the NIC: completions, and events of connection management.

use core::ffi::{c_int, c_uint};
use core::ptr;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::VerbsError;
use crate::abi::WorkCompletion;
use crate::hardware::Hardware;

/// Completions that one look takes at most.
const BATCH: usize = 16;
/// While completions are polled for, events of connection management, which cost a system call, are looked for this often.
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// Something that has come.
#[derive(Debug)]
pub struct Arrival<'a>(pub(crate) Kind<'a>);

#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Completions(&'a [WorkCompletion]),
    Management(Management),
}

/// An event of connection management.
#[derive(Debug)]
pub(crate) struct Management {
    /// The connection that it concerns, as its identifier's context says.
    pub(crate) connection: u64,
    pub(crate) event: c_uint,
    pub(crate) status: c_int,
    pub(crate) private_data: Vec<u8>,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) remote_qpn: u32,
}

/// Where everything comes from: for the one thread that looks, without a lock.
pub struct Inlet {
    hardware: Arc<Hardware>,
    found: [WorkCompletion; BATCH],
    /// Completions in `found` that were not given out.
    kept: usize,
    is_armed: bool,
    /// When to look for events of connection management.
    next_look: Instant,
}

impl Inlet {
    pub(crate) fn new(hardware: Arc<Hardware>) -> Self {
        Self {
            hardware,
            found: [WorkCompletion::default(); BATCH],
            kept: 0,
            is_armed: false,
            next_look: Instant::now(),
        }
    }

    /// Gives what is there to `take`: some completions, or one event. Returns whether there was anything.
    ///
    /// # Errors
    /// If the connection manager is broken.
    pub fn receive(&mut self, take: impl FnOnce(Arrival<'_>)) -> Result<bool, VerbsError> {
        let was_armed = core::mem::take(&mut self.is_armed);
        if was_armed {
            self.hardware.clear();
        }
        let count = match core::mem::take(&mut self.kept) {
            0 => self.hardware.poll(&mut self.found),
            kept => kept,
        };
        if count > 0 {
            take(Arrival(Kind::Completions(&self.found[..count])));
            return Ok(true);
        }
        let now = Instant::now();
        if !was_armed && now < self.next_look {
            return Ok(false);
        }
        let event = self.management()?;
        // Behind one there may be more.
        self.next_look = if event.is_some() { now } else { now + LOOK_EVERY };
        Ok(event.map(|event| take(Arrival(Kind::Management(event)))).is_some())
    }

    /// The next event of connection management.
    fn management(&mut self) -> Result<Option<Management>, VerbsError> {
        let library = self.hardware.library;
        let _no_identifier_is_destroyed = self.hardware.managing();
        let mut event = ptr::null_mut();
        // SAFETY: the channel lives as long as `hardware`. The event, its identifier and its private data are there until the event
        // is acknowledged, which is done once, after all was copied; destroying the identifier waits for that.
        unsafe {
            if (library.rdma_get_cm_event)(self.hardware.management, &raw mut event) != 0 {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                    _ => {
                        Err(VerbsError::System { what: "read an event of the RDMA connection manager", source: error })
                    }
                };
            }
            let param = &(*event).param;
            let private_data = match usize::from(param.private_data_len) {
                0 => Vec::new(),
                _ if param.private_data.is_null() => Vec::new(),
                length => core::slice::from_raw_parts(param.private_data.cast::<u8>(), length).to_vec(),
            };
            let management = Management {
                connection: (*(*event).id).context as u64,
                event: (*event).event,
                status: (*event).status,
                private_data,
                responder_resources: param.responder_resources,
                initiator_depth: param.initiator_depth,
                remote_qpn: param.qp_num,
            };
            (library.rdma_ack_cm_event)(event);
            Ok(Some(management))
        }
    }

    /// Announces that nobody looks from now on until the descriptor is readable.
    pub fn arm(&mut self) {
        self.is_armed = true;
        self.hardware.arm();
        // What completed before that makes nothing readable.
        if self.kept == 0 {
            self.kept = self.hardware.poll(&mut self.found);
        }
        if self.kept > 0 {
            self.hardware.announce();
        }
    }

    /// Readable when something may be there, after [`arm`](Self::arm).
    #[must_use]
    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        self.hardware.fd()
    }
}
