// SPDX-License-Identifier: Apache-2.0
//! Memory that connections read and write: buffers, the keys to them, and who may use which key.

use crate::{ConnId, RegisterError};
use core::ops::BitOr;
use nacelle_wire::{RemoteAddr, Rkey};
use std::collections::HashMap;

/// What a peer may do with a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// Nothing: the region serves this side's own sends and receives.
    pub const LOCAL: Self = Self(0);
    /// WRITE.
    pub const REMOTE_WRITE: Self = Self(1);
    /// READ. Reserved: the endpoint does not answer READs yet.
    pub const REMOTE_READ: Self = Self(2);

    const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Access {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Names a registered region of one endpoint. Never reused for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionId {
    index: u32,
    generation: u32,
}

/// A registered region: what to tell a peer, and what to call it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name at this endpoint.
    pub id: RegionId,
    /// Key for the peer.
    pub rkey: Rkey,
    /// Address of its first byte for the peer.
    pub addr: RemoteAddr,
    /// Length in bytes.
    pub len: usize,
}

impl Region {
    /// `len` bytes from `offset` on, as the place of a send or receive.
    pub const fn slice(&self, offset: usize, len: usize) -> RegionSlice {
        RegionSlice { region: self.id, offset, len }
    }

    /// All of it.
    pub const fn all(&self) -> RegionSlice {
        self.slice(0, self.len)
    }
}

/// Part of a registered region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSlice {
    /// The region.
    pub region: RegionId,
    /// First byte.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
}

#[derive(Debug)]
struct Entry {
    buffer: Vec<u8>,
    rkey: Rkey,
    base: RemoteAddr,
    access: Access,
    owner: Option<ConnId>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

/// The endpoint's regions.
#[derive(Debug)]
pub(crate) struct RegionTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_rkey: HashMap<Rkey, u32>,
    next_base: u64,
    limit: usize,
}

/// Regions lie this far apart at least, so that an address one too far never falls into a neighbour.
const GUARD: u64 = 4096;

impl RegionTable {
    pub(crate) fn new(limit: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), by_rkey: HashMap::new(), next_base: 1 << 32, limit }
    }

    pub(crate) fn register(
        &mut self,
        buffer: Vec<u8>,
        access: Access,
        owner: Option<ConnId>,
        mut random: impl FnMut() -> u32,
    ) -> Result<Region, RegisterError> {
        if self.by_rkey.len() >= self.limit {
            return Err(RegisterError::TooMany);
        }
        let rkey = loop {
            let key = Rkey(random());
            if key.0 != 0 && !self.by_rkey.contains_key(&key) {
                break key;
            }
        };
        let base = RemoteAddr(self.next_base);
        self.next_base += (buffer.len() as u64).next_multiple_of(GUARD) + GUARD;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        let region =
            Region { id: RegionId { index, generation: slot.generation }, rkey, addr: base, len: buffer.len() };
        slot.entry = Some(Entry { buffer, rkey, base, access, owner });
        self.by_rkey.insert(rkey, index);
        Ok(region)
    }

    pub(crate) fn deregister(&mut self, id: RegionId) -> Option<Vec<u8>> {
        let slot = self.slots.get_mut(id.index as usize).filter(|s| s.generation == id.generation)?;
        let entry = slot.entry.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.by_rkey.remove(&entry.rkey);
        self.free.push(id.index);
        Some(entry.buffer)
    }

    fn entry(&self, id: RegionId) -> Option<&Entry> {
        self.slots.get(id.index as usize).filter(|s| s.generation == id.generation)?.entry.as_ref()
    }

    pub(crate) fn get(&self, id: RegionId) -> Option<&[u8]> {
        self.entry(id).map(|e| &e.buffer[..])
    }

    pub(crate) fn get_mut(&mut self, id: RegionId) -> Option<&mut [u8]> {
        let slot = self.slots.get_mut(id.index as usize).filter(|s| s.generation == id.generation)?;
        slot.entry.as_mut().map(|e| &mut e.buffer[..])
    }

    /// The bytes of a slice, if it lies within its region.
    pub(crate) fn slice(&self, s: RegionSlice) -> Option<&[u8]> {
        self.get(s.region)?.get(s.offset..s.offset.checked_add(s.len)?)
    }

    /// The bytes of a slice, if it lies within its region.
    pub(crate) fn slice_mut(&mut self, s: RegionSlice) -> Option<&mut [u8]> {
        self.get_mut(s.region)?.get_mut(s.offset..s.offset.checked_add(s.len)?)
    }

    /// Where `conn`'s access to `len` bytes at `addr` under `rkey` leads: key, owner, rights and bounds are right, or
    /// there is nothing (IBTA 10.6.3).
    pub(crate) fn remote(
        &self,
        conn: ConnId,
        rkey: Rkey,
        addr: RemoteAddr,
        len: usize,
        access: Access,
    ) -> Option<RegionSlice> {
        let &index = self.by_rkey.get(&rkey)?;
        let slot = &self.slots[index as usize];
        let entry = slot.entry.as_ref()?;
        let offset = usize::try_from(addr.0.checked_sub(entry.base.0)?).ok()?;
        let fits = offset.checked_add(len)? <= entry.buffer.len();
        (fits && entry.owner == Some(conn) && entry.access.contains(access)).then_some(RegionSlice {
            region: RegionId { index, generation: slot.generation },
            offset,
            len,
        })
    }
}
