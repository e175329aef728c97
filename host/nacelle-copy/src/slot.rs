// SPDX-License-Identifier: Apache-2.0
//! A device in a slot as memory: buffers in it and in the host, and copies between them.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nacelle_pci::{Access, KernelDevice, PciDevice, UserConfig, UserDevice};

use crate::buffers::{DeviceBuffer, HostBuffer, Part};
use crate::engine::{Engine, Options, Ticket};
use crate::error::{CopyError, Error};
use crate::heap::Heap;
use crate::rings::Descriptor;

/// A longer copy has several descriptors: the longest that one can have is no multiple of a beat.
const LONGEST: u64 = 1 << 31;
/// Bytes of host memory from which memory is filled.
const PATTERN: u64 = 64 << 10;

/// A device in a slot. Clones are the same device; any thread may use them.
///
/// It is closed when the last clone and the last [`Copy`](struct@Copy) have gone. What is under way then is given up.
#[derive(Debug, Clone)]
pub struct Slot {
    engine: Arc<Engine>,
    heap: Arc<Mutex<Heap>>,
}

impl Slot {
    /// Opens a device, which the program then has for itself: a simulated one by its socket (`nacelle device --slot SOCKET`), or a board
    /// that the kernel's VFIO has by its PCI address, such as `0000:01:00.0`.
    ///
    /// # Errors
    /// As [`over`](Self::over); if there is no device, another program has it, or a board is not bound to `vfio-pci` or not this user's.
    pub fn open(place: &Path, options: &Options) -> Result<Self, Error> {
        if let Some(address) = board(place) {
            return Self::over(Box::new(KernelDevice::open(address)?), options);
        }
        let config = UserConfig { timeout: options.timeout, posted_writes: true, ..UserConfig::default() };
        Self::over(Box::new(UserDevice::connect(place, config)?), options)
    }

    /// Opens a device that is reached so. The function is reset.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn over(device: Box<dyn PciDevice + Send>, options: &Options) -> Result<Self, Error> {
        let engine = Engine::new(device, *options)?;
        let heap = Heap::new(engine.memory());
        Ok(Self { engine: Arc::new(engine), heap: Arc::new(Mutex::new(heap)) })
    }

    /// Its copy engine, for copies by device addresses.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The memory of the device that is the host's, in device addresses. No call, connection or kernel is given any of it.
    #[must_use]
    pub fn memory(&self) -> Range<u64> {
        self.engine.memory()
    }

    fn heap(&self) -> MutexGuard<'_, Heap> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `len` bytes of zeros in host memory that the device reaches.
    ///
    /// # Errors
    /// [`Error::Empty`]; [`Error::Pci`] if there is no memory, or the device refuses it.
    pub fn alloc_host(&self, len: usize) -> Result<HostBuffer, Error> {
        if len == 0 {
            return Err(Error::Empty);
        }
        let memory = self.engine.device().alloc_dma(len, Access::BOTH)?;
        Ok(HostBuffer::new(&self.engine, memory, len))
    }

    /// Takes `len` bytes of device memory, from a multiple of 64 on. They hold what was there before.
    ///
    /// # Errors
    /// [`Error::Empty`]; [`Error::NoDeviceMemory`] if so many are not free.
    pub fn alloc_device(&self, len: u64) -> Result<DeviceBuffer, Error> {
        if len == 0 {
            return Err(Error::Empty);
        }
        let mut heap = self.heap();
        let first = heap.take(len).ok_or_else(|| Error::NoDeviceMemory { asked: len, largest: heap.largest() })?;
        Ok(DeviceBuffer::new(&self.engine, &self.heap, first, len))
    }

    /// Takes `len` bytes of device memory at a place of the caller's choice, `offset` from the begin of [`memory`](Self::memory).
    ///
    /// # Errors
    /// [`Error::Empty`]; [`Error::NoPlace`] if they do not all exist, or some are in use.
    pub fn alloc_device_at(&self, offset: u64, len: u64) -> Result<DeviceBuffer, Error> {
        if len == 0 {
            return Err(Error::Empty);
        }
        let mut heap = self.heap();
        let Range { start, end } = heap.range();
        let first = start.checked_add(offset).filter(|first| heap.take_at(*first, len));
        let first = first.ok_or(Error::NoPlace { offset, len, bytes: end - start })?;
        Ok(DeviceBuffer::new(&self.engine, &self.heap, first, len))
    }

    /// Copies, and waits for the end.
    ///
    /// # Errors
    /// As [`copy_list`](Self::copy_list), but that it waits for room; and [`Error::Copy`] if it fails.
    pub fn copy(&self, from: impl Into<Part>, to: impl Into<Part>) -> Result<(), Error> {
        self.copy_all(&[(from.into(), to.into())])
    }

    /// Copies a list, when there is room for it, and waits for the end.
    ///
    /// # Errors
    /// As [`copy_list`](Self::copy_list), but that it waits for room; and [`Error::Copy`] if one fails.
    pub fn copy_all(&self, list: &[(Part, Part)]) -> Result<(), Error> {
        let descriptors = self.descriptors(list)?;
        loop {
            match self.begin(&descriptors, list.to_vec()) {
                Err(Error::Full { needed }) => self.engine.wait_for_room(needed),
                begun => return Ok(begun?.wait()?),
            }
        }
    }

    /// Begins to copy.
    ///
    /// # Errors
    /// As [`copy_list`](Self::copy_list).
    pub fn copy_async(&self, from: impl Into<Part>, to: impl Into<Part>) -> Result<Copy, Error> {
        self.copy_list(&[(from.into(), to.into())])
    }

    /// Begins several copies that end together: a scatter list. The first that fails is the error of all; the others are made nevertheless.
    ///
    /// Data is not copied in order: no copy may read what another one that is under way writes, in this list or another.
    ///
    /// # Errors
    /// [`Error::NoCopies`], [`Error::Lengths`], [`Error::Overlap`], [`Error::OtherSlot`], [`Error::TooLong`] if the list makes no sense;
    /// [`Error::Full`] if there is no room now; [`CopyError::Gone`]. Then nothing was begun.
    pub fn copy_list(&self, list: &[(Part, Part)]) -> Result<Copy, Error> {
        self.begin(&self.descriptors(list)?, list.to_vec())
    }

    /// Begins to copy parts behind each other into one.
    ///
    /// # Errors
    /// As [`copy_list`](Self::copy_list).
    pub fn gather(&self, from: &[Part], to: &Part) -> Result<Copy, Error> {
        self.one_and_many(to, from, |whole, part| (part, whole))
    }

    /// Begins to copy one part into several behind each other.
    ///
    /// # Errors
    /// As [`copy_list`](Self::copy_list).
    pub fn scatter(&self, from: &Part, to: &[Part]) -> Result<Copy, Error> {
        self.one_and_many(from, to, |whole, part| (whole, part))
    }

    /// Pairs each part with as many bytes of the whole.
    fn one_and_many(
        &self,
        whole: &Part,
        parts: &[Part],
        pair: impl Fn(Part, Part) -> (Part, Part),
    ) -> Result<Copy, Error> {
        let total: u64 = parts.iter().map(Part::len).fold(0, u64::saturating_add);
        if total != whole.len() {
            return Err(Error::Lengths { index: 0, from: whole.len(), to: total });
        }
        let mut begin = 0;
        let list = parts.iter().map(|part| {
            let piece = whole.slice(begin, part.len());
            begin += part.len();
            pair(piece, part.clone())
        });
        self.copy_list(&list.collect::<Vec<_>>())
    }

    /// Writes the same byte everywhere, and waits for the end. It is copied from host memory.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn fill(&self, to: impl Into<Part>, byte: u8) -> Result<(), Error> {
        let to = to.into();
        if to.is_empty() {
            return Ok(());
        }
        let pattern = self.alloc_host(to.len().min(PATTERN) as usize)?;
        pattern.write(0, &vec![byte; pattern.len()])?;
        let pieces: Vec<Part> =
            (0..to.len()).step_by(PATTERN as usize).map(|at| to.slice(at, PATTERN.min(to.len() - at))).collect();
        for some in pieces.chunks(self.engine.places()) {
            let list = some.iter().map(|piece| Ok((pattern.part(0..piece.len())?, piece.clone())));
            let list = list.collect::<Result<Vec<_>, Error>>()?;
            self.copy_all(&list)?;
        }
        Ok(())
    }

    /// Resets the function: all copies under way end with [`CopyError::Stopped`]. Buffers stay, and other copies can follow.
    ///
    /// # Errors
    /// If the device refuses or has gone.
    pub fn reset(&self) -> Result<(), Error> {
        self.engine.reset()
    }

    /// What the engine is told of a list.
    fn descriptors(&self, list: &[(Part, Part)]) -> Result<Vec<Descriptor>, Error> {
        let mut descriptors = Vec::with_capacity(list.len());
        for (index, (from, to)) in list.iter().enumerate() {
            if from.len() != to.len() {
                return Err(Error::Lengths { index, from: from.len(), to: to.len() });
            }
            if !from.is_of(&self.engine) || !to.is_of(&self.engine) {
                return Err(Error::OtherSlot { index });
            }
            let (source, destination, len) = (from.device_address(), to.device_address(), from.len());
            if source.abs_diff(destination) < len {
                return Err(Error::Overlap { index });
            }
            let pieces = len.div_ceil(LONGEST).max(1);
            let places = self.engine.places();
            if pieces > places as u64 {
                return Err(Error::TooLong { needed: pieces as usize, places });
            }
            descriptors.extend((0..pieces).map(|piece| Descriptor {
                source: source.wrapping_add(piece * LONGEST),
                destination: destination.wrapping_add(piece * LONGEST),
                length: (len - piece * LONGEST).min(LONGEST) as u32,
            }));
        }
        Ok(descriptors)
    }

    fn begin(&self, descriptors: &[Descriptor], buffers: Vec<(Part, Part)>) -> Result<Copy, Error> {
        let ticket = self.engine.put(descriptors, Box::new(buffers))?;
        Ok(Copy { engine: Arc::clone(&self.engine), ticket })
    }
}

/// The PCI address of a board, if it is one: domain, bus, device and function in hexadecimal digits.
fn board(place: &Path) -> Option<&str> {
    let text = place.to_str()?;
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let lengths = [(domain, 4), (bus, 2), (device, 2), (function, 1)];
    let is = lengths.iter().all(|(part, len)| part.len() == *len && part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is.then_some(text)
}

/// A copy, or a list of them, that was begun. If it is dropped the copy goes on.
#[derive(Debug, Clone)]
pub struct Copy {
    engine: Arc<Engine>,
    ticket: Ticket,
}

impl Copy {
    /// How it has ended; `None`: it has not. Does not wait.
    ///
    /// What is in the buffers it copies to is not defined before.
    #[must_use]
    pub fn poll(&self) -> Option<Result<(), CopyError>> {
        self.engine.poll(&self.ticket)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Why it has failed.
    pub fn wait(&self) -> Result<(), CopyError> {
        self.engine.wait(&self.ticket, None).expect("without a deadline it ends")
    }

    /// Waits for its end until a moment; `None`: it goes on.
    #[must_use]
    pub fn wait_until(&self, until: Instant) -> Option<Result<(), CopyError>> {
        self.engine.wait(&self.ticket, Some(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_is_told_from_a_socket() {
        assert_eq!(board(Path::new("0000:0a:00.0")), Some("0000:0a:00.0"));
        for socket in
            ["card.sock", "/run/0000:01:00.0", "0000:01:00", "0000:01:00.x", "000:01:00.0", "0000:01:00.0.0", ""]
        {
            assert_eq!(board(Path::new(socket)), None, "{socket}");
        }
    }
}
