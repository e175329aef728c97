// SPDX-License-Identifier: Apache-2.0
//! The client's memory: ranges that are none, accesses across, beside and beyond them, files that change under the device.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};

use nacelle_slot::dma::{DmaTable, Fault, MapError, Reach};
use nacelle_slot::pages::{Access, Pages};
use proptest::prelude::*;

const READ: Access = Access { read: true, write: false };
const WRITE: Access = Access { read: false, write: true };

fn table() -> DmaTable {
    DmaTable::new(8)
}

/// A sealed file, as QEMU's memory is, and the same memory here.
fn sealed(len: usize) -> (OwnedFd, Pages) {
    let pages = Pages::create("test", len).unwrap();
    (pages.file().unwrap().try_clone_to_owned().unwrap(), pages)
}

fn all<const N: usize>(pages: &Pages, offset: u64) -> [u8; N] {
    let mut bytes = [0; N];
    pages.read(offset, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_sealed_file_is_accessed_in_place_from_its_offset_on() {
    let (file, pages) = sealed(0x4000);
    let mut table = table();
    table.map(0x8000_0000, 0x2000, Access::BOTH, Some((file, 0x1010))).unwrap();
    pages.write(0x1010, b"from the client").unwrap();
    let mut got = [0; 15];
    assert_eq!(table.read(0x8000_0000, &mut got), Ok(Reach::Done));
    assert_eq!(&got, b"from the client");
    assert_eq!(table.write(0x8000_1ffd, b"end"), Ok(Reach::Done));
    assert_eq!(&all(&pages, 0x300d), b"end");
    assert_eq!(table.write(0x8000_1ffd, b"ends"), Err(Fault::Unmapped));
    assert_eq!(table.read(0x7fff_ffff, &mut got), Err(Fault::Unmapped));
    assert_eq!(all::<8>(&pages, 0x3010), [0; 8]);
}

#[test]
fn ranges_that_touch_are_one_and_a_hole_is_none() {
    let (first, first_pages) = sealed(0x1000);
    let (second, second_pages) = sealed(0x1000);
    let mut table = table();
    table.map(0x1000, 0x1000, Access::BOTH, Some((first, 0))).unwrap();
    table.map(0x2000, 0x1000, Access::BOTH, Some((second, 0))).unwrap();
    assert_eq!(table.write(0x1ffe, &[1, 2, 3, 4]), Ok(Reach::Done));
    assert_eq!((all(&first_pages, 0xffe), all(&second_pages, 0)), ([1, 2], [3, 4]));
    let mut four = [0; 4];
    table.read(0x1ffe, &mut four).unwrap();
    assert_eq!(four, [1, 2, 3, 4]);
    // Nothing is written of what does not fit whole.
    assert_eq!(table.write(0x1ffe, &[9; 0x1003]), Err(Fault::Unmapped));
    assert_eq!((all(&first_pages, 0xffe), all(&second_pages, 0)), ([1, 2], [3, 4]));
    table.unmap(&(0x2000..=0x2fff));
    assert_eq!(table.read(0x1ffe, &mut four), Err(Fault::Unmapped));
    assert!(!table.has_any(&(0x2000..=0x2fff)) && table.has_any(&(0..=0x2fff)));
}

#[test]
fn ranges_that_cannot_be_are_refused() {
    let mut table = table();
    table.map(0x1000, 0x1000, Access::BOTH, None).unwrap();
    let errors = [(0, 0), (0x1000, 0), (u64::MAX, 2), (2, u64::MAX), (u64::MAX - 0xfff, 0x1001)]
        .map(|(address, size)| table.map(address, size, Access::BOTH, None).unwrap_err());
    assert!(matches!(errors, [MapError::Empty, MapError::Empty, MapError::Wraps, MapError::Wraps, MapError::Wraps]));
    for (address, size) in [(0x1000, 0x1000), (0, 0x1001), (0x1fff, 1), (0x1800, 0x100), (0, u64::MAX), (0xfff, 2)] {
        let error = table.map(address, size, Access::BOTH, None).unwrap_err();
        assert!(matches!(error, MapError::Overlaps), "{address:#x} {size:#x}");
        assert_eq!(error.errno().raw_os_error(), 17);
    }
    let neither = Access { read: false, write: false };
    assert!(matches!(table.map(0x8000, 1, neither, None), Err(MapError::NoAccess)));
    for number in 0..7 {
        table.map(0x10_0000 * (number + 1), 0x1000, Access::BOTH, None).unwrap();
    }
    assert!(matches!(table.map(0x4000, 1, Access::BOTH, None), Err(MapError::TooMany(8))));
    // The last page there is.
    table.unmap(&(0x1000..=0x1fff));
    table.map(u64::MAX - 0xfff, 0x1000, Access::BOTH, None).unwrap();
    assert_eq!(table.read(u64::MAX - 3, &mut [0; 4]), Ok(Reach::ByMessage));
    assert_eq!(table.read(u64::MAX - 3, &mut [0; 5]), Err(Fault::Unmapped));
    assert_eq!(table.len(), 8);
}

#[test]
fn rights_are_kept() {
    let (file, _pages) = sealed(0x2000);
    let mut table = table();
    table.map(0, 0x1000, READ, Some((file.try_clone().unwrap(), 0))).unwrap();
    table.map(0x1000, 0x1000, WRITE, Some((file, 0x1000))).unwrap();
    assert_eq!(table.write(0, &[1]), Err(Fault::NotAllowed));
    assert_eq!(table.read(0x1000, &mut [0]), Err(Fault::NotAllowed));
    assert_eq!(table.write(0xfff, &[1, 2]), Err(Fault::NotAllowed));
    assert_eq!(table.read(0, &mut [0]), Ok(Reach::Done));
    assert_eq!(table.write(0x1000, &[1]), Ok(Reach::Done));
}

#[test]
fn what_needs_a_message_lies_in_one_range() {
    let (file, pages) = sealed(0x1000);
    let mut table = table();
    table.map(0, 0x1000, Access::BOTH, Some((file, 0))).unwrap();
    table.map(0x1000, 0x1000, Access::BOTH, None).unwrap();
    assert_eq!(table.write(0x1000, &[1; 16]), Ok(Reach::ByMessage));
    assert_eq!(table.write(0xff8, &[1; 16]), Err(Fault::TooLong));
    assert_eq!(all::<8>(&pages, 0xff8), [0; 8]);
}

/// A file that is not sealed, and is cut while the device uses it: no signal, and an error.
#[test]
fn a_file_that_gets_shorter_is_a_fault() {
    let mut file = tempfile::tempfile().unwrap();
    file.set_len(0x4000).unwrap();
    let mut table = table();
    let shared = OwnedFd::from(file.try_clone().unwrap());
    table.map(0x1000, 0x4000, Access::BOTH, Some((shared, 0))).unwrap();
    file.write_all(b"here").unwrap();
    let mut got = [0; 4];
    assert_eq!(table.read(0x1000, &mut got), Ok(Reach::Done));
    assert_eq!(&got, b"here");
    assert_eq!(table.write(0x4ffc, b"last"), Ok(Reach::Done));
    file.set_len(0x1002).unwrap();
    assert_eq!(table.read(0x4000, &mut got), Err(Fault::Unreachable));
    assert_eq!(table.read(0x2000, &mut got), Err(Fault::Unreachable));
    assert_eq!(table.write(0x4000, &got), Err(Fault::Unreachable));
    assert_eq!(table.write(0x1ffe, b"gone"), Ok(Reach::Done));
    assert_eq!(file.metadata().unwrap().len(), 0x1002);
    file.seek(SeekFrom::Start(0xffe)).unwrap();
    let mut end = Vec::new();
    file.read_to_end(&mut end).unwrap();
    assert_eq!(end, b"gone");
}

#[test]
fn files_that_cannot_be_used_are_refused() {
    let mut table = table();
    let mut map = |file: OwnedFd, offset, size, access| table.map(0, size, access, Some((file, offset)));
    let (short, _pages) = sealed(0x1000);
    for (offset, size) in [(0, 0x1001), (0x1000, 1), (u64::MAX, 2), (1 << 63, 0x1000), (0, 1 << 63)] {
        assert!(map(short.try_clone().unwrap(), offset, size, Access::BOTH).is_err(), "{offset:#x} {size:#x}");
    }
    assert!(map(std::io::pipe().unwrap().0.into(), 0, 0x1000, Access::BOTH).is_err());
    assert!(map(File::open("/dev/zero").unwrap().into(), 0, 0x1000, Access::BOTH).is_err());
    let file = tempfile::NamedTempFile::new().unwrap();
    let read_only = File::open(file.path()).unwrap();
    let error = map(read_only.into(), 0, 0x1000, Access::BOTH).unwrap_err();
    assert_eq!(error.errno().raw_os_error(), 13);
    let flags = rustix::fs::MemfdFlags::HUGETLB | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let huge_pages = rustix::fs::memfd_create("huge", flags).unwrap();
    rustix::fs::fcntl_add_seals(&huge_pages, rustix::fs::SealFlags::SHRINK).unwrap();
    let error = map(huge_pages, 0, 0x20_0000, Access::BOTH).unwrap_err();
    assert_eq!(error.errno().raw_os_error(), 95);
    assert!(table.is_empty());
    // A sealed one of huge size costs no memory.
    let huge = rustix_memfd(1 << 40);
    table.map(0, 1 << 40, Access::BOTH, Some((huge, 0))).unwrap();
    assert_eq!(table.write((1 << 40) - 1, &[1]), Ok(Reach::Done));
}

fn rustix_memfd(len: usize) -> OwnedFd {
    Pages::create("huge", len).unwrap().file().unwrap().as_fd().try_clone_to_owned().unwrap()
}

proptest! {
    /// Against a model of 64 addresses: which are mapped, and what is there.
    #[test]
    fn ranges_are_as_in_a_model(steps in proptest::collection::vec((any::<bool>(), 0u64..64, 0u64..20), 1..60)) {
        let (file, _pages) = sealed(64);
        let mut table = DmaTable::new(64);
        let mut model = [None; 64];
        for (step, (map, at, len)) in steps.into_iter().enumerate() {
            let (at, end) = (at.min(64 - len), at.min(64 - len) + len);
            let here = &mut model[at as usize..end as usize];
            if map {
                let free = len > 0 && here.iter().all(Option::is_none);
                let mapped = table.map(at, len, Access::BOTH, Some((file.try_clone().unwrap(), at)));
                prop_assert_eq!(mapped.is_ok(), free);
                if free {
                    here.fill(Some(at));
                }
            } else if let Some(first) = here.first().copied().flatten().filter(|_| step % 3 == 0) {
                let size = model.iter().filter(|owner| **owner == Some(first)).count() as u64;
                prop_assert_eq!(table.whole(first, size), Some(first..=first + size - 1));
                // With one address less it is cut; with one more the next is, if it has more than one.
                prop_assert_eq!(table.whole(first, size - 1), None);
                let next = model.iter().filter(|owner| **owner == Some(first + size)).count();
                prop_assert_eq!(table.whole(first, size + 1).is_some(), next < 2);
                table.unmap(&(first..=first + size - 1));
                model.iter_mut().filter(|owner| **owner == Some(first)).for_each(|owner| *owner = None);
            } else {
                let there = model[at as usize..end as usize].iter().all(Option::is_some);
                prop_assert_eq!(table.write(at, &vec![step as u8; len as usize]).is_ok(), there);
            }
        }
    }
}
