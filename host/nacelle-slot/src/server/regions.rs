// SPDX-License-Identifier: Apache-2.0
//! What lies where in the BARs, and what is said of them.

use smallvec::SmallVec;

use crate::config_space::{BARS, ConfigSpace, VECTOR_BYTES};
use crate::protocol::MapArea;

use super::{MAX_DOORBELLS, MappedBar, ServerConfig, ServerError};

/// Mapping counts in pages.
const PAGE: u64 = 4096;
/// Parts of a BAR that are mapped, at most.
const MAX_AREAS: usize = 64;
/// An entry of the MSI-X table after reset: masked, and nothing else (PCI Express base specification 7.7.2.9).
const VECTOR_AFTER_RESET: [u8; VECTOR_BYTES as usize] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

/// Where an access goes.
#[derive(Debug)]
pub(super) enum Place<'a> {
    /// The MSI-X table, so many bytes from its begin.
    Table(u64),
    /// The pending bits, likewise.
    Pending(u64),
    /// Memory that is mapped.
    Mapped(&'a MappedBar),
    /// The function.
    Function,
}

/// An access lies in no BAR, or in several places of one.
#[derive(Debug)]
pub(super) struct NoPlace;

fn inside(offset: u64, len: u64, begin: u64, size: u64) -> bool {
    offset >= begin && offset - begin <= size && len <= size - (offset - begin)
}

fn touches(offset: u64, len: u64, begin: u64, size: u64) -> bool {
    offset < begin.saturating_add(size) && begin < offset.saturating_add(len)
}

/// Finds where `len` bytes at `offset` of a BAR are.
pub(super) fn place<'a>(
    space: &ConfigSpace,
    config: &'a ServerConfig,
    bar: u8,
    offset: u64,
    len: usize,
) -> Result<Place<'a>, NoPlace> {
    let len = len as u64;
    if !inside(offset, len, 0, space.bar_size(bar)) {
        return Err(NoPlace);
    }
    let msix = &space.description().msix;
    let mapped = config.mapped.iter().filter(|mapped| mapped.bar == bar);
    let parts = [
        (msix.table.bar == bar).then(|| (msix.table.offset, msix.table_bytes(), Place::Table(msix.table.offset))),
        (msix.pending.bar == bar)
            .then(|| (msix.pending.offset, msix.pending_bytes(), Place::Pending(msix.pending.offset))),
    ];
    let areas =
        mapped.flat_map(|mapped| mapped.areas.iter().map(|area| (area.offset, area.size, Place::Mapped(mapped))));
    for (begin, size, part) in parts.into_iter().flatten().chain(areas) {
        if inside(offset, len, begin, size) {
            return Ok(match part {
                Place::Table(begin) => Place::Table(offset - begin),
                Place::Pending(begin) => Place::Pending(offset - begin),
                part => part,
            });
        }
        if touches(offset, len, begin, size) {
            return Err(NoPlace);
        }
    }
    Ok(Place::Function)
}

/// Bytes of the MSI-X table: the client keeps it, so it is here as after reset.
pub(super) fn table_bytes(offset: u64, into: &mut [u8]) {
    for (byte, at) in into.iter_mut().zip(offset..) {
        *byte = VECTOR_AFTER_RESET[(at % VECTOR_BYTES) as usize];
    }
}

/// The parts of a region that can be mapped.
pub(super) fn areas(config: &ServerConfig, region: u32) -> (SmallVec<[MapArea; 4]>, Option<&MappedBar>) {
    let mapped = config.mapped.iter().find(|mapped| u32::from(mapped.bar) == region);
    (mapped.map(|mapped| mapped.areas.iter().copied().collect()).unwrap_or_default(), mapped)
}

/// Whether what is to be mapped, and the doorbells, lie in BARs.
pub(super) fn check(space: &ConfigSpace, config: &ServerConfig) -> Result<(), ServerError> {
    let mut seen = [false; BARS];
    let msix = &space.description().msix;
    for MappedBar { bar, pages, areas } in &config.mapped {
        let size = space.bar_size(*bar);
        let fixed = space.description().bar(*bar).is_some_and(|bar| bar.sizes == 0);
        let twice = seen.get_mut(usize::from(*bar)).is_none_or(|seen| std::mem::replace(seen, true));
        let right = |area: &MapArea| {
            area.size > 0
                && area.offset.is_multiple_of(PAGE)
                && area.size.is_multiple_of(PAGE)
                && inside(area.offset, area.size, 0, size)
        };
        let free = |area: &MapArea| {
            let table =
                msix.table.bar == *bar && touches(area.offset, area.size, msix.table.offset, msix.table_bytes());
            let pending =
                msix.pending.bar == *bar && touches(area.offset, area.size, msix.pending.offset, msix.pending_bytes());
            !table && !pending
        };
        let apart = areas.iter().enumerate().all(|(index, area)| {
            areas[index + 1..].iter().all(|other| !touches(area.offset, area.size, other.offset, other.size))
        });
        let whole = pages.len() as u64 == size && pages.file().is_some();
        let count = (1..=MAX_AREAS).contains(&areas.len());
        if twice || !fixed || !whole || !count || !apart || !areas.iter().all(|area| right(area) && free(area)) {
            return Err(ServerError::Part { bar: *bar, what: "mapped" });
        }
    }
    for doorbell in &config.doorbells {
        let fits = inside(doorbell.offset, doorbell.size.max(1), 0, space.bar_size(doorbell.bar));
        if !fits || !matches!(doorbell.size, 0 | 1 | 2 | 4 | 8) || config.doorbells.len() > MAX_DOORBELLS {
            return Err(ServerError::Part { bar: doorbell.bar, what: "a doorbell" });
        }
    }
    Ok(())
}
