// SPDX-License-Identifier: Apache-2.0
//! Handles: numbers that name what a program has opened.
//!
//! A handle is no pointer. It has the kind of what it names, the place in a table, and a generation that changes whenever the
//! place is given to something else. So any 64 bits can be looked up, and whatever is wrong with them is found: that they are
//! no handle, name something of another kind, or something that was closed.
//!
//! Each process has tables of its own. A child that was forked begins with empty ones, and sees by the handle's epoch that it
//! belongs to a process above it. The locks of the parent's tables, which may be taken at the moment of the fork, are not used.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use nacelle::{Canceller, Connection, Device, Remote};
use nacelle_copy::{Copy as Copying, Slot as SlotDevice};

use crate::acceptor::Host;
use crate::edge::{EdgeCode, Failure};
use crate::naaice::{NaaSession, Shared};
use crate::session::Session;
use crate::slot::Buffer;
use crate::transfer::Moving;
use crate::window::Window;

/// What a handle names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Device = 0xd1,
    Connection = 0xc1,
    Call = 0xc2,
    Remote = 0xe1,
    Transfer = 0xe2,
    Acceptor = 0xe3,
    Window = 0xe4,
    Slot = 0xb1,
    Buffer = 0xb2,
    Copy = 0xb3,
    Naaice = 0xa3,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Device,
        Self::Connection,
        Self::Call,
        Self::Remote,
        Self::Transfer,
        Self::Acceptor,
        Self::Window,
        Self::Slot,
        Self::Buffer,
        Self::Copy,
        Self::Naaice,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Connection => "connection",
            Self::Call => "call",
            Self::Remote => "remote",
            Self::Transfer => "transfer",
            Self::Acceptor => "acceptor",
            Self::Window => "window",
            Self::Slot => "slot",
            Self::Buffer => "buffer",
            Self::Copy => "copy",
            Self::Naaice => "NAAICE session",
        }
    }
}

/// `nacelle_device`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct DeviceHandle {
    pub(crate) id: u64,
}

/// `nacelle_connection`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ConnectionHandle {
    pub(crate) id: u64,
}

/// `nacelle_call`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CallHandle {
    pub(crate) id: u64,
}

/// `nacelle_remote`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RemoteHandle {
    pub(crate) id: u64,
}

/// `nacelle_transfer`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct TransferHandle {
    pub(crate) id: u64,
}

/// `nacelle_acceptor`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct AcceptorHandle {
    pub(crate) id: u64,
}

/// `nacelle_window`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct WindowHandle {
    pub(crate) id: u64,
}

/// `nacelle_slot`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SlotHandle {
    pub(crate) id: u64,
}

/// `nacelle_buffer`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct BufferHandle {
    pub(crate) id: u64,
}

/// `nacelle_copy`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CopyHandle {
    pub(crate) id: u64,
}

/// Bits of a place and of a generation. A place whose generations are used up is not used again.
const PLACE_BITS: u32 = 24;
const GENERATION_BITS: u32 = 24;
const LAST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;

/// The parts of a handle: kind (8 bits), epoch (8), generation (24), place (24).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    kind: u8,
    epoch: u8,
    generation: u32,
    place: usize,
}

impl Parts {
    fn of(handle: u64) -> Self {
        let [kind, epoch, ..] = handle.to_be_bytes();
        let generation = (handle >> PLACE_BITS) as u32 & LAST_GENERATION;
        Self { kind, epoch, generation, place: handle as usize & ((1 << PLACE_BITS) - 1) }
    }

    fn handle(self) -> u64 {
        u64::from(self.kind) << 56
            | u64::from(self.epoch) << 48
            | u64::from(self.generation) << PLACE_BITS
            | self.place as u64
    }
}

struct Slot<T> {
    generation: u32,
    value: Option<Arc<T>>,
}

/// What is open of one kind.
pub(crate) struct Table<T> {
    kind: Kind,
    epoch: u8,
    slots: Mutex<Vec<Slot<T>>>,
}

impl<T> Table<T> {
    fn new(kind: Kind, epoch: u8) -> Self {
        Self { kind, epoch, slots: Mutex::default() }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot<T>>> {
        // Nothing that could panic changes the table.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle for `value`.
    pub(crate) fn insert(&self, value: T) -> Result<u64, Failure> {
        let mut slots = self.slots();
        let free = slots.iter().position(|slot| slot.value.is_none() && slot.generation < LAST_GENERATION);
        let place = match free {
            Some(place) => place,
            None if slots.len() < 1 << PLACE_BITS => {
                slots.push(Slot { generation: 0, value: None });
                slots.len() - 1
            }
            None => return Err(Failure::invalid(format!("too many {} handles are open", self.kind.name()))),
        };
        let slot = &mut slots[place];
        slot.generation += 1;
        slot.value = Some(Arc::new(value));
        Ok(Parts { kind: self.kind as u8, epoch: self.epoch, generation: slot.generation, place }.handle())
    }

    /// What `handle` names.
    pub(crate) fn get(&self, handle: u64) -> Result<Arc<T>, Failure> {
        let slots = self.slots();
        let (_, slot) = self.find(&slots, handle)?;
        slot.value.clone().ok_or_else(|| self.closed())
    }

    /// Ends `handle`.
    pub(crate) fn remove(&self, handle: u64) -> Result<Arc<T>, Failure> {
        let mut slots = self.slots();
        let (place, _) = self.find(&slots, handle)?;
        slots[place].value.take().ok_or_else(|| self.closed())
    }

    /// The slot that `handle` names, if it is a handle of this table and its place has not been given to something else.
    fn find<'a>(&self, slots: &'a [Slot<T>], handle: u64) -> Result<(usize, &'a Slot<T>), Failure> {
        let name = self.kind.name();
        let bad = |text: String| Err(Failure::edge(EdgeCode::BadHandle, text, "pass what the library has given"));
        if handle == 0 {
            return bad(format!("the {name} handle is zero: it was not opened"));
        }
        let parts = Parts::of(handle);
        match Kind::ALL.into_iter().find(|kind| *kind as u8 == parts.kind) {
            None => return bad(format!("{handle:#018x} is not a handle")),
            Some(kind) if kind != self.kind => {
                let text = format!("the handle is that of a {}, not of a {name}", kind.name());
                return Err(Failure::edge(EdgeCode::WrongHandle, text, "pass the handle of the right kind"));
            }
            Some(_) if parts.epoch != 0 && parts.epoch < self.epoch => {
                let text = format!("the {name} was opened by the process that forked this one");
                let hint = "open it in the process that uses it, after the fork";
                return Err(Failure::edge(EdgeCode::Forked, text, hint));
            }
            Some(_) => {}
        }
        match slots.get(parts.place) {
            Some(slot) if parts.epoch == self.epoch && parts.generation == slot.generation => Ok((parts.place, slot)),
            Some(slot) if parts.epoch == self.epoch && (1..slot.generation).contains(&parts.generation) => {
                Err(self.closed())
            }
            _ => bad(format!("{handle:#018x} is not a handle that was given")),
        }
    }

    pub(crate) fn closed(&self) -> Failure {
        Failure::edge(EdgeCode::Closed, format!("the {} was closed", self.kind.name()), "open it again")
    }
}

/// Something that one thread at a time may use, and something beside it that any thread may.
pub(crate) struct Exclusive<T, B = ()> {
    /// `None` when it was closed.
    value: Mutex<Option<T>>,
    pub(crate) beside: B,
}

impl<T, B> Exclusive<T, B> {
    pub(crate) fn new(value: T, beside: B) -> Self {
        Self { value: Mutex::new(Some(value)), beside }
    }
}

impl<T, B> Table<Exclusive<T, B>> {
    /// Uses what `handle` names.
    pub(crate) fn with<R>(&self, handle: u64, act: impl FnOnce(&mut T) -> Result<R, Failure>) -> Result<R, Failure> {
        let cell = self.get(handle)?;
        let mut value = self.enter(&cell)?;
        act(value.as_mut().ok_or_else(|| self.closed())?)
    }

    /// Ends `handle` and returns what it named.
    pub(crate) fn take(&self, handle: u64) -> Result<T, Failure> {
        let cell = self.get(handle)?;
        let mut value = self.enter(&cell)?;
        self.remove(handle)?;
        value.take().ok_or_else(|| self.closed())
    }

    fn enter<'a>(&self, cell: &'a Exclusive<T, B>) -> Result<MutexGuard<'a, Option<T>>, Failure> {
        match cell.value.try_lock() {
            Ok(value) => Ok(value),
            Err(TryLockError::Poisoned(value)) => Ok(value.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let text = format!("another thread uses the {}", self.kind.name());
                Err(Failure::edge(EdgeCode::Busy, text, "let one thread at a time use it"))
            }
        }
    }
}

/// The tables of a process.
pub(crate) struct Registry {
    process: u32,
    epoch: u8,
    pub(crate) devices: Table<Device>,
    pub(crate) connections: Table<Connection>,
    pub(crate) calls: Table<Exclusive<Session, Canceller>>,
    pub(crate) remotes: Table<Remote>,
    pub(crate) transfers: Table<Exclusive<Moving>>,
    pub(crate) acceptors: Table<Host>,
    pub(crate) windows: Table<Arc<Window>>,
    pub(crate) slots: Table<SlotDevice>,
    pub(crate) buffers: Table<Buffer>,
    pub(crate) copies: Table<Copying>,
    pub(crate) naaice: Table<Exclusive<NaaSession>>,
    /// What NAAICE sessions share.
    pub(crate) naaice_shared: Arc<Mutex<Shared>>,
}

impl Registry {
    fn new(process: u32, epoch: u8) -> Self {
        Self {
            process,
            epoch,
            devices: Table::new(Kind::Device, epoch),
            connections: Table::new(Kind::Connection, epoch),
            calls: Table::new(Kind::Call, epoch),
            remotes: Table::new(Kind::Remote, epoch),
            transfers: Table::new(Kind::Transfer, epoch),
            acceptors: Table::new(Kind::Acceptor, epoch),
            windows: Table::new(Kind::Window, epoch),
            slots: Table::new(Kind::Slot, epoch),
            buffers: Table::new(Kind::Buffer, epoch),
            copies: Table::new(Kind::Copy, epoch),
            naaice: Table::new(Kind::Naaice, epoch),
            naaice_shared: Arc::default(),
        }
    }
}

/// The tables of this process. Those of the process that forked it, whose memory it has inherited, are left alone.
pub(crate) fn registry() -> &'static Registry {
    static CURRENT: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());
    let process = std::process::id();
    let mut current = CURRENT.load(Ordering::Acquire);
    loop {
        // SAFETY: it is null, or was leaked below before it was stored, and is never freed.
        let known: Option<&'static Registry> = unsafe { current.as_ref() };
        let epoch = match known {
            Some(registry) if registry.process == process => return registry,
            Some(parent) => parent.epoch.saturating_add(1),
            None => 1,
        };
        let new = Box::new(Registry::new(process, epoch));
        let new = Box::into_raw(new);
        match CURRENT.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => current = new,
            Err(other) => {
                // SAFETY: it comes from `into_raw`, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                current = other;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, Failure>) -> u32 {
        result.err().unwrap().code
    }

    #[test]
    fn a_handle_names_what_it_was_given_for_until_it_is_closed() {
        let table = Table::new(Kind::Call, 1);
        let (one, two) = (table.insert(1).unwrap(), table.insert(2).unwrap());
        assert_eq!((*table.get(one).unwrap(), *table.get(two).unwrap()), (1, 2));
        assert_eq!(*table.remove(one).unwrap(), 1);
        assert_eq!(code(table.get(one)), EdgeCode::Closed as u32);
        let three = table.insert(3).unwrap();
        assert_eq!(Parts::of(three).place, Parts::of(one).place);
        assert_eq!(code(table.get(one)), EdgeCode::Closed as u32, "its place has another now");
        assert_eq!(code(table.remove(one)), EdgeCode::Closed as u32);
        assert_eq!(*table.get(three).unwrap(), 3);
    }

    #[test]
    fn what_is_no_handle_is_found() {
        let table = Table::new(Kind::Call, 1);
        let handle = table.insert(()).unwrap();
        for wrong in [0, 1, u64::MAX, handle ^ 1, handle + (1 << PLACE_BITS), handle ^ 1 << 49, handle & !(0xff << 48)]
        {
            assert_eq!(code(table.get(wrong)), EdgeCode::BadHandle as u32, "{wrong:#x}");
        }
        let devices = Table::<()>::new(Kind::Device, 1);
        assert_eq!(code(devices.get(handle)), EdgeCode::WrongHandle as u32);
    }

    #[test]
    fn a_handle_of_a_parent_process_is_found() {
        let (parent, child) = (Table::new(Kind::Call, 1), Table::new(Kind::Call, 2));
        let handle = parent.insert(()).unwrap();
        child.insert(()).unwrap();
        assert_eq!(code(child.get(handle)), EdgeCode::Forked as u32);
    }

    #[test]
    fn a_place_is_not_used_again_when_its_generations_are_used_up() {
        let table = Table::new(Kind::Call, 1);
        table.slots().push(Slot { generation: LAST_GENERATION - 1, value: None });
        let last = table.insert(()).unwrap();
        table.remove(last).unwrap();
        assert_eq!(Parts::of(table.insert(()).unwrap()).place, 1);
        assert_eq!(code(table.get(last)), EdgeCode::Closed as u32);
    }

    #[test]
    fn one_thread_at_a_time_uses_a_value() {
        let table: Table<Exclusive<u32>> = Table::new(Kind::Call, 1);
        let handle = table.insert(Exclusive::new(7, ())).unwrap();
        let inside = table.with(handle, |_| Ok((code(table.with(handle, |_| Ok(()))), code(table.take(handle)))));
        assert_eq!(inside.unwrap(), (EdgeCode::Busy as u32, EdgeCode::Busy as u32));
        assert_eq!(table.take(handle).unwrap(), 7);
        assert_eq!(code(table.take(handle)), EdgeCode::Closed as u32);
    }

    #[test]
    fn all_parts_of_a_handle_are_kept() {
        let parts = Parts { kind: 0xd1, epoch: 3, generation: LAST_GENERATION, place: (1 << PLACE_BITS) - 1 };
        assert_eq!(Parts::of(parts.handle()), parts);
    }
}
