// SPDX-License-Identifier: Apache-2.0
//! Memory regions: what connections read and write, the keys to it, and the connections that may use each key.
//!
//! A region is reached by a peer only if everything fits: the key, the bounds, the rights, and the scope, which is one
//! connection or one protection domain (IBTA 10.2.3, 10.6.3).

#[cfg(test)]
mod tests;

use crate::{ConnId, DomainError, RegisterError};
use core::{fmt, ops::BitOr};
use nacelle_memory::{Memory, Source};
use nacelle_wire::{RemoteAddr, Rkey};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Rights of a peer to a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// None: the region serves this side's own work requests.
    pub const LOCAL: Self = Self(0);
    /// WRITE.
    pub const REMOTE_WRITE: Self = Self(1);
    /// READ.
    pub const REMOTE_READ: Self = Self(2);
    /// FETCH-ADD and CMP-SWAP.
    pub const REMOTE_ATOMIC: Self = Self(4);
    /// Invalidate the key, by a SEND with invalidate.
    pub const REMOTE_INVALIDATE: Self = Self(8);

    /// Whether a peer may change the bytes.
    const fn writes(self) -> bool {
        self.0 & (Self::REMOTE_WRITE.0 | Self::REMOTE_ATOMIC.0) != 0
    }

    /// Whether these rights include `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Access {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Connections and regions that belong together (IBTA 10.2.3). Made by
/// [`alloc_domain`](crate::Transport::alloc_domain); never reused for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProtectionDomain(u32);

impl ProtectionDomain {
    /// The one that is always there.
    pub const DEFAULT: Self = Self(0);

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ProtectionDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pd{}", self.0)
    }
}

/// Which connections may use a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All, in this side's own work requests; no peer, whatever the rights.
    #[default]
    Local,
    /// One connection: its peer, and this side's work requests on it.
    Connection(ConnId),
    /// All connections of a protection domain.
    Domain(ProtectionDomain),
}

impl Scope {
    fn admits(self, conn: ConnId, domain: ProtectionDomain) -> bool {
        match self {
            Self::Local => false,
            Self::Connection(owner) => owner == conn,
            Self::Domain(own) => own == domain,
        }
    }
}

impl From<Option<ConnId>> for Scope {
    fn from(owner: Option<ConnId>) -> Self {
        owner.map_or(Self::Local, Self::Connection)
    }
}

impl From<ConnId> for Scope {
    fn from(owner: ConnId) -> Self {
        Self::Connection(owner)
    }
}

impl From<ProtectionDomain> for Scope {
    fn from(domain: ProtectionDomain) -> Self {
        Self::Domain(domain)
    }
}

/// Names a registered region of one endpoint. Never reused for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionId {
    index: u32,
    generation: u32,
}

impl RegionId {
    /// A name for a region of another kind of endpoint, such as one of an RDMA NIC, that gives the same types to its users.
    #[must_use]
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }
}

/// A registered region, as this side and a peer name it.
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
    /// `len` bytes from `offset` on, as the place of a work request.
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

impl RegionSlice {
    /// The slice without its first `n` bytes, which it must have.
    pub(crate) const fn after(self, n: usize) -> Self {
        Self { offset: self.offset + n, len: self.len - n, ..self }
    }

    /// Its first `n` bytes, which it must have.
    pub(crate) const fn first(self, n: usize) -> Self {
        Self { len: n, ..self }
    }
}

/// Part of a region that a peer may access, for as long as the key of its request is valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    place: RegionSlice,
    rkey: Rkey,
}

impl Grant {
    /// The region.
    pub(crate) const fn region(self) -> RegionId {
        self.place.region
    }

    /// Length in bytes.
    pub(crate) const fn len(self) -> usize {
        self.place.len
    }

    /// The same without its first `n` bytes, which it must have.
    pub(crate) const fn after(self, n: usize) -> Self {
        Self { place: self.place.after(n), ..self }
    }

    /// Its first `n` bytes, which it must have.
    pub(crate) const fn first(self, n: usize) -> Self {
        Self { place: self.place.first(n), ..self }
    }
}

/// State of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// Name, key, address and length.
    pub region: Region,
    /// Rights of peers.
    pub access: Access,
    /// Which connections may use it.
    pub scope: Scope,
    /// Whether the key is valid; it is not after an invalidation.
    pub valid: bool,
}

#[derive(Debug)]
struct Entry {
    /// `None` while it is lent.
    memory: Option<Memory>,
    len: usize,
    rkey: Rkey,
    base: RemoteAddr,
    access: Access,
    scope: Scope,
    valid: bool,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

/// The endpoint's regions and protection domains.
#[derive(Debug)]
pub(crate) struct RegionTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_rkey: FxHashMap<Rkey, u32>,
    next_base: u64,
    limit: usize,
    domains: BTreeSet<ProtectionDomain>,
    next_domain: u32,
    /// What is read is for another processor.
    pub(crate) past_cache: bool,
}

/// So many bytes are copied past the cache, where that is better: of fewer, lines would be written in parts.
const PAST_CACHE: usize = 1024;

/// Regions lie this far apart at least, so that an address just beyond a region never lies in another.
const GUARD: u64 = 4096;

impl RegionTable {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_rkey: FxHashMap::default(),
            next_base: 1 << 32,
            limit,
            domains: BTreeSet::from([ProtectionDomain::DEFAULT]),
            next_domain: 1,
            past_cache: false,
        }
    }

    pub(crate) fn register(
        &mut self,
        memory: Memory,
        access: Access,
        scope: Scope,
        random: impl FnMut() -> u32,
    ) -> Result<Region, RegisterError> {
        if self.slots.len() - self.free.len() >= self.limit {
            return Err(RegisterError::TooMany);
        }
        if matches!(scope, Scope::Domain(domain) if !self.domains.contains(&domain)) {
            return Err(RegisterError::UnknownDomain);
        }
        if access.writes() && !memory.is_writable() {
            return Err(RegisterError::ReadOnly);
        }
        let rkey = self.new_key(random);
        let base = RemoteAddr(self.next_base);
        self.next_base += (memory.len() as u64).next_multiple_of(GUARD) + GUARD;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        let region =
            Region { id: RegionId { index, generation: slot.generation }, rkey, addr: base, len: memory.len() };
        let len = memory.len();
        slot.entry = Some(Entry { memory: Some(memory), len, rkey, base, access, scope, valid: true });
        self.by_rkey.insert(rkey, index);
        Ok(region)
    }

    fn new_key(&self, mut random: impl FnMut() -> u32) -> Rkey {
        loop {
            let key = Rkey(random());
            if key.0 != 0 && !self.by_rkey.contains_key(&key) {
                return key;
            }
        }
    }

    pub(crate) fn deregister(&mut self, id: RegionId) -> Option<Memory> {
        let slot = self.slots.get_mut(id.index as usize).filter(|s| s.generation == id.generation)?;
        let entry = slot.entry.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        if entry.valid {
            self.by_rkey.remove(&entry.rkey);
        }
        self.free.push(id.index);
        entry.memory
    }

    /// Takes the memory out of a region, until [`Self::give_back`].
    pub(crate) fn lend(&mut self, id: RegionId) -> Option<Memory> {
        self.entry_mut(id)?.memory.take()
    }

    /// Puts memory back into the region that it was lent from; if that is gone, here it is again.
    pub(crate) fn give_back(&mut self, id: RegionId, memory: Memory) -> Result<(), Memory> {
        match self.entry_mut(id) {
            Some(entry) if entry.memory.is_none() && entry.len == memory.len() => {
                entry.memory = Some(memory);
                Ok(())
            }
            _ => Err(memory),
        }
    }

    /// Whether the memory of a grant is lent.
    pub(crate) fn is_lent(&self, grant: Grant) -> bool {
        self.entry(grant.place.region).is_some_and(|entry| entry.memory.is_none())
    }

    /// Gives a region a new key; the old one is no longer valid.
    pub(crate) fn rekey(&mut self, id: RegionId, random: impl FnMut() -> u32) -> Option<Region> {
        self.entry(id)?;
        let rkey = self.new_key(random);
        let entry = self.entry_mut(id)?;
        let (old, was_valid) = (entry.rkey, entry.valid);
        entry.rkey = rkey;
        entry.valid = true;
        let region = Region { id, rkey, addr: entry.base, len: entry.len };
        if was_valid {
            self.by_rkey.remove(&old);
        }
        self.by_rkey.insert(rkey, id.index);
        Some(region)
    }

    /// Invalidates the key of a region. Returns whether it was valid.
    pub(crate) fn invalidate(&mut self, id: RegionId) -> bool {
        let Some(entry) = self.entry_mut(id).filter(|e| e.valid) else { return false };
        entry.valid = false;
        let rkey = entry.rkey;
        self.by_rkey.remove(&rkey);
        true
    }

    /// Changes what peers may do. Returns whether there is such a region, and its memory allows it.
    pub(crate) fn set_access(&mut self, id: RegionId, access: Access) -> bool {
        let entry = self
            .entry_mut(id)
            .filter(|entry| !access.writes() || entry.memory.as_ref().is_some_and(Memory::is_writable));
        entry.map(|entry| entry.access = access).is_some()
    }

    /// The region of a key that `conn` may use and that grants `access`.
    pub(crate) fn of_key(
        &self,
        conn: ConnId,
        domain: ProtectionDomain,
        rkey: Rkey,
        access: Access,
    ) -> Option<RegionId> {
        let &index = self.by_rkey.get(&rkey)?;
        let slot = &self.slots[index as usize];
        let granted = slot.entry.as_ref().is_some_and(|e| e.scope.admits(conn, domain) && e.access.contains(access));
        granted.then_some(RegionId { index, generation: slot.generation })
    }

    fn entry(&self, id: RegionId) -> Option<&Entry> {
        self.slots.get(id.index as usize).filter(|s| s.generation == id.generation)?.entry.as_ref()
    }

    fn entry_mut(&mut self, id: RegionId) -> Option<&mut Entry> {
        self.slots.get_mut(id.index as usize).filter(|s| s.generation == id.generation)?.entry.as_mut()
    }

    pub(crate) fn get(&self, id: RegionId) -> Option<&Memory> {
        self.entry(id)?.memory.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: RegionId) -> Option<&mut Memory> {
        self.entry_mut(id)?.memory.as_mut()
    }

    /// Whether a slice lies within its region.
    pub(crate) fn contains(&self, s: RegionSlice) -> bool {
        let end = s.offset.checked_add(s.len);
        self.entry(s.region).zip(end).is_some_and(|(entry, end)| end <= entry.len)
    }

    /// Copies the bytes of a slice, if it lies within its region.
    pub(crate) fn read(&self, s: RegionSlice, into: &mut [u8]) -> Option<()> {
        let memory = self.get(s.region)?;
        if self.past_cache && into.len() >= PAST_CACHE {
            memory.read_past_cache(s.offset, into).ok()
        } else {
            memory.read(s.offset, into).ok()
        }
    }

    /// Copies bytes into a slice, if it lies within its region.
    pub(crate) fn write(&mut self, s: RegionSlice, bytes: Source<'_>) -> Option<()> {
        self.get_mut(s.region)?.write(s.offset, bytes).ok()
    }

    /// Whether a work request on `conn` may use a slice: it lies within its region, and the region is for this
    /// connection.
    pub(crate) fn is_usable(&self, conn: ConnId, domain: ProtectionDomain, s: RegionSlice) -> bool {
        let scope = self.entry(s.region).map(|e| e.scope);
        self.contains(s) && scope.is_some_and(|scope| scope == Scope::Local || scope.admits(conn, domain))
    }

    /// Whether the key of a grant is still valid.
    pub(crate) fn is_granted(&self, grant: Grant) -> bool {
        self.entry(grant.place.region).is_some_and(|e| e.valid && e.rkey == grant.rkey)
    }

    /// Copies the bytes of a grant, unless its key was invalidated since.
    pub(crate) fn read_granted(&self, grant: Grant, into: &mut [u8]) -> Option<()> {
        self.is_granted(grant).then(|| self.read(grant.place, into))?
    }

    /// Copies bytes into a grant, unless its key was invalidated since.
    pub(crate) fn write_granted(&mut self, grant: Grant, bytes: Source<'_>) -> Option<()> {
        self.is_granted(grant).then(|| self.write(grant.place, bytes))?
    }

    /// Where the access of `conn`'s peer to `len` bytes at `addr` under `rkey` leads: key, scope, rights and bounds
    /// are right, or there is nothing (IBTA 10.6.3).
    pub(crate) fn remote(
        &self,
        (conn, domain): (ConnId, ProtectionDomain),
        rkey: Rkey,
        addr: RemoteAddr,
        len: usize,
        access: Access,
    ) -> Option<Grant> {
        let &index = self.by_rkey.get(&rkey)?;
        let slot = &self.slots[index as usize];
        let entry = slot.entry.as_ref()?;
        let offset = usize::try_from(addr.0.checked_sub(entry.base.0)?).ok()?;
        let fits = offset.checked_add(len)? <= entry.len;
        let place = RegionSlice { region: RegionId { index, generation: slot.generation }, offset, len };
        (fits && entry.scope.admits(conn, domain) && entry.access.contains(access)).then_some(Grant { place, rkey })
    }

    /// Every region.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RegionInfo> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let entry = slot.entry.as_ref()?;
            let id = RegionId { index: index as u32, generation: slot.generation };
            Some(RegionInfo {
                region: Region { id, rkey: entry.rkey, addr: entry.base, len: entry.len },
                access: entry.access,
                scope: entry.scope,
                valid: entry.valid,
            })
        })
    }

    pub(crate) fn alloc_domain(&mut self) -> ProtectionDomain {
        let domain = ProtectionDomain(self.next_domain);
        self.next_domain += 1;
        self.domains.insert(domain);
        domain
    }

    /// Frees a domain that no region is in.
    pub(crate) fn dealloc_domain(&mut self, domain: ProtectionDomain) -> Result<(), DomainError> {
        if domain == ProtectionDomain::DEFAULT || self.iter().any(|r| r.scope == Scope::Domain(domain)) {
            return Err(DomainError::Busy);
        }
        if self.domains.remove(&domain) { Ok(()) } else { Err(DomainError::Unknown) }
    }

    pub(crate) fn has_domain(&self, domain: ProtectionDomain) -> bool {
        self.domains.contains(&domain)
    }

    pub(crate) fn domains(&self) -> impl Iterator<Item = ProtectionDomain> {
        self.domains.iter().copied()
    }

    /// Removes every region and every domain but the default one. Their numbers are not reused.
    pub(crate) fn clear(&mut self) {
        for index in 0..self.slots.len() as u32 {
            let generation = self.slots[index as usize].generation;
            self.deregister(RegionId { index, generation });
        }
        self.domains.retain(|d| *d == ProtectionDomain::DEFAULT);
    }
}
