// SPDX-License-Identifier: Apache-2.0
//! A function behind vfio-user: a client of a UNIX socket.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nacelle_slot::Errno;
use nacelle_slot::channel::{self, Channel, Descriptors, MAX_DESCRIPTORS, Message, Received};
use nacelle_slot::pages::{Access, Pages};
use nacelle_slot::protocol::{
    self, Capabilities, DmaAccess, DmaMap, DmaUnmap, Header, Info, IrqInfo, MapArea, RegionAccess, RegionInfo, SetIrqs,
    Version, command, device, dma, flag, irq, region, split,
};
use rustix::event::{PollFd, PollFlags};
use zerocopy::IntoBytes;

use crate::areas::{self, MAX_REGION_INFO};
use crate::buffer::DmaBuffer;
use crate::device::PciDevice;
use crate::error::PciError;
use crate::interrupt::Interrupt;
use crate::iova::{Addresses, PAGE};

/// Bytes of a message besides what is read or written.
const OVERHEAD: usize = 64;
/// The first BARs' regions have their numbers.
const BARS: usize = 6;

/// How the device reaches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// It gets the memory's descriptor, and accesses it by itself.
    Descriptor,
    /// It asks for each access, and is answered while this side waits for it: in [`PciDevice::wait`], for example.
    Message,
}

/// How a device is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserConfig {
    /// How long it may take to answer.
    pub timeout: Duration,
    /// How it reaches memory.
    pub share: Share,
    /// Writes to BARs are not answered: they cost half the time, and what the device refuses is lost, as on a bus.
    pub posted_writes: bool,
}

impl Default for UserConfig {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(60), share: Share::Descriptor, posted_writes: false }
    }
}

/// A region, as the device describes it.
#[derive(Debug, Default)]
struct Region {
    size: u64,
    /// Where it begins in the file.
    offset: u64,
    file: Option<OwnedFd>,
    areas: Vec<MapArea>,
}

/// A function behind a UNIX socket.
#[derive(Debug)]
pub struct UserDevice {
    channel: Channel,
    config: UserConfig,
    peer: Capabilities,
    regions: Vec<Region>,
    vectors: u16,
    resettable: bool,
    next_id: u16,
    addresses: Addresses,
    /// Memory that the device may access, by its address.
    memory: BTreeMap<u64, (Arc<Pages>, Access)>,
    /// Nothing can be told any more of what the device does.
    broken: bool,
}

impl UserDevice {
    /// Connects to the device at `path`.
    ///
    /// # Errors
    /// If there is none, it has a client already, or is not usable.
    pub fn connect(path: &Path, config: UserConfig) -> Result<Self, PciError> {
        let socket = UnixStream::connect(path).map_err(|source| PciError::NoSlot { path: path.to_owned(), source })?;
        Self::over(socket, config)
    }

    /// The device at the other end of `socket`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn over(socket: UnixStream, config: UserConfig) -> Result<Self, PciError> {
        let mut device = Self {
            channel: Channel::new(socket, protocol::DEFAULT_TRANSFER + OVERHEAD)?,
            config,
            peer: Capabilities::default(),
            regions: Vec::new(),
            vectors: 0,
            resettable: false,
            next_id: 0,
            addresses: Addresses::default(),
            memory: BTreeMap::new(),
            broken: false,
        };
        device.agree()?;
        device.look()?;
        Ok(device)
    }

    fn agree(&mut self) -> Result<(), PciError> {
        let own = Capabilities { descriptors: MAX_DESCRIPTORS, ..Capabilities::default() };
        let version = Version { major: protocol::MAJOR, minor: protocol::MINOR };
        let reply = self.ask("the version", command::VERSION, &[version.as_bytes(), &own.to_bytes()], &[])?;
        let said = split::<Version>(reply.payload());
        let (said, json) =
            said.filter(|(said, _)| said.major == protocol::MAJOR).ok_or(PciError::Unusable("its version"))?;
        if said.minor > protocol::MINOR {
            return Err(PciError::Unusable("its version"));
        }
        self.peer = Capabilities::parse(json).ok_or(PciError::Unusable("its capabilities make no sense"))?;
        self.channel.give_back(reply);
        Ok(())
    }

    /// Finds out what there is.
    fn look(&mut self) -> Result<(), PciError> {
        let argsz = size_of::<Info>() as u32;
        let reply =
            self.ask("its description", command::GET_INFO, &[Info { argsz, ..Info::default() }.as_bytes()], &[])?;
        let (info, _) = split::<Info>(reply.payload()).ok_or(PciError::Unusable("its description is short"))?;
        if info.flags & device::PCI == 0 || info.regions <= region::CONFIG || info.irqs <= irq::MSIX {
            return Err(PciError::Unusable("it is no PCI function"));
        }
        self.resettable = info.flags & device::RESET != 0;
        for index in 0..=region::CONFIG {
            let described = self.describe(index)?;
            self.regions.push(described);
        }
        let argsz = size_of::<IrqInfo>() as u32;
        let asked = IrqInfo { argsz, index: irq::MSIX, ..IrqInfo::default() };
        let reply = self.ask("its interrupts", command::GET_IRQ_INFO, &[asked.as_bytes()], &[])?;
        let (info, _) = split::<IrqInfo>(reply.payload()).ok_or(PciError::Unusable("its interrupts are short"))?;
        self.vectors = u16::try_from(info.count).unwrap_or(u16::MAX).min(2048);
        Ok(())
    }

    fn describe(&mut self, index: u32) -> Result<Region, PciError> {
        let asked = RegionInfo { argsz: MAX_REGION_INFO as u32, index, ..RegionInfo::default() };
        let mut reply = self.ask("a region", command::GET_REGION_INFO, &[asked.as_bytes()], &[])?;
        let (info, _) = split::<RegionInfo>(reply.payload()).ok_or(PciError::Unusable("a region is short"))?;
        let file = std::mem::take(&mut reply.descriptors).pop().filter(|_| info.flags & region::MMAP != 0);
        let areas = areas::mappable(&info, reply.payload());
        Ok(Region { size: info.size, offset: info.offset, file, areas })
    }

    /// Sends a command and waits for its reply; answers requests of the device meanwhile.
    fn ask(
        &mut self,
        what: &'static str,
        command: u16,
        parts: &[&[u8]],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Message, PciError> {
        let id = self.send(command, 0, parts, descriptors)?;
        let deadline = Instant::now() + self.config.timeout;
        loop {
            let Some(message) = self.next_message(deadline, None)? else { return Err(self.broken(PciError::Timeout)) };
            if !message.header.is_reply() {
                self.serve(message);
            } else if message.header.id == id && message.header.command == command {
                return checked(what, message);
            } else {
                return Err(self.broken(PciError::Unusable("it answers what it was not asked")));
            }
        }
    }

    fn send(
        &mut self,
        command: u16,
        flags: u32,
        parts: &[&[u8]],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<u16, PciError> {
        if self.broken {
            return Err(PciError::Gone);
        }
        self.next_id = self.next_id.wrapping_add(1);
        let header = Header { id: self.next_id, command, flags, ..Header::default() };
        let descriptors = descriptors.iter().map(BorrowedFd::try_clone_to_owned);
        let descriptors = descriptors.collect::<Result<Descriptors, _>>()?;
        self.channel.queue(header, parts, descriptors);
        Ok(self.next_id)
    }

    /// The next message. `None` at the deadline, or if `other` can be read.
    fn next_message(&mut self, deadline: Instant, other: Option<BorrowedFd<'_>>) -> Result<Option<Message>, PciError> {
        loop {
            if self.channel.flush().is_err() {
                return Err(self.broken(PciError::Gone));
            }
            match self.channel.receive() {
                Ok(Received::Message) => {
                    let message = self.channel.take();
                    if message.too_long {
                        return Err(self.broken(PciError::Unusable("its message is too long")));
                    }
                    return Ok(Some(message));
                }
                Ok(Received::Nothing) => {}
                Ok(Received::Closed) | Err(_) => return Err(self.broken(PciError::Gone)),
                Ok(Received::OutOfStep) => return Err(self.broken(PciError::Unusable("its message is too short"))),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let interest = channel::interest(&self.channel, true);
            let socket = PollFd::from_borrowed_fd(self.channel.socket(), interest);
            let Some(other) = other else {
                channel::wait(&mut [socket], Some(left))?;
                continue;
            };
            let mut both = [socket, PollFd::from_borrowed_fd(other, PollFlags::IN)];
            channel::wait(&mut both, Some(left))?;
            if channel::is_ready(&both[1]) {
                return Ok(None);
            }
        }
    }

    fn broken(&mut self, error: PciError) -> PciError {
        self.broken = true;
        error
    }

    /// Answers a request of the device.
    fn serve(&mut self, message: Message) {
        let header = message.header;
        let result = match header.command {
            command::DMA_READ => self.serve_read(&message),
            command::DMA_WRITE => self.serve_write(&message),
            _ => Err(Errno::OPNOTSUPP),
        };
        if header.wants_reply() {
            let reply = Header { flags: flag::REPLY, error: 0, ..header };
            match result {
                Ok((access, bytes)) => self.channel.queue(reply, &[access.as_bytes(), &bytes], Descriptors::new()),
                Err(errno) => {
                    let failed =
                        Header { flags: flag::REPLY | flag::ERROR, error: errno.raw_os_error() as u32, ..reply };
                    self.channel.queue(failed, &[], Descriptors::new());
                }
            }
        }
        self.channel.give_back(message);
    }

    fn serve_read(&self, message: &Message) -> Result<(DmaAccess, Vec<u8>), Errno> {
        let (access, rest) = split::<DmaAccess>(message.payload()).ok_or(Errno::INVAL)?;
        let (pages, offset, allowed) = self.place(access)?;
        if !rest.is_empty() || !allowed.read {
            return Err(Errno::INVAL);
        }
        let mut bytes = vec![0; access.count as usize];
        pages.read(offset, &mut bytes).map_err(|_| Errno::FAULT)?;
        Ok((access, bytes))
    }

    fn serve_write(&self, message: &Message) -> Result<(DmaAccess, Vec<u8>), Errno> {
        let (access, bytes) = split::<DmaAccess>(message.payload()).ok_or(Errno::INVAL)?;
        let (pages, offset, allowed) = self.place(access)?;
        if bytes.len() as u64 != access.count || !allowed.write {
            return Err(Errno::INVAL);
        }
        pages.write(offset, bytes).map_err(|_| Errno::FAULT)?;
        Ok((access, Vec::new()))
    }

    /// Where an access of the device is.
    fn place(&self, access: DmaAccess) -> Result<(&Pages, u64, Access), Errno> {
        if access.count > protocol::DEFAULT_TRANSFER as u64 {
            return Err(Errno::INVAL);
        }
        let (first, (pages, allowed)) = self.memory.range(..=access.address).next_back().ok_or(Errno::FAULT)?;
        Ok((pages, access.address - first, *allowed))
    }

    /// A read or write, in pieces that the device takes.
    fn pieces(&self, len: usize) -> Result<impl Iterator<Item = std::ops::Range<usize>> + use<>, PciError> {
        let most = self.peer.transfer.min(protocol::DEFAULT_TRANSFER);
        if most < 8 {
            return Err(PciError::Unusable("it takes no accesses"));
        }
        Ok((0..len).step_by(most).map(move |begin| begin..len.min(begin + most)))
    }

    fn read(&mut self, region: u32, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        for piece in self.pieces(into.len())? {
            let into = &mut into[piece.clone()];
            let access = RegionAccess { offset: offset + piece.start as u64, region, count: into.len() as u32 };
            let reply = self.ask("a read", command::REGION_READ, &[access.as_bytes()], &[])?;
            let bytes = split::<RegionAccess>(reply.payload()).map(|(_, bytes)| bytes);
            let bytes = bytes.filter(|bytes| bytes.len() == into.len());
            into.copy_from_slice(bytes.ok_or(PciError::Unusable("it answers a read with another length"))?);
            self.channel.give_back(reply);
        }
        Ok(())
    }

    fn write(&mut self, region: u32, offset: u64, bytes: &[u8], posted: bool) -> Result<(), PciError> {
        for piece in self.pieces(bytes.len())? {
            let bytes = &bytes[piece.clone()];
            let access = RegionAccess { offset: offset + piece.start as u64, region, count: bytes.len() as u32 };
            let parts = [access.as_bytes(), bytes];
            if posted {
                self.send(command::REGION_WRITE, flag::NO_REPLY, &parts, &[])?;
                self.drain()?;
            } else {
                let reply = self.ask("a write", command::REGION_WRITE, &parts, &[])?;
                self.channel.give_back(reply);
            }
        }
        Ok(())
    }

    /// Waits until all is sent; answers requests of the device meanwhile.
    fn drain(&mut self) -> Result<(), PciError> {
        let deadline = Instant::now() + self.config.timeout;
        while self.channel.flush().is_ok() {
            if self.channel.unsent() == 0 {
                return Ok(());
            }
            // Not for messages alone: room in the socket ends the wait, too.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.broken(PciError::Timeout));
            }
            let interest = channel::interest(&self.channel, true);
            channel::wait(&mut [PollFd::from_borrowed_fd(self.channel.socket(), interest)], Some(left))?;
            if let Some(message) = self.next_message(Instant::now(), None)? {
                self.request(message)?;
            }
        }
        Err(self.broken(PciError::Gone))
    }

    /// A message that can only be a request of the device.
    fn request(&mut self, message: Message) -> Result<(), PciError> {
        if message.header.is_reply() {
            return Err(self.broken(PciError::Unusable("it answers what it was not asked")));
        }
        self.serve(message);
        Ok(())
    }

    fn bar(&self, bar: u8, offset: u64, len: usize) -> Result<&Region, PciError> {
        let out = PciError::Range { bar, offset, len };
        let region = self.regions.get(usize::from(bar)).filter(|_| usize::from(bar) < BARS);
        let end = offset.checked_add(len as u64);
        region.filter(|region| end.is_some_and(|end| end <= region.size)).ok_or(out)
    }

    /// Tells the device of memory.
    fn map_dma(
        &mut self,
        iova: u64,
        size: u64,
        file: Option<BorrowedFd<'_>>,
        offset: u64,
        access: Access,
    ) -> Result<(), PciError> {
        let rights = [(access.read, dma::READ), (access.write, dma::WRITE)];
        let map = DmaMap {
            argsz: size_of::<DmaMap>() as u32,
            flags: rights.iter().map(|(given, bit)| if *given { *bit } else { 0 }).sum(),
            offset,
            address: iova,
            size,
        };
        let reply = self.ask("memory", command::DMA_MAP, &[map.as_bytes()], file.as_slice())?;
        self.channel.give_back(reply);
        Ok(())
    }

    fn set_irqs(&mut self, flags: u32, start: u16, count: u16, eventfds: &[BorrowedFd<'_>]) -> Result<(), PciError> {
        let set = SetIrqs {
            argsz: size_of::<SetIrqs>() as u32,
            flags: flags | irq::ACTION_TRIGGER,
            index: irq::MSIX,
            start: start.into(),
            count: count.into(),
        };
        let reply = self.ask("interrupts", command::SET_IRQS, &[set.as_bytes()], eventfds)?;
        self.channel.give_back(reply);
        Ok(())
    }
}

impl PciDevice for UserDevice {
    fn config_read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        self.read(region::CONFIG, offset, into)
    }

    fn config_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), PciError> {
        self.write(region::CONFIG, offset, bytes, false)
    }

    fn bar_size(&self, bar: u8) -> u64 {
        self.bar(bar, 0, 0).map_or(0, |region| region.size)
    }

    fn bar_read(&mut self, bar: u8, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        self.bar(bar, offset, into.len())?;
        self.read(bar.into(), offset, into)
    }

    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) -> Result<(), PciError> {
        self.bar(bar, offset, bytes.len())?;
        self.write(bar.into(), offset, bytes, self.config.posted_writes)
    }

    fn map_bar(&mut self, bar: u8, offset: u64, len: usize) -> Result<Pages, PciError> {
        let region = self.bar(bar, offset, len)?;
        let not = PciError::NotMappable { bar, offset };
        let (Some(file), true) = (&region.file, areas::hold(&region.areas, offset, len)) else { return Err(not) };
        let place = region.offset.checked_add(offset).ok_or(PciError::NotMappable { bar, offset })?;
        // Memory that could vanish is not mapped: it can be reached by messages.
        Pages::of(file, place, len, Access::BOTH).map_err(|error| match error.kind() {
            std::io::ErrorKind::Unsupported | std::io::ErrorKind::InvalidInput => not,
            _ => error.into(),
        })
    }

    fn alloc_dma(&mut self, len: usize, access: Access) -> Result<DmaBuffer, PciError> {
        let size = (len as u64).max(1).checked_next_multiple_of(PAGE).filter(|size| *size <= isize::MAX as u64);
        let size = size.ok_or(PciError::NoAddresses { len })?;
        let pages = Arc::new(Pages::create("nacelle-dma", size as usize)?);
        let iova = self.addresses.take(size).ok_or(PciError::NoAddresses { len })?;
        // Before the device may ask for it.
        self.memory.insert(iova, (Arc::clone(&pages), access));
        let file = pages.file().filter(|_| self.config.share == Share::Descriptor);
        match self.map_dma(iova, size, file, 0, access) {
            Ok(()) => Ok(DmaBuffer { iova, pages }),
            Err(error) => {
                self.memory.remove(&iova);
                self.addresses.give(iova);
                Err(error)
            }
        }
    }

    fn free_dma(&mut self, buffer: DmaBuffer) -> Result<(), PciError> {
        self.unshare_dma(buffer.iova, buffer.len() as u64)?;
        self.memory.remove(&buffer.iova);
        Ok(())
    }

    fn share_dma(
        &mut self,
        iova: u64,
        len: u64,
        file: BorrowedFd<'_>,
        offset: u64,
        access: Access,
    ) -> Result<(), PciError> {
        if !self.addresses.claim(iova, len) {
            return Err(PciError::AddressesTaken { iova, len });
        }
        self.map_dma(iova, len, Some(file), offset, access).inspect_err(|_| self.addresses.give(iova))
    }

    fn unshare_dma(&mut self, iova: u64, len: u64) -> Result<(), PciError> {
        let argsz = size_of::<DmaUnmap>() as u32;
        let unmap = DmaUnmap { argsz, flags: 0, address: iova, size: len };
        let reply = self.ask("taking memory back", command::DMA_UNMAP, &[unmap.as_bytes()], &[])?;
        self.channel.give_back(reply);
        self.addresses.give(iova);
        Ok(())
    }

    fn vectors(&self) -> u16 {
        self.vectors
    }

    fn set_interrupts(&mut self, first: u16, eventfds: &[BorrowedFd<'_>]) -> Result<(), PciError> {
        let has = self.vectors;
        if usize::from(first) + eventfds.len() > usize::from(has) {
            return Err(PciError::NoVector { has });
        }
        let most = self.peer.descriptors.clamp(1, MAX_DESCRIPTORS);
        for (number, chunk) in eventfds.chunks(most).enumerate() {
            let start = first + (number * most) as u16;
            self.set_irqs(irq::DATA_EVENTFD, start, chunk.len() as u16, chunk)?;
        }
        Ok(())
    }

    fn clear_interrupts(&mut self) -> Result<(), PciError> {
        self.set_irqs(irq::DATA_NONE, 0, 0, &[])
    }

    fn wait(&mut self, interrupt: &Interrupt, wait: Duration) -> Result<u64, PciError> {
        let deadline = Instant::now() + wait;
        loop {
            let times = interrupt.take()?;
            if times > 0 {
                return Ok(times);
            }
            if let Some(message) = self.next_message(deadline, Some(interrupt.as_fd()))? {
                self.request(message)?;
            } else if Instant::now() >= deadline {
                return Ok(interrupt.take()?);
            }
        }
    }

    fn alarm(&self) -> Result<Option<OwnedFd>, PciError> {
        Ok(Some(self.channel.socket().try_clone_to_owned()?))
    }

    fn reset(&mut self) -> Result<(), PciError> {
        if !self.resettable {
            return Err(PciError::Unusable("it cannot be reset"));
        }
        let reply = self.ask("a reset", command::RESET, &[], &[])?;
        self.channel.give_back(reply);
        Ok(())
    }
}

/// A reply, unless it says that the command failed.
fn checked(what: &'static str, reply: Message) -> Result<Message, PciError> {
    if reply.header.flags & flag::ERROR == 0 {
        return Ok(reply);
    }
    // Some say no reason.
    let number = i32::try_from(reply.header.error).ok().filter(|number| (1..4096).contains(number));
    Err(PciError::Refused { what, errno: number.map_or(Errno::IO, Errno::from_raw_os_error) })
}
