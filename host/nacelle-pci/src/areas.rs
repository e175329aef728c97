// SPDX-License-Identifier: Apache-2.0
//! Which parts of a region can be mapped, as vfio-user and the kernel's VFIO say alike.

use nacelle_slot::protocol::{MapArea, RegionInfo, SparseMmap, region, split};

/// Parts of a region that are listed at most.
const MAX_AREAS: usize = 64;
/// The longest description of a region that is taken.
pub(crate) const MAX_REGION_INFO: usize =
    size_of::<RegionInfo>() + 2 * size_of::<SparseMmap>() + MAX_AREAS * size_of::<MapArea>();

/// The parts of a region that can be mapped, from its description with capabilities. A list that makes no sense has none.
pub(crate) fn mappable(info: &RegionInfo, description: &[u8]) -> Vec<MapArea> {
    if info.flags & region::MMAP == 0 {
        return Vec::new();
    }
    let mut at = if info.flags & region::CAPS == 0 { 0 } else { info.cap_offset as usize };
    let mut before = 0;
    // A list goes on to higher places alone, so it has an end.
    while at > before {
        let Some((sparse, rest)) = description.get(at..).and_then(split::<SparseMmap>) else { return Vec::new() };
        if sparse.id == region::SPARSE_MMAP && sparse.version == 1 {
            let areas = rest.chunks_exact(size_of::<MapArea>()).filter_map(split::<MapArea>).map(|(area, _)| area);
            let areas: Vec<_> = areas.take(sparse.areas as usize).collect();
            return if areas.len() == sparse.areas as usize { areas } else { Vec::new() };
        }
        before = at;
        at = sparse.next as usize;
    }
    if at == 0 { vec![MapArea { offset: 0, size: info.size }] } else { Vec::new() }
}

/// Whether `len` bytes at `offset` lie in one of them.
pub(crate) fn hold(areas: &[MapArea], offset: u64, len: usize) -> bool {
    areas.iter().any(|area| {
        offset.checked_sub(area.offset).is_some_and(|into| into <= area.size && len as u64 <= area.size - into)
    })
}
