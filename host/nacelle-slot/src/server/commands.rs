// SPDX-License-Identifier: Apache-2.0
//! The commands of a client, one by one.

use std::os::fd::AsFd;

use rustix::io::Errno;
use smallvec::SmallVec;
use zerocopy::IntoBytes;

use crate::channel::{Descriptors, MAX_DESCRIPTORS, Message};
use crate::config_space::{CONFIG_BYTES, ConfigEvent, Power, Window};
use crate::dma::Fault;
use crate::eventfd::is_eventfd;
use crate::function::{Answer, BarAccess, DmaToken, Function, ResetCause, Token};
use crate::pages::Access;
use crate::protocol::{
    self, Capabilities, DmaMap, DmaUnmap, Header, Info, IoEventFd, IrqInfo, RegionAccess, RegionInfo, RegionIoFds,
    SetIrqs, SparseMmap, Version, command, device, dma, flag, irq, region, split,
};

use super::link::{Pending, What};
use super::regions::{self, Place};
use super::{Host, READ_WRITE, State, reply_header};

/// Regions of BARs have the lowest numbers.
const BARS: u32 = crate::config_space::BARS as u32;

/// How a command ends, if not with an error.
enum Outcome {
    /// With a reply that says nothing more.
    Done,
    /// Its reply is on its way, or will be.
    Replied,
}

impl State {
    /// Works on a command.
    pub(super) fn command<F: Function + ?Sized>(&mut self, mut message: Message, function: &mut F) {
        self.counters.commands += 1;
        let header = message.header;
        let agreed = self.link.as_ref().is_some_and(|link| link.agreed);
        match self.dispatch(&mut message, function) {
            Ok(Outcome::Done) => self.reply(header, &[], Descriptors::new()),
            Ok(Outcome::Replied) => {}
            Err(errno) => {
                self.reply_error(header, errno);
                if !agreed {
                    // Who has no version cannot go on.
                    self.throw_out(function);
                }
            }
        }
        if let Some(link) = &mut self.link {
            link.channel.give_back(message);
        }
    }

    fn dispatch<F: Function + ?Sized>(&mut self, message: &mut Message, function: &mut F) -> Result<Outcome, Errno> {
        let header = message.header;
        if message.too_long {
            return Err(Errno::TOOBIG);
        }
        let takes_descriptors = matches!(header.command, command::DMA_MAP | command::SET_IRQS);
        let unexpected = !takes_descriptors && !message.descriptors.is_empty();
        if message.too_many_descriptors || unexpected || header.flags & flag::TYPE != 0 {
            return Err(Errno::INVAL);
        }
        let descriptors = std::mem::take(&mut message.descriptors);
        let payload = message.payload();
        let agreed = self.link.as_ref().is_some_and(|link| link.agreed);
        if agreed == (header.command == command::VERSION) {
            return Err(Errno::INVAL);
        }
        match header.command {
            command::VERSION => self.version(header, payload, function),
            command::GET_INFO => self.get_info(header, payload),
            command::GET_REGION_INFO => self.get_region_info(header, payload),
            command::GET_REGION_IO_FDS => self.get_region_io_fds(header, payload),
            command::GET_IRQ_INFO => self.get_irq_info(header, payload),
            command::SET_IRQS => self.set_irqs(payload, descriptors),
            command::REGION_READ => self.region_read(header, payload, function),
            command::REGION_WRITE => self.region_write(header, payload, function),
            command::DMA_MAP => self.dma_map(payload, descriptors, function),
            command::DMA_UNMAP => self.dma_unmap(header, payload, function),
            command::RESET if payload.is_empty() => self.device_reset(header, function),
            command::RESET => Err(Errno::INVAL),
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    fn version<F: Function + ?Sized>(
        &mut self,
        header: Header,
        payload: &[u8],
        function: &mut F,
    ) -> Result<Outcome, Errno> {
        let (said, json) = split::<Version>(payload).ok_or(Errno::INVAL)?;
        let peer = Capabilities::parse(json).ok_or(Errno::INVAL)?;
        if said.major != protocol::MAJOR || !header.wants_reply() {
            return Err(Errno::INVAL);
        }
        let Some(link) = &mut self.link else { return Ok(Outcome::Replied) };
        link.agreed = true;
        link.peer = peer;
        self.counters.clients += 1;
        let own = Capabilities {
            descriptors: MAX_DESCRIPTORS,
            transfer: self.config.max_transfer,
            mappings: self.config.max_mappings,
        };
        let version = Version { major: protocol::MAJOR, minor: said.minor.min(protocol::MINOR) };
        self.reply(header, &[version.as_bytes(), &own.to_bytes()], Descriptors::new());
        function.client(&mut Host(self), true);
        // As the kernel's VFIO: the function is enabled, and may not send requests.
        let mut events: SmallVec<[ConfigEvent; 2]> = SmallVec::new();
        self.space.enable(|event| events.push(event));
        for event in events {
            function.config_event(&mut Host(self), event);
        }
        Ok(Outcome::Replied)
    }

    fn get_info(&mut self, header: Header, payload: &[u8]) -> Result<Outcome, Errno> {
        let (asked, _) = split::<Info>(payload).ok_or(Errno::INVAL)?;
        let argsz = size_of::<Info>() as u32;
        if asked.argsz < argsz {
            return Err(Errno::INVAL);
        }
        let info = Info { argsz, flags: device::PCI | device::RESET, regions: region::COUNT, irqs: irq::COUNT };
        self.reply(header, &[info.as_bytes()], Descriptors::new());
        Ok(Outcome::Replied)
    }

    fn get_region_info(&mut self, header: Header, payload: &[u8]) -> Result<Outcome, Errno> {
        let (asked, _) = split::<RegionInfo>(payload).ok_or(Errno::INVAL)?;
        let fixed = size_of::<RegionInfo>();
        if (asked.argsz as usize) < fixed || asked.index >= region::COUNT {
            return Err(Errno::INVAL);
        }
        let size = match asked.index {
            region::CONFIG => CONFIG_BYTES as u64,
            bar if bar < BARS => self.space.bar_size(bar as u8),
            _ => 0,
        };
        let (areas, mapped) = regions::areas(&self.config, asked.index);
        let caps = if areas.is_empty() { 0 } else { size_of::<SparseMmap>() + areas.as_slice().as_bytes().len() };
        let mut info = RegionInfo {
            argsz: (fixed + caps) as u32,
            flags: if size > 0 { READ_WRITE } else { 0 },
            index: asked.index,
            size,
            ..RegionInfo::default()
        };
        // What there is to map is said whole, with its descriptor, or by its length alone.
        let file = mapped.and_then(|mapped| mapped.pages.file()).filter(|_| asked.argsz >= info.argsz);
        let Some(file) = file else {
            if caps > 0 {
                info.flags |= region::MMAP;
            }
            self.reply(header, &[info.as_bytes()], Descriptors::new());
            return Ok(Outcome::Replied);
        };
        info.flags |= region::MMAP | region::CAPS;
        info.cap_offset = fixed as u32;
        let sparse =
            SparseMmap { id: region::SPARSE_MMAP, version: 1, next: 0, areas: areas.len() as u32, reserved: 0 };
        let file = file.try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        self.reply(
            header,
            &[info.as_bytes(), sparse.as_bytes(), areas.as_slice().as_bytes()],
            Descriptors::from_iter([file]),
        );
        Ok(Outcome::Replied)
    }

    fn get_region_io_fds(&mut self, header: Header, payload: &[u8]) -> Result<Outcome, Errno> {
        let (asked, _) = split::<RegionIoFds>(payload).ok_or(Errno::INVAL)?;
        let fixed = size_of::<RegionIoFds>();
        if (asked.argsz as usize) < fixed || asked.index >= region::COUNT || asked.flags != 0 {
            return Err(Errno::INVAL);
        }
        let most = self.link.as_ref().map_or(0, |link| link.peer.descriptors);
        let here = self.config.doorbells.iter().zip(&self.doorbells);
        let here = here.filter(|(doorbell, _)| u32::from(doorbell.bar) == asked.index).take(most);
        let mut parts: SmallVec<[IoEventFd; 4]> = SmallVec::new();
        let mut descriptors = Descriptors::new();
        for (doorbell, eventfd) in here {
            parts.push(IoEventFd {
                offset: doorbell.offset,
                size: doorbell.size,
                fd_index: parts.len() as u32,
                flags: if doorbell.value.is_some() { IoEventFd::DATAMATCH } else { 0 },
                datamatch: doorbell.value.unwrap_or(0),
                ..IoEventFd::default()
            });
            descriptors.push(eventfd.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?);
        }
        let parts_bytes = parts.as_slice().as_bytes();
        let argsz = (fixed + parts_bytes.len()) as u32;
        let info = RegionIoFds { argsz, flags: 0, index: asked.index, count: parts.len() as u32 };
        if asked.argsz < argsz {
            self.reply(header, &[info.as_bytes()], Descriptors::new());
        } else {
            self.reply(header, &[info.as_bytes(), parts_bytes], descriptors);
        }
        Ok(Outcome::Replied)
    }

    fn get_irq_info(&mut self, header: Header, payload: &[u8]) -> Result<Outcome, Errno> {
        let (asked, _) = split::<IrqInfo>(payload).ok_or(Errno::INVAL)?;
        let argsz = size_of::<IrqInfo>() as u32;
        if asked.argsz < argsz || asked.index >= irq::COUNT {
            return Err(Errno::INVAL);
        }
        let (flags, count) = match asked.index {
            irq::MSIX => (irq::EVENTFD | irq::MASKABLE, self.space.description().msix.vectors.into()),
            _ => (irq::EVENTFD, 0),
        };
        let info = IrqInfo { argsz, flags, index: asked.index, count };
        self.reply(header, &[info.as_bytes()], Descriptors::new());
        Ok(Outcome::Replied)
    }

    fn set_irqs(&mut self, payload: &[u8], descriptors: Descriptors) -> Result<Outcome, Errno> {
        let (set, bools) = split::<SetIrqs>(payload).ok_or(Errno::INVAL)?;
        let (data, action) = (set.flags & irq::DATA, set.flags & irq::ACTION);
        let vectors = if set.index == irq::MSIX { self.space.description().msix.vectors.into() } else { 0 };
        let end = set.start.checked_add(set.count).filter(|end| *end <= vectors).ok_or(Errno::INVAL)?;
        let right = match data {
            irq::DATA_NONE => bools.is_empty() && descriptors.is_empty(),
            irq::DATA_BOOL => bools.len() == set.count as usize && descriptors.is_empty(),
            irq::DATA_EVENTFD => {
                let none = descriptors.is_empty();
                bools.is_empty() && (none || descriptors.len() == set.count as usize) && action == irq::ACTION_TRIGGER
            }
            _ => false,
        };
        let all = data == irq::DATA_NONE && action == irq::ACTION_TRIGGER && set.start == 0;
        let known = set.flags & !(irq::DATA | irq::ACTION) == 0 && set.argsz as usize >= size_of::<SetIrqs>();
        if !right || !known || (set.count == 0 && !all) {
            return Err(Errno::INVAL);
        }
        let range = set.start as usize..end as usize;
        let meant = |vector: &usize| data != irq::DATA_BOOL || bools[vector - range.start] != 0;
        match (action, data) {
            (irq::ACTION_TRIGGER, irq::DATA_EVENTFD) => self.assign(range, descriptors)?,
            (irq::ACTION_TRIGGER, _) if set.count == 0 => {
                self.interrupts.release();
                self.space.enable_msix(false);
            }
            (irq::ACTION_TRIGGER, _) => {
                let settings = self.space.settings();
                for vector in range.clone().filter(meant) {
                    self.interrupts.raise(vector as u16, &settings).map_err(|_| Errno::INVAL)?;
                }
            }
            (irq::ACTION_MASK | irq::ACTION_UNMASK, _) => {
                for vector in range.clone().filter(meant) {
                    self.interrupts.mask(vector, action == irq::ACTION_MASK);
                }
                self.interrupts.settle(&self.space.settings());
            }
            _ => return Err(Errno::INVAL),
        }
        Ok(Outcome::Done)
    }

    /// Gives vectors eventfds, or takes them away. As with the kernel's VFIO that turns MSI-X on.
    fn assign(&mut self, vectors: std::ops::Range<usize>, descriptors: Descriptors) -> Result<(), Errno> {
        if !descriptors.iter().all(is_eventfd) {
            return Err(Errno::INVAL);
        }
        let mut eventfds = descriptors.into_iter();
        for vector in vectors {
            self.interrupts.assign(vector, eventfds.next());
        }
        if self.interrupts.any_assigned() {
            self.space.enable_msix(true);
        }
        self.interrupts.settle(&self.space.settings());
        Ok(())
    }

    /// The access of a region command, and the bytes behind it.
    fn region_access<'a>(&self, payload: &'a [u8]) -> Result<(RegionAccess, &'a [u8]), Errno> {
        let (access, bytes) = split::<RegionAccess>(payload).ok_or(Errno::INVAL)?;
        let count = access.count as usize;
        if count == 0 || count > self.config.max_transfer { Err(Errno::INVAL) } else { Ok((access, bytes)) }
    }

    /// Whether the BARs answer.
    fn bars_answer(&self) -> Result<(), Errno> {
        let settings = self.space.settings();
        if settings.memory_space && settings.power == Power::On { Ok(()) } else { Err(Errno::IO) }
    }

    fn region_read<F: Function + ?Sized>(
        &mut self,
        header: Header,
        payload: &[u8],
        function: &mut F,
    ) -> Result<Outcome, Errno> {
        let (access, rest) = self.region_access(payload)?;
        if !rest.is_empty() || !header.wants_reply() {
            return Err(Errno::INVAL);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.resize(access.count as usize, 0);
        let read = self.read_into(header, access, &mut scratch, function);
        self.scratch = scratch;
        read
    }

    fn read_into<F: Function + ?Sized>(
        &mut self,
        header: Header,
        access: RegionAccess,
        into: &mut [u8],
        function: &mut F,
    ) -> Result<Outcome, Errno> {
        if access.region == region::CONFIG {
            if let Some(Window { bar, offset, bytes }) = self.space.window(access.offset, into.len()) {
                let (value, rest) = into.split_at_mut(bytes);
                rest.fill(0);
                if let Some(outcome) = self.bar_read(header, What::WindowRead(access), bar, offset, value, function)? {
                    return Ok(outcome);
                }
            } else {
                self.space.read(access.offset, into).map_err(|_| Errno::INVAL)?;
            }
        } else {
            let bar = bar_number(access.region)?;
            if let Some(outcome) = self.bar_read(header, What::Read(access), bar, access.offset, into, function)? {
                return Ok(outcome);
            }
        }
        self.reply(header, &[access.as_bytes(), into], Descriptors::new());
        Ok(Outcome::Replied)
    }

    /// Reads bytes of a BAR. `None`: they are there, and not answered yet.
    fn bar_read<F: Function + ?Sized>(
        &mut self,
        header: Header,
        what: What,
        bar: u8,
        offset: u64,
        into: &mut [u8],
        function: &mut F,
    ) -> Result<Option<Outcome>, Errno> {
        let place = regions::place(&self.space, &self.config, bar, offset, into.len()).map_err(|_| Errno::INVAL)?;
        self.bars_answer()?;
        match place {
            Place::Table(offset) => regions::table_bytes(offset, into),
            Place::Pending(offset) => self.interrupts.pending_bits(offset, into),
            Place::Mapped(mapped) => mapped.pages.read(offset, into).map_err(|_| Errno::INVAL)?,
            Place::Function => {
                let token = self.begin(header, what);
                let answer = function.bar_read(&mut Host(self), BarAccess { bar, offset, token }, into);
                self.answered(token, answer, into);
                return Ok(Some(Outcome::Replied));
            }
        }
        Ok(None)
    }

    fn region_write<F: Function + ?Sized>(
        &mut self,
        header: Header,
        payload: &[u8],
        function: &mut F,
    ) -> Result<Outcome, Errno> {
        let (access, bytes) = self.region_access(payload)?;
        if bytes.len() != access.count as usize {
            return Err(Errno::INVAL);
        }
        if access.region == region::CONFIG {
            if access.offset.checked_add(bytes.len() as u64).is_none_or(|end| end > CONFIG_BYTES as u64) {
                return Err(Errno::INVAL);
            }
            if let Some(Window { bar, offset, bytes: count }) = self.space.window(access.offset, bytes.len()) {
                return self.bar_write(header, access, bar, offset, &bytes[..count], function);
            }
            if self.write_config(access.offset, bytes, function) {
                let token = self.begin(header, What::ConfigReset(access));
                let answer = function.reset(&mut Host(self), ResetCause::FunctionLevel, token);
                self.answered(token, answer, &[]);
                return Ok(Outcome::Replied);
            }
        } else {
            let bar = bar_number(access.region)?;
            return self.bar_write(header, access, bar, access.offset, bytes, function);
        }
        self.reply(header, &[access.as_bytes()], Descriptors::new());
        Ok(Outcome::Replied)
    }

    /// Writes bytes of a BAR, for this access.
    fn bar_write<F: Function + ?Sized>(
        &mut self,
        header: Header,
        access: RegionAccess,
        bar: u8,
        offset: u64,
        bytes: &[u8],
        function: &mut F,
    ) -> Result<Outcome, Errno> {
        let place = regions::place(&self.space, &self.config, bar, offset, bytes.len()).map_err(|_| Errno::INVAL)?;
        self.bars_answer()?;
        match place {
            // The client keeps the table, and nobody writes pending bits.
            Place::Table(_) | Place::Pending(_) => {}
            Place::Mapped(mapped) => mapped.pages.write(offset, bytes).map_err(|_| Errno::INVAL)?,
            Place::Function => {
                let token = self.begin(header, What::Write(access));
                let answer = function.bar_write(&mut Host(self), BarAccess { bar, offset, token }, bytes);
                self.answered(token, answer, &[]);
                return Ok(Outcome::Replied);
            }
        }
        self.reply(header, &[access.as_bytes()], Descriptors::new());
        Ok(Outcome::Replied)
    }

    /// Writes the configuration space, and tells the function what that changed. Whether it asks for a function level reset.
    pub(super) fn write_config<F: Function + ?Sized>(&mut self, offset: u64, bytes: &[u8], function: &mut F) -> bool {
        let mut events: SmallVec<[ConfigEvent; 16]> = SmallVec::new();
        let written = self.space.write(offset, bytes, |event| events.push(event));
        debug_assert!(written.is_ok(), "the caller has checked the range");
        self.interrupts.settle(&self.space.settings());
        let mut reset = false;
        for event in events {
            match event {
                ConfigEvent::FunctionReset => reset = true,
                event => function.config_event(&mut Host(self), event),
            }
        }
        reset
    }

    fn device_reset<F: Function + ?Sized>(&mut self, header: Header, function: &mut F) -> Result<Outcome, Errno> {
        let token = self.begin(header, What::Reset);
        let answer = function.reset(&mut Host(self), ResetCause::Client, token);
        self.answered(token, answer, &[]);
        Ok(Outcome::Replied)
    }

    fn dma_map<F: Function + ?Sized>(
        &mut self,
        payload: &[u8],
        mut descriptors: Descriptors,
        function: &mut F,
    ) -> Result<Outcome, Errno> {
        let (map, rest) = split::<DmaMap>(payload).ok_or(Errno::INVAL)?;
        let right = rest.is_empty() && map.argsz as usize >= size_of::<DmaMap>() && descriptors.len() <= 1;
        if !right || map.flags & !(dma::READ | dma::WRITE) != 0 {
            return Err(Errno::INVAL);
        }
        let access = Access { read: map.flags & dma::READ != 0, write: map.flags & dma::WRITE != 0 };
        let file = descriptors.pop().map(|file| (file, map.offset));
        let range = self.dma.map(map.address, map.size, access, file).map_err(|error| error.errno())?;
        if let Err(errno) = function.mapping(&mut Host(self), range.clone(), access) {
            self.dma.unmap(&range);
            return Err(errno);
        }
        Ok(Outcome::Done)
    }

    fn dma_unmap<F: Function + ?Sized>(
        &mut self,
        header: Header,
        payload: &[u8],
        function: &mut F,
    ) -> Result<Outcome, Errno> {
        let (unmap, rest) = split::<DmaUnmap>(payload).ok_or(Errno::INVAL)?;
        if !rest.is_empty() || (unmap.argsz as usize) < size_of::<DmaUnmap>() {
            return Err(Errno::INVAL);
        }
        let range = match unmap.flags {
            0 => self.dma.whole(unmap.address, unmap.size).ok_or(Errno::INVAL)?,
            dma::UNMAP_ALL if unmap.address == 0 && unmap.size == 0 => 0..=u64::MAX,
            _ => return Err(Errno::INVAL),
        };
        // As with the kernel's VFIO: QEMU with an IOMMU gives back all addresses, mapped or not.
        if !self.dma.has_any(&range) {
            self.reply(header, &[unmap.as_bytes()], Descriptors::new());
            return Ok(Outcome::Replied);
        }
        let token = self.begin(header, What::Unmap { command: unmap, range: range.clone(), left: false });
        let answer = function.unmapping(&mut Host(self), range, token);
        self.answered(token, Ok(answer), &[]);
        Ok(Outcome::Replied)
    }

    /// A command that the function answers, now or later.
    fn begin(&mut self, header: Header, what: What) -> Token {
        let token = self.token();
        let deadline = self.now + self.config.device_timeout;
        if let Some(link) = &mut self.link {
            link.pending = Some(Pending { token, header, what, deadline });
        }
        Token(token)
    }

    /// What the function said at once.
    fn answered(&mut self, token: Token, answer: Result<Answer, Errno>, read: &[u8]) {
        match answer {
            Ok(Answer::Now) => self.finish(token, Ok(read)),
            Ok(Answer::Later) => false,
            Err(errno) => self.finish(token, Err(errno)),
        };
    }

    /// The function has taken too long. What it may not access any more it finds unmapped all the same.
    pub(super) fn give_up<F: Function + ?Sized>(&mut self, token: Token, function: &mut F) {
        let unmapped = self.link.as_mut().and_then(|link| {
            let pending = link.pending.as_ref().filter(|pending| pending.token == token.0)?;
            let What::Unmap { range, .. } = &pending.what else { return None };
            Some(link.in_flight.extract_if(.., |request| request.touches(range)).collect::<SmallVec<[_; 4]>>())
        });
        let Some(unanswered) = unmapped else {
            self.finish(token, Err(Errno::TIMEDOUT));
            return;
        };
        self.finish(token, Ok(&[]));
        for request in unanswered {
            function.dma_done(&mut Host(self), DmaToken(request.token), Err(Fault::Timeout));
        }
    }

    /// Ends the command that the function has answered, if it is still waited for.
    pub(super) fn finish(&mut self, token: Token, result: Result<&[u8], Errno>) -> bool {
        let Some(link) = &mut self.link else { return false };
        let Some(mut pending) = link.pending.take_if(|pending| pending.token == token.0) else { return false };
        let bytes = match result {
            Ok(bytes) => bytes,
            Err(errno) => {
                self.reply_error(pending.header, errno);
                return true;
            }
        };
        let header = pending.header;
        match &mut pending.what {
            What::Read(access) if bytes.len() == access.count as usize => {
                self.reply(header, &[access.as_bytes(), bytes], Descriptors::new());
            }
            What::WindowRead(access) if (1..=access.count as usize).contains(&bytes.len()) => {
                let rest = [0; size_of::<u32>()];
                let rest = &rest[..access.count as usize - bytes.len()];
                self.reply(header, &[access.as_bytes(), bytes, rest], Descriptors::new());
            }
            What::Read(_) | What::WindowRead(_) => self.reply_error(header, Errno::IO),
            What::Write(access) => self.reply(header, &[access.as_bytes()], Descriptors::new()),
            What::Reset => {
                self.after_reset();
                self.reply(header, &[], Descriptors::new());
            }
            What::ConfigReset(access) => {
                self.after_reset();
                self.reply(header, &[access.as_bytes()], Descriptors::new());
            }
            What::Unmap { command, range, left } => {
                if link.in_flight.iter().any(|request| request.touches(range)) {
                    *left = true;
                    link.pending = Some(pending);
                    return true;
                }
                self.dma.unmap(range);
                self.reply(header, &[command.as_bytes()], Descriptors::new());
            }
        }
        true
    }

    /// The function is as after power-on: so is its configuration space, but that it is enabled, as for a new client. The interrupts
    /// that the client has set up stay, as with the kernel's VFIO.
    fn after_reset(&mut self) {
        self.space.reset();
        self.space.enable(|_| {});
        self.interrupts.reset();
        if self.interrupts.any_assigned() {
            self.space.enable_msix(true);
        }
        if let Some(link) = &mut self.link {
            link.in_flight.clear();
        }
    }

    fn reply(&mut self, command: Header, parts: &[&[u8]], descriptors: Descriptors) {
        if let Some(link) = self.link.as_mut().filter(|_| command.wants_reply()) {
            link.channel.queue(reply_header(command), parts, descriptors);
        }
    }

    pub(super) fn reply_error(&mut self, command: Header, errno: Errno) {
        self.counters.failed += 1;
        if let Some(link) = self.link.as_mut().filter(|_| command.wants_reply()) {
            let flags = flag::REPLY | flag::ERROR;
            let header = Header { flags, error: errno.raw_os_error() as u32, ..command };
            link.channel.queue(header, &[], Descriptors::new());
        }
    }
}

fn bar_number(region: u32) -> Result<u8, Errno> {
    u8::try_from(region).ok().filter(|bar| u32::from(*bar) < BARS).ok_or(Errno::INVAL)
}
