// SPDX-License-Identifier: Apache-2.0
//! Memory regions and protection domains.

use super::Transport;
use crate::{Access, ConnId, DomainError, ProtectionDomain, Region, RegionId, RegionInfo, RegisterError, Scope};
use nacelle_memory::Memory;
use rand_chacha::rand_core::Rng;

impl Transport {
    /// Registers memory, in place, for this side's own work requests and, under a random key and with these rights, for the
    /// peers in `scope`: one connection, a protection domain, or none (`None`). The region stays until
    /// [`Self::deregister`], also after its connection has ended.
    pub fn register(
        &mut self,
        memory: impl Into<Memory>,
        access: Access,
        scope: impl Into<Scope>,
    ) -> Result<Region, RegisterError> {
        let scope = scope.into();
        if matches!(scope, Scope::Connection(id) if self.conns.get(id).is_none()) {
            return Err(RegisterError::UnknownConnection);
        }
        self.core.regions.register(memory.into(), access, scope, || self.rng.next_u32())
    }

    /// Deregisters a region and returns its memory, unless that is lent. Work requests that need it fail from now on.
    pub fn deregister(&mut self, region: RegionId) -> Option<Memory> {
        self.core.regions.deregister(region)
    }

    /// Invalidates the key of a region: no peer can use it any more. Returns whether it was valid.
    pub fn invalidate(&mut self, region: RegionId) -> bool {
        self.core.regions.invalidate(region)
    }

    /// Gives a region a new key, whether or not the old one was still valid; the old one is invalid from now on.
    pub fn rekey(&mut self, region: RegionId) -> Option<Region> {
        self.core.regions.rekey(region, || self.rng.next_u32())
    }

    /// Changes the rights of peers to a region, under the same key. Returns whether there is such a region, and whether its
    /// memory allows it.
    pub fn set_access(&mut self, region: RegionId, access: Access) -> bool {
        self.core.regions.set_access(region, access)
    }

    /// All regions.
    pub fn regions(&self) -> impl Iterator<Item = RegionInfo> {
        self.core.regions.iter()
    }

    /// Takes the memory out of a region for a while, so that this side has it alone. The region keeps its key and its place.
    /// Until [`Self::give_back`], what peers ask of it is answered by an RNR NAK, so they try again; work requests of this
    /// side that need it fail, and so do READs whose response is under way ([`Self::is_being_read`]).
    ///
    /// `None` if there is no such region, or its memory is lent already.
    pub fn lend(&mut self, region: RegionId) -> Option<Memory> {
        self.core.regions.lend(region)
    }

    /// Puts memory back into the region that it was lent from.
    ///
    /// # Errors
    /// The memory, if the region is gone or has another length.
    pub fn give_back(&mut self, region: RegionId, memory: Memory) -> Result<(), Memory> {
        self.core.regions.give_back(region, memory)
    }

    /// Whether the response to a READ of a region, by the peer of this connection, is still to be sent.
    pub fn is_being_read(&self, conn: ConnId, region: RegionId) -> bool {
        self.conns.get(conn).is_some_and(|conn| conn.responder.is_reading(region))
    }

    /// The memory of a region; `None` while it is lent, too.
    pub fn region(&self, region: RegionId) -> Option<&Memory> {
        self.core.regions.get(region)
    }

    /// The memory of a region, to change its bytes; `None` while it is lent, too.
    pub fn region_mut(&mut self, region: RegionId) -> Option<&mut Memory> {
        self.core.regions.get_mut(region)
    }

    /// Allocates a protection domain: regions and connections that belong together.
    pub fn alloc_domain(&mut self) -> ProtectionDomain {
        self.core.regions.alloc_domain()
    }

    /// Frees a protection domain. Refused while a region or a connection is in it.
    pub fn dealloc_domain(&mut self, domain: ProtectionDomain) -> Result<(), DomainError> {
        if self.conns.iter().any(|c| c.options.domain == domain) {
            return Err(DomainError::Busy);
        }
        self.core.regions.dealloc_domain(domain)
    }

    /// All protection domains.
    pub fn domains(&self) -> impl Iterator<Item = ProtectionDomain> {
        self.core.regions.domains()
    }
}
