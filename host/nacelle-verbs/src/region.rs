// SPDX-License-Identifier: Apache-2.0
//! Memory that is registered with the NIC.

use core::ffi::c_int;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nacelle_memory::{Ending, Memory};
use nacelle_roce::{Access, ConnId, Region, RegionId, RegionSlice};
use nacelle_wire::{RemoteAddr, Rkey};

use crate::VerbsError;
use crate::abi::{ACCESS_LOCAL_WRITE, ACCESS_REMOTE_READ, ACCESS_REMOTE_WRITE, Sge};
use crate::hardware::{Hardware, Registration};

/// A registration that ends with its region, or with the borrow of its bytes if that ends before.
struct Lease(Mutex<Option<Registration>>);

impl Lease {
    /// Ends the NIC's access. Returns whether it has ended. The borrow of the bytes does not end meanwhile.
    fn release(&self) -> bool {
        let mut registration = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        registration.take().is_none_or(Registration::release)
    }
}

impl Ending for Lease {
    fn end(&self) {
        // Who deregisters the region at the same time is waited for.
        let mut registration = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(registration.take());
    }
}

struct Entry {
    memory: Memory,
    /// `None` without bytes, of which the NIC knows nothing.
    lease: Option<Arc<Lease>>,
    lkey: u32,
    /// The only connection that uses it; `None` for all.
    owner: Option<ConnId>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Before the bytes are freed.
        if let Some(lease) = &self.lease {
            lease.end();
        }
    }
}

/// The registered regions.
#[derive(Default)]
pub(crate) struct Regions {
    entries: HashMap<RegionId, Entry>,
    made: u64,
}

impl Regions {
    pub(crate) fn register(
        &mut self,
        hardware: &Arc<Hardware>,
        memory: Memory,
        access: Access,
        owner: Option<ConnId>,
    ) -> Result<Region, VerbsError> {
        let mut flags: c_int = if memory.is_writable() { ACCESS_LOCAL_WRITE } else { 0 };
        if access.contains(Access::REMOTE_WRITE) && memory.is_writable() {
            flags |= ACCESS_REMOTE_WRITE;
        }
        if access.contains(Access::REMOTE_READ) {
            flags |= ACCESS_REMOTE_READ;
        }
        let (mut lease, mut lkey, mut rkey) = (None, 0, 0);
        if !memory.is_empty() {
            // SAFETY: the bytes stay where they are as long as `memory` does, which the entry keeps until it has released the
            // registration, or until their borrow ends, which releases it before.
            let made = unsafe { Registration::new(hardware, memory.as_ptr(), flags) }?;
            (lkey, rkey) = (made.lkey(), made.rkey());
            let made = Arc::new(Lease(Mutex::new(Some(made))));
            let ending: Weak<Lease> = Arc::downgrade(&made);
            if memory.at_end(ending).is_err() {
                made.end();
            }
            lease = Some(made);
        }
        self.made += 1;
        let id = RegionId::new(self.made as u32, (self.made >> 32) as u32);
        let addr = RemoteAddr(memory.as_ptr().cast::<u8>().as_ptr() as u64);
        let region = Region { id, rkey: Rkey(rkey), addr, len: memory.len() };
        self.entries.insert(id, Entry { memory, lease, lkey, owner });
        Ok(region)
    }

    /// Takes a region back. `None` if there is none, or the NIC does not let its memory go, which is lost then.
    pub(crate) fn deregister(&mut self, id: RegionId) -> Option<Memory> {
        let mut entry = self.entries.remove(&id)?;
        let released = match entry.lease.take() {
            Some(lease) => lease.release(),
            None => true,
        };
        let memory = core::mem::replace(&mut entry.memory, Memory::zeroed(0));
        if released {
            return Some(memory);
        }
        core::mem::forget(memory);
        None
    }

    pub(crate) fn get(&self, id: RegionId) -> Option<&Memory> {
        self.entries.get(&id).map(|entry| &entry.memory)
    }

    pub(crate) fn get_mut(&mut self, id: RegionId) -> Option<&mut Memory> {
        self.entries.get_mut(&id).map(|entry| &mut entry.memory)
    }

    /// A slice as the NIC takes it, if it lies in a region that `conn` may use and is short enough for one.
    pub(crate) fn sge(&self, conn: ConnId, slice: RegionSlice) -> Option<Sge> {
        let entry = self.entries.get(&slice.region)?;
        let fits = slice.offset.checked_add(slice.len).is_some_and(|end| end <= entry.memory.len());
        let usable = fits && entry.owner.is_none_or(|owner| owner == conn);
        let addr = entry.memory.as_ptr().cast::<u8>().as_ptr() as u64 + slice.offset as u64;
        usable.then_some(Sge { addr, length: u32::try_from(slice.len).ok()?, lkey: entry.lkey })
    }
}
