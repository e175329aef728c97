// SPDX-License-Identifier: Apache-2.0
//! Memory in the host that the device reaches, memory in the device, and parts of both.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nacelle_pci::DmaBuffer;

use crate::engine::Engine;
use crate::error::Error;
use crate::heap::Heap;
use crate::rings::HOST;

/// Checks that a part lies within a buffer.
fn within(range: Range<u64>, len: u64) -> Result<Range<u64>, Error> {
    let fits = range.start <= range.end && range.end <= len;
    if fits { Ok(range) } else { Err(Error::OutOfRange { range, len }) }
}

/// Memory of this process that the device reaches. Clones are the same memory, which is given back with the last of them; a copy that is
/// under way has one.
///
/// The device may write at any time while a copy to it is under way, so the bytes are copied in and out.
#[derive(Debug, Clone)]
pub struct HostBuffer(Arc<Host>);

#[derive(Debug)]
struct Host {
    engine: Weak<Engine>,
    /// There until the end.
    memory: Option<DmaBuffer>,
    /// Bytes that were asked for.
    len: usize,
}

impl HostBuffer {
    pub(crate) fn new(engine: &Arc<Engine>, memory: DmaBuffer, len: usize) -> Self {
        Self(Arc::new(Host { engine: Arc::downgrade(engine), memory: Some(memory), len }))
    }

    fn memory(&self) -> &DmaBuffer {
        self.0.memory.as_ref().expect("it is taken when the last clone has gone")
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Never: a buffer has a byte at least.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The first byte in this process, for programs that access it by a pointer. It stays as long as a clone of the buffer does.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.memory().address()
    }

    /// The first byte as the device addresses it.
    #[must_use]
    pub fn device_address(&self) -> u64 {
        HOST + self.memory().iova()
    }

    /// Copies the bytes from `offset` on into `into`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if they do not all exist.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let range = within(offset..offset.saturating_add(into.len() as u64), self.0.len as u64)?;
        Ok(self.memory().read(range.start, into)?)
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there is no room for all of them.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let range = within(offset..offset.saturating_add(bytes.len() as u64), self.0.len as u64)?;
        Ok(self.memory().write(range.start, bytes)?)
    }

    /// These bytes of it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if they do not all exist.
    pub fn part(&self, range: Range<u64>) -> Result<Part, Error> {
        Ok(Part { range: within(range, self.0.len as u64)?, buffer: Buffer::Host(self.clone()) })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A device that has gone or is closed has nothing of it any more; if it refuses, the memory is not used again.
        if let (Some(engine), Some(memory)) = (self.engine.upgrade(), self.memory.take()) {
            let _given_back = engine.device().free_dma(memory);
        }
    }
}

/// Memory of the device that is the host's. Clones are the same memory, which is free with the last of them; a copy that is under way has
/// one. It holds what was there before.
#[derive(Debug, Clone)]
pub struct DeviceBuffer(Arc<Near>);

#[derive(Debug)]
struct Near {
    engine: Weak<Engine>,
    heap: Arc<Mutex<Heap>>,
    first: u64,
    len: u64,
}

impl DeviceBuffer {
    pub(crate) fn new(engine: &Arc<Engine>, heap: &Arc<Mutex<Heap>>, first: u64, len: u64) -> Self {
        Self(Arc::new(Near { engine: Arc::downgrade(engine), heap: Arc::clone(heap), first, len }))
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Never: a buffer has a byte at least.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The device address of the first byte.
    #[must_use]
    pub fn device_address(&self) -> u64 {
        self.0.first
    }

    /// These bytes of it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if they do not all exist.
    pub fn part(&self, range: Range<u64>) -> Result<Part, Error> {
        Ok(Part { range: within(range, self.0.len)?, buffer: Buffer::Device(self.clone()) })
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner).give(self.first);
    }
}

/// Bytes of a buffer, where a copy begins or ends. It keeps the buffer.
#[derive(Debug, Clone)]
pub struct Part {
    buffer: Buffer,
    range: Range<u64>,
}

#[derive(Debug, Clone)]
enum Buffer {
    Host(HostBuffer),
    Device(DeviceBuffer),
    /// Nobody's: any address of the device.
    Address,
}

impl Part {
    /// Any bytes by their device addresses, which nobody checks: other memories of the device, regions of connections, host memory that
    /// peers have. What is written there can be somebody else's.
    #[must_use]
    pub fn of_addresses(range: Range<u64>) -> Self {
        Self { buffer: Buffer::Address, range }
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the device finds it.
    #[must_use]
    pub fn device_address(&self) -> u64 {
        match &self.buffer {
            Buffer::Host(buffer) => buffer.device_address() + self.range.start,
            Buffer::Device(buffer) => buffer.device_address() + self.range.start,
            Buffer::Address => self.range.start,
        }
    }

    /// `len` bytes of it, `begin` from its first one; the caller knows that they exist.
    pub(crate) fn slice(&self, begin: u64, len: u64) -> Self {
        let start = self.range.start + begin;
        debug_assert!(start + len <= self.range.end, "{self:?} has no {len} bytes at {begin}");
        Self { buffer: self.buffer.clone(), range: start..start + len }
    }

    /// Whether its buffer is one of this engine.
    pub(crate) fn is_of(&self, engine: &Arc<Engine>) -> bool {
        let of = match &self.buffer {
            Buffer::Host(buffer) => &buffer.0.engine,
            Buffer::Device(buffer) => &buffer.0.engine,
            Buffer::Address => return true,
        };
        Weak::as_ptr(of) == Arc::as_ptr(engine)
    }
}

impl From<&HostBuffer> for Part {
    fn from(buffer: &HostBuffer) -> Self {
        Self { range: 0..buffer.len() as u64, buffer: Buffer::Host(buffer.clone()) }
    }
}

impl From<&DeviceBuffer> for Part {
    fn from(buffer: &DeviceBuffer) -> Self {
        Self { range: 0..buffer.len(), buffer: Buffer::Device(buffer.clone()) }
    }
}
