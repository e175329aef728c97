// SPDX-License-Identifier: Apache-2.0
//! The kernel's VFIO, of which there is a model here: which calls are made, in which order, with what in them, and what comes of those
//! that fail. It shows nothing about hardware.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nacelle_pci::kernel::{
    Argument, AttachIommufdPt, BindIommufd, Call, DeviceInfo, GroupStatus, IoasAlloc, IoasMap, IoasUnmap, System,
    Type1Map, Type1Unmap,
};
use nacelle_pci::{Access, KernelDevice, Pages, PciDevice, PciError};
use nacelle_slot::Errno;
use nacelle_slot::protocol::{IrqInfo, MapArea, RegionInfo, SetIrqs, SparseMmap, split};
use zerocopy::{FromBytes, IntoBytes};

const ADDRESS: &str = "0000:01:00.0";
/// As vfio-pci has it: a region's number is in the upper bits of its place in the file.
const SHIFT: u32 = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Container,
    Group,
    Device,
    Iommu,
}

#[derive(Debug)]
struct Model {
    newer: bool,
    /// A call that fails, and how.
    fails: Option<(Call, i32)>,
    version: i32,
    viable: u32,
    argued: Vec<Call>,
    open: HashMap<i32, Kind>,
    paths: Vec<PathBuf>,
    /// Memory that the device may access: address, bytes, rights, and where it is in this process.
    mapped: Vec<(u64, u64, u32, u64)>,
    eventfds: Vec<i32>,
    device: Option<OwnedFd>,
}

#[derive(Debug, Clone)]
struct Fake(Rc<RefCell<Model>>);

fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

fn new(newer: bool) -> Fake {
    Fake(Rc::new(RefCell::new(Model {
        newer,
        fails: None,
        version: 0,
        viable: 1,
        argued: Vec::new(),
        open: HashMap::new(),
        paths: Vec::new(),
        mapped: Vec::new(),
        eventfds: Vec::new(),
        device: None,
    })))
}

/// A structure, which must say its own length.
fn given<T: FromBytes>(bytes: &[u8]) -> T {
    let said = u32::from_ne_bytes(*bytes.first_chunk().unwrap()) as usize;
    assert!(said >= size_of::<T>() && said <= bytes.len(), "{said} of {}", bytes.len());
    split(bytes).unwrap().0
}

impl Fake {
    fn make(&self, kind: Kind) -> OwnedFd {
        let file = OwnedFd::from(tempfile::tempfile().unwrap());
        if kind == Kind::Device {
            rustix::fs::ftruncate(&file, 8 << SHIFT).unwrap();
            rustix::io::pwrite(&file, &[0x41, 0x4e, 1, 0, 2, 0], 7 << SHIFT).unwrap();
            self.0.borrow_mut().device = Some(file.try_clone().unwrap());
        }
        self.0.borrow_mut().open.insert(file.as_raw_fd(), kind);
        file
    }

    fn structure(&self, call: Call, bytes: &mut [u8]) -> io::Result<i32> {
        let mut model = self.0.borrow_mut();
        match call {
            Call::GroupGetStatus => {
                let status = GroupStatus { flags: model.viable, ..given(bytes) };
                bytes.copy_from_slice(status.as_bytes());
            }
            Call::DeviceGetInfo => {
                let info = DeviceInfo { flags: 3, regions: 9, irqs: 5, ..given(bytes) };
                bytes.copy_from_slice(info.as_bytes());
            }
            Call::DeviceGetRegionInfo => return region(bytes),
            Call::DeviceGetIrqInfo => {
                let asked: IrqInfo = given(bytes);
                assert_eq!(asked.index, 2);
                bytes.copy_from_slice(IrqInfo { count: 8, flags: 9, ..asked }.as_bytes());
            }
            Call::DeviceSetIrqs => {
                let set: SetIrqs = given(bytes);
                assert_eq!((set.index, set.start, set.argsz as usize), (2, 0, bytes.len()));
                let data = &bytes[size_of::<SetIrqs>()..];
                let none = set.flags == 0b10_0001 && set.count == 0 && data.is_empty();
                assert!(none || (set.flags == 0b10_0100 && data.len() == 4 * set.count as usize && set.count > 0));
                assert!(none || model.eventfds.is_empty(), "a set is not changed while it is on");
                model.eventfds = data.chunks(4).map(|fd| i32::from_ne_bytes(fd.try_into().unwrap())).collect();
            }
            Call::IommuMapDma => {
                let map: Type1Map = given(bytes);
                model.mapped.push((map.iova, map.size, map.flags, map.vaddr));
            }
            Call::IommuUnmapDma => {
                let unmap: Type1Unmap = given(bytes);
                model.mapped.retain(|(iova, size, ..)| (*iova, *size) != (unmap.iova, unmap.size));
            }
            Call::DeviceBindIommufd => {
                let bind: BindIommufd = given(bytes);
                assert_eq!((model.open[&bind.iommufd], bind.flags), (Kind::Iommu, 0));
            }
            Call::IoasAlloc => {
                let alloc: IoasAlloc = given(bytes);
                bytes.copy_from_slice(IoasAlloc { out_ioas_id: 77, ..alloc }.as_bytes());
            }
            Call::DeviceAttachIommufdPt => assert_eq!(given::<AttachIommufdPt>(bytes).pt_id, 77),
            Call::IoasMap => {
                let map: IoasMap = given(bytes);
                assert_eq!((map.ioas_id, map.flags & 1), (77, 1), "at a fixed address");
                let rights = (map.flags >> 2 & 1) | (map.flags & 2);
                model.mapped.push((map.iova, map.length, rights, map.user_va));
            }
            Call::IoasUnmap => {
                let unmap: IoasUnmap = given(bytes);
                model.mapped.retain(|(iova, size, ..)| (*iova, *size) != (unmap.iova, unmap.length));
            }
            other => panic!("{other:?} takes no structure"),
        }
        Ok(0)
    }
}

/// BAR 0 can be mapped but for a page, BAR 2 whole, BAR 4 not; there is no ROM.
fn region(bytes: &mut [u8]) -> io::Result<i32> {
    let asked: RegionInfo = given(bytes);
    let (size, flags) = match asked.index {
        0 => (0x4000, 0b1111),
        2 => (0x1000, 0b111),
        4 => (0x1000, 0b11),
        6 => return Err(error(22)),
        7 => (4096, 0b11),
        _ => (0, 0),
    };
    let info = RegionInfo { flags, size, offset: u64::from(asked.index) << SHIFT, argsz: 80, ..asked };
    bytes[..32].copy_from_slice(RegionInfo { cap_offset: 32 * (flags >> 3), ..info }.as_bytes());
    if asked.index == 0 {
        // First a capability that nobody knows.
        let other = SparseMmap { id: 3, version: 1, next: 40, ..SparseMmap::default() };
        bytes[32..40].copy_from_slice(&other.as_bytes()[..8]);
        let sparse = SparseMmap { id: 1, version: 1, next: 0, areas: 2, reserved: 0 };
        let areas = [MapArea { offset: 0, size: 0x1000 }, MapArea { offset: 0x2000, size: 0x2000 }];
        bytes[40..56].copy_from_slice(sparse.as_bytes());
        bytes[56..88].copy_from_slice(areas.as_bytes());
    }
    Ok(0)
}

impl System for Fake {
    fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        let newer = self.0.borrow().newer;
        let kind = match path.to_str().unwrap() {
            "/dev/iommu" if newer => Kind::Iommu,
            "/dev/vfio/devices/vfio3" if newer => Kind::Device,
            "/dev/vfio/vfio" if !newer => Kind::Container,
            "/dev/vfio/26" if !newer => Kind::Group,
            _ => return Err(error(2)),
        };
        self.0.borrow_mut().paths.push(path.to_owned());
        Ok(self.make(kind))
    }

    fn link(&self, path: &Path) -> io::Result<PathBuf> {
        assert_eq!(path, Path::new("/sys/bus/pci/devices/0000:01:00.0/iommu_group"));
        Ok("../../../../kernel/iommu_groups/26".into())
    }

    fn names(&self, path: &Path) -> io::Result<Vec<OsString>> {
        assert_eq!(path, Path::new("/sys/bus/pci/devices/0000:01:00.0/vfio-dev"));
        if self.0.borrow().newer { Ok(vec!["vfio3".into()]) } else { Err(error(2)) }
    }

    fn call(&self, file: BorrowedFd<'_>, call: Call, argument: Argument<'_>) -> io::Result<i32> {
        let kind = self.0.borrow().open[&file.as_raw_fd()];
        let right = match call {
            Call::GetApiVersion | Call::CheckExtension | Call::SetIommu | Call::IommuMapDma | Call::IommuUnmapDma => {
                Kind::Container
            }
            Call::GroupGetStatus | Call::GroupSetContainer | Call::GroupGetDeviceFd => Kind::Group,
            Call::IoasAlloc | Call::IoasMap | Call::IoasUnmap => Kind::Iommu,
            _ => Kind::Device,
        };
        assert_eq!(kind, right, "{call:?}");
        self.0.borrow_mut().argued.push(call);
        if let Some((fails, number)) = self.0.borrow().fails
            && fails == call
        {
            return Err(error(number));
        }
        match (call, argument) {
            (Call::GetApiVersion, Argument::None) => Ok(self.0.borrow().version),
            (Call::CheckExtension, Argument::Number(3)) => Ok(1),
            (Call::SetIommu, Argument::Number(3)) | (Call::DeviceReset, Argument::None) => Ok(0),
            (Call::GroupSetContainer, Argument::Descriptor(container)) => {
                assert_eq!(self.0.borrow().open[&container.as_raw_fd()], Kind::Container);
                Ok(0)
            }
            (call, Argument::Structure(bytes)) => self.structure(call, bytes),
            other => panic!("{other:?}"),
        }
    }

    fn call_for_descriptor(&self, file: BorrowedFd<'_>, call: Call, argument: Argument<'_>) -> io::Result<OwnedFd> {
        assert_eq!(self.0.borrow().open[&file.as_raw_fd()], Kind::Group);
        assert!(
            matches!((call, argument), (Call::GroupGetDeviceFd, Argument::Name(name)) if name.to_str() == Ok(ADDRESS))
        );
        self.0.borrow_mut().argued.push(call);
        Ok(self.make(Kind::Device))
    }

    fn read_at(&self, file: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pread(file, into, offset)?)
    }

    fn write_at(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwrite(file, bytes, offset)?)
    }

    fn map(&self, file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Pages> {
        Pages::of_device(file, offset, len, Access::BOTH)
    }
}

/// All that a driver does, with a model that is taken.
fn drive(fake: &Fake) {
    let mut device = KernelDevice::open_by(fake.clone(), ADDRESS).unwrap();
    assert_eq!(device.identity().unwrap().vendor, 0x4e41);
    assert_eq!([0, 1, 2, 4, 6].map(|bar| device.bar_size(bar)), [0x4000, 0, 0x1000, 0x1000, 0]);
    assert_eq!(device.vectors(), 8);
    device.set_bus_master(true).unwrap();
    let mut command = [0];
    device.config_read(4, &mut command).unwrap();
    assert_eq!(command, [6]);
    assert!(device.config_read(4093, &mut [0; 4]).is_err());

    device.write64(0, 0x3ff8, 0x1122_3344_5566_7788).unwrap();
    assert_eq!((device.read64(0, 0x3ff8).unwrap(), device.read16(0, 0x3ffe).unwrap()), (0x1122_3344_5566_7788, 0x1122));
    let there = fake.0.borrow().device.as_ref().unwrap().try_clone().unwrap();
    let mut bytes = [0; 8];
    rustix::io::pread(&there, &mut bytes, 0x3ff8).unwrap();
    assert_eq!(u64::from_le_bytes(bytes), 0x1122_3344_5566_7788);
    assert!(matches!(device.read32(0, 0x3ffd), Err(PciError::Range { .. })));

    for (bar, offset, len, works) in [
        (0, 0, 0x1000, true),
        (0, 0x2000, 0x2000, true),
        (0, 0x1000, 0x1000, false),
        (0, 0xff8, 16, false),
        (2, 0, 0x1000, true),
        (2, 0x10, 8, true),
        (4, 0, 0x1000, false),
    ] {
        assert_eq!(device.map_bar(bar, offset, len).is_ok(), works, "{bar} {offset:#x} {len:#x}");
    }
    let mapped = device.map_bar(2, 0x10, 8).unwrap();
    mapped.write(0, &[9; 8]).unwrap();
    assert_eq!(device.read64(2, 0x10).unwrap(), 0x0909_0909_0909_0909);

    memory(fake, &mut device);
    interrupts(fake, &mut device);
    device.reset().unwrap();
    assert_eq!(fake.0.borrow().argued.last(), Some(&Call::DeviceReset));
}

fn memory(fake: &Fake, device: &mut impl PciDevice) {
    let buffer = device.alloc_dma(5000, Access::BOTH).unwrap();
    let read_only = device.alloc_dma(1, Access { read: true, write: false }).unwrap();
    buffer.write(4992, b"far away").unwrap();
    let mapped = fake.0.borrow().mapped.clone();
    assert_eq!((mapped[0].1, mapped[0].2), (8192, 3));
    assert_eq!((mapped[0].0, mapped[1].0), (buffer.iova(), read_only.iova()));
    assert_eq!((mapped[1].1, mapped[1].2), (4096, 1));
    assert!(mapped[0].3.is_multiple_of(4096));
    device.free_dma(buffer).unwrap();
    assert_eq!(fake.0.borrow().mapped, mapped[1..]);
    fake.0.borrow_mut().fails = Some((Call::IommuMapDma, 12));
    if fake.0.borrow().newer {
        fake.0.borrow_mut().fails = Some((Call::IoasMap, 12));
    }
    let refused = device.alloc_dma(4096, Access::BOTH).unwrap_err();
    assert!(matches!(refused, PciError::Refused { what: "memory", errno: Errno::NOMEM }), "{refused}");
    fake.0.borrow_mut().fails = None;
    assert_eq!(device.alloc_dma(8192, Access::BOTH).unwrap().iova(), mapped[0].0, "the addresses are free again");
    shared(fake, device);
}

/// Memory of another process is mapped here for the kernel, which only a sealed file is.
fn shared(fake: &Fake, device: &mut impl PciDevice) {
    let pages = Pages::create("shared", 0x3000).unwrap();
    let before = fake.0.borrow().mapped.clone();
    device.share_dma(0x8_0000, 0x2000, pages.file().unwrap(), 0x1000, Access::BOTH).unwrap();
    assert_eq!(fake.0.borrow().mapped.len(), before.len() + 1);
    let taken = device.share_dma(0x8_1000, 0x1000, pages.file().unwrap(), 0, Access::BOTH).unwrap_err();
    assert!(matches!(taken, PciError::AddressesTaken { .. }), "{taken}");
    let unsealed = tempfile::tempfile().unwrap();
    unsealed.set_len(0x1000).unwrap();
    let refused = device.share_dma(0, 0x1000, unsealed.as_fd(), 0, Access::BOTH).unwrap_err();
    assert!(matches!(refused, PciError::System(_)), "{refused}");
    device.unshare_dma(0x8_0000, 0x2000).unwrap();
    assert_eq!(fake.0.borrow().mapped, before);
}

fn interrupts(fake: &Fake, device: &mut impl PciDevice) {
    let interrupts = device.interrupts(2).unwrap();
    assert!(fake.0.borrow().eventfds.iter().all(|fd| *fd >= 0) && fake.0.borrow().eventfds.len() == 2);
    device.set_interrupts(5, &[interrupts[0].as_fd()]).unwrap();
    let set: Vec<bool> = fake.0.borrow().eventfds.iter().map(|fd| *fd >= 0).collect();
    assert_eq!(set, [true, true, false, false, false, true]);
    let last = fake.0.borrow().eventfds[5];
    // SAFETY: the device keeps it open.
    let last = unsafe { BorrowedFd::borrow_raw(last) };
    rustix::io::write(last, &1u64.to_ne_bytes()).unwrap();
    assert_eq!(device.wait(&interrupts[0], std::time::Duration::from_secs(9)).unwrap(), 1);
    assert!(matches!(device.set_interrupts(7, &[last, last]), Err(PciError::NoVector { has: 8 })));
    device.clear_interrupts().unwrap();
    assert!(fake.0.borrow().eventfds.is_empty());
}

#[test]
fn by_group_and_container() {
    let fake = new(false);
    drive(&fake);
    let model = fake.0.borrow();
    assert_eq!(model.paths, ["/dev/vfio/26", "/dev/vfio/vfio"].map(PathBuf::from));
    use Call::{
        CheckExtension, DeviceGetInfo, GetApiVersion, GroupGetDeviceFd, GroupGetStatus, GroupSetContainer, SetIommu,
    };
    let first =
        [GetApiVersion, CheckExtension, GroupGetStatus, GroupSetContainer, SetIommu, GroupGetDeviceFd, DeviceGetInfo];
    assert_eq!(model.argued[..7], first);
}

#[test]
fn by_device_and_iommu_file() {
    let fake = new(true);
    drive(&fake);
    let model = fake.0.borrow();
    assert_eq!(model.paths, ["/dev/iommu", "/dev/vfio/devices/vfio3"].map(PathBuf::from));
    use Call::{DeviceAttachIommufdPt, DeviceBindIommufd, DeviceGetInfo, IoasAlloc};
    assert_eq!(model.argued[..4], [DeviceBindIommufd, IoasAlloc, DeviceAttachIommufdPt, DeviceGetInfo]);
}

#[test]
fn what_the_kernel_refuses_is_said() {
    for (newer, call, number) in [
        (false, Call::GroupGetStatus, 22),
        (false, Call::GroupSetContainer, 16),
        (false, Call::SetIommu, 1),
        (false, Call::DeviceGetInfo, 22),
        (false, Call::DeviceGetIrqInfo, 22),
        (true, Call::DeviceBindIommufd, 19),
        (true, Call::IoasAlloc, 12),
        (true, Call::DeviceAttachIommufdPt, 16),
    ] {
        let fake = new(newer);
        fake.0.borrow_mut().fails = Some((call, number));
        let refused = KernelDevice::open_by(fake, ADDRESS).unwrap_err();
        assert!(
            matches!(refused, PciError::Refused { errno, .. } if errno.raw_os_error() == number),
            "{call:?}: {refused}"
        );
    }
    let fake = new(false);
    fake.0.borrow_mut().viable = 0;
    assert!(matches!(KernelDevice::open_by(fake, ADDRESS), Err(PciError::Unusable(_))));
    let fake = new(false);
    fake.0.borrow_mut().version = 1;
    assert!(matches!(KernelDevice::open_by(fake, ADDRESS), Err(PciError::Unusable(_))));
}

#[test]
fn no_address_leads_elsewhere() {
    for address in ["", "../../..", "0000:01:00.0/../../", "0000:01:00.0\0", "eth0", "0:0.0"] {
        assert!(matches!(KernelDevice::open_by(new(true), address), Err(PciError::Unusable(_))), "{address:?}");
    }
    // On this machine there is none at this address, or it is not this test's.
    assert!(matches!(KernelDevice::open("ffff:ff:1f.7"), Err(PciError::NoFile { .. })));
}
