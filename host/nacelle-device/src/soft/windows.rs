// SPDX-License-Identifier: Apache-2.0
//! Windows: memory that callers write or read under a number, and the functions of the program that are told (docs/reference/transfers.md).
//!
//! The table belongs to the program, which changes it while the device runs. A caller's region request finds its window here. Of a
//! window that is written each caller has memory of its own; of one that is read all have the program's.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use nacelle_roce::memory::{Memory, Shared};
use nacelle_wire::mrsp::{RegionFlags, WindowNumber, reason};

use crate::kernel::{Call, Failure, Run};
use crate::{DeviceError, Gate};

/// How long a window that is dropped waits for its callbacks that run.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// A write that has arrived.
#[derive(Debug)]
#[non_exhaustive]
pub struct IncomingWrite<'a> {
    /// Who wrote.
    pub peer: IpAddr,
    /// The window.
    pub window: u32,
    /// What the writer says of this write: 16 bits.
    pub label: u32,
    /// The writer's memory in the window, which nobody else writes; as long as the writer has asked for. What it is changed to, the writer
    /// can read.
    pub bytes: &'a mut [u8],
}

/// A peer has read, and says so.
#[derive(Debug)]
#[non_exhaustive]
pub struct IncomingRead {
    /// Who read.
    pub peer: IpAddr,
    /// The window.
    pub window: u32,
    /// What the reader says of this read: 16 bits.
    pub label: u32,
}

type OnWrite = dyn Fn(IncomingWrite<'_>) -> Result<(), Failure> + Send + Sync;
type OnRead = dyn Fn(IncomingRead) -> Result<(), Failure> + Send + Sync;

/// Which way the bytes of a window go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Direction {
    /// Peers write.
    Write,
    /// Peers read.
    Read,
}

enum Served {
    Write {
        longest: usize,
        run: Arc<OnWrite>,
    },
    /// The bytes are there as long as the program keeps them.
    Read {
        shared: Weak<Shared>,
        run: Arc<OnRead>,
    },
}

impl Served {
    fn direction(&self) -> Direction {
        match self {
            Self::Write { .. } => Direction::Write,
            Self::Read { .. } => Direction::Read,
        }
    }
}

type Place = (Direction, WindowNumber);

/// What there is of an open window.
struct Open {
    served: Served,
    /// Through which its callback runs.
    gate: Arc<Gate>,
}

/// A window is open as long as this lives. Who has a part of it when it is closed keeps that: memory of its own until its connection
/// ends, the program's until the [`Shared`] is dropped. Its callback does not begin any more: peers that tell the owner get
/// [`nacelle::Error::SocketUnavailable`].
///
/// Dropping it waits for its callbacks that run, for 10 s at most, unless it was closed before; a callback that drops its own window does
/// not wait for itself. [`Window::close`] waits for another time, and says whether it was enough.
#[must_use = "the window is closed when this is dropped"]
#[derive(Debug)]
pub struct Window {
    windows: Windows,
    place: Place,
    gate: Arc<Gate>,
}

impl Window {
    /// Closes it, and waits for its callbacks that run, but for the one that calls this, for `patience` at most. Returns whether none of
    /// them runs any more. May be repeated.
    pub fn close(&self, patience: Duration) -> bool {
        // Its function, which belongs to the program, is dropped without the lock.
        let _closed = self.windows.remove(&self.place, &self.gate);
        self.gate.close(patience)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if !self.gate.is_closed() {
            self.close(CLOSE_WITHIN);
        }
    }
}

/// What a caller gets of a window.
pub(super) struct Found {
    /// What runs when the caller says that it has written or read.
    pub(super) run: Arc<Run>,
    /// A part of the program's memory; none if the caller gets memory of its own.
    pub(super) memory: Option<Memory>,
}

/// The windows of a device. Clones are the same.
///
/// They may be opened before there is a device ([`SoftConfig::windows`](crate::SoftConfig::windows)), so that the first peer finds them.
#[derive(Clone, Default)]
pub struct Windows(Arc<Mutex<HashMap<Place, Open>>>);

impl std::fmt::Debug for Windows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

impl Windows {
    /// None are open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Open>> {
        // Nothing that could panic changes the table.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out the window with this gate, if it is there.
    fn remove(&self, place: &Place, gate: &Arc<Gate>) -> Option<Open> {
        let mut open = self.lock();
        open.get(place).is_some_and(|open| Arc::ptr_eq(&open.gate, gate)).then(|| open.remove(place)).flatten()
    }

    /// Lets peers write up to `longest` bytes under this number. Each gets memory of its own, all zero, within the bounds of the device;
    /// `callback` runs for each write that a peer says is complete, and what it returns is the peer's result:
    /// [`nacelle::Error::Kernel`] with the code of a [`Failure`].
    ///
    /// # Errors
    /// [`DeviceError::WindowOpen`].
    pub fn accept_incoming_write(
        &self,
        number: u32,
        longest: usize,
        callback: impl Fn(IncomingWrite<'_>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Result<Window, DeviceError> {
        self.open(number, Served::Write { longest, run: Arc::new(callback) })
    }

    /// Lets peers read these bytes under this number, as they are at that moment, without any part of this program; `callback` runs when a
    /// peer says that it has read.
    ///
    /// # Errors
    /// [`DeviceError::WindowOpen`].
    pub fn accept_incoming_read(
        &self,
        number: u32,
        bytes: &Arc<Shared>,
        callback: impl Fn(IncomingRead) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Result<Window, DeviceError> {
        self.open(number, Served::Read { shared: Arc::downgrade(bytes), run: Arc::new(callback) })
    }

    fn open(&self, number: u32, served: Served) -> Result<Window, DeviceError> {
        let place = (served.direction(), WindowNumber(number));
        match self.lock().entry(place) {
            Entry::Occupied(_) => Err(DeviceError::WindowOpen { number }),
            Entry::Vacant(entry) => {
                let gate = Arc::<Gate>::default();
                entry.insert(Open { served, gate: Arc::clone(&gate) });
                Ok(Window { windows: self.clone(), place, gate })
            }
        }
    }

    /// What a caller gets that asks for this region, which names this window; or the code of what is wrong.
    pub(super) fn find(&self, peer: IpAddr, number: WindowNumber, flags: RegionFlags, size: u64) -> Result<Found, u8> {
        let direction = match (flags.contains(RegionFlags::INPUT), flags.contains(RegionFlags::OUTPUT)) {
            (true, false) => Direction::Write,
            (false, true) => Direction::Read,
            _ => return Err(reason::MALFORMED),
        };
        let WindowNumber(window) = number;
        let open = self.lock();
        let Open { served, gate } = open.get(&(direction, number)).ok_or(reason::NO_WINDOW)?;
        let gate = Arc::clone(gate);
        match served {
            Served::Write { longest, run } => {
                if usize::try_from(size).is_ok_and(|size| size <= *longest) {
                    let run = Arc::clone(run);
                    let told = move |call: &mut Call<'_>| match &mut call.parameters[..] {
                        [bytes] => through(&gate, || run(IncomingWrite { peer, window, label: call.user, bytes })),
                        _ => Err(Failure::MEMORY_ERROR),
                    };
                    Ok(Found { run: Arc::new(told), memory: None })
                } else {
                    Err(reason::WINDOW_TOO_SMALL)
                }
            }
            Served::Read { shared, run } => {
                let shared = shared.upgrade().ok_or(reason::NO_WINDOW)?;
                let memory = usize::try_from(size).ok().and_then(|size| shared.memory(0..size, false).ok());
                let run = Arc::clone(run);
                let told =
                    move |call: &mut Call<'_>| through(&gate, || run(IncomingRead { peer, window, label: call.user }));
                Ok(Found { run: Arc::new(told), memory: Some(memory.ok_or(reason::WINDOW_TOO_SMALL)?) })
            }
        }
    }
}

/// Runs the callback of a window, unless that was closed: then nobody is there who could be told.
fn through(gate: &Gate, run: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    gate.run(run).unwrap_or(Err(Failure::UNAVAILABLE))
}
