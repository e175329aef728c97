// SPDX-License-Identifier: Apache-2.0
//! A pcapng tap: writes every frame of a link to a file that Wireshark opens.
//!
//! pcapng, draft-ietf-opsawg-pcapng: one section, Ethernet interfaces, nanosecond timestamps, each packet flagged
//! inbound or outbound. Each block is written at once and whole, so a capture is complete at any moment, whatever becomes
//! of the process that writes it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use crate::{Link, LinkError, LinkStats, MAX_FRAME, own_user};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// Which way a frame went, seen from the party whose link is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// A frame, of which the capture may have a part only.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// The number of its interface.
    pub interface: u32,
    /// When it passed, in nanoseconds since 1970.
    pub nanoseconds: u64,
    /// Which way.
    pub direction: Direction,
    /// Bytes on the wire.
    pub length: u32,
    /// The first of them.
    pub data: &'a [u8],
    /// What there is to say about it; empty for nothing.
    pub comment: &'a str,
}

/// Writes pcapng blocks.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    block: Vec<u8>,
}

impl PcapngWriter<File> {
    /// Makes the file, for this user only since frames carry keys, and writes the section header. A file that is there already
    /// is emptied if it is an earlier capture of this user, or has nothing in it; any other is left as it is.
    ///
    /// # Errors
    /// [`LinkError::Io`] if there is such another file, or it cannot be written.
    pub fn create(path: &Path, interfaces: &[&str], comment: &str) -> Result<Self, LinkError> {
        let what = || format!("write the capture {}", path.display());
        let file = open(path).map_err(LinkError::io(what()))?;
        Self::new(file, interfaces, comment).map_err(LinkError::io(what()))
    }
}

fn open(path: &Path) -> io::Result<File> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK; // a FIFO would be waited for
    let flags = i32::try_from(flags.bits()).expect("open flags fit an int");
    let mut file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    let mut magic = [0; 4];
    let capture = meta.len() == 0 || file.read_exact(&mut magic).is_ok() && magic == SECTION_HEADER.to_le_bytes();
    if !meta.is_file() || meta.uid() != own_user() || !capture {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something that is no capture of this user is there"));
    }
    file.set_len(0)?;
    file.rewind()?;
    Ok(file)
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section header, with `comment`, and the descriptions of the interfaces, which have these names.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn new(out: W, interfaces: &[&str], comment: &str) -> io::Result<Self> {
        let mut writer = Self { out, block: Vec::with_capacity(MAX_FRAME + 64) };
        writer.begin(SECTION_HEADER);
        writer.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        writer.put(&1u16.to_le_bytes()); // major version
        writer.put(&0u16.to_le_bytes()); // minor version
        writer.put(&u64::MAX.to_le_bytes()); // section length: not given
        writer.option(OPT_COMMENT, comment.as_bytes());
        writer.option(SHB_USERAPPL, concat!("nacelle ", env!("CARGO_PKG_VERSION")).as_bytes());
        writer.option(OPT_END, &[]);
        writer.finish()?;

        for interface in interfaces {
            writer.begin(INTERFACE_DESCRIPTION);
            writer.put(&LINKTYPE_ETHERNET.to_le_bytes());
            writer.put(&0u16.to_le_bytes()); // reserved
            writer.put(&0u32.to_le_bytes()); // no limit on the captured length
            writer.option(IF_NAME, interface.as_bytes());
            writer.option(IF_TSRESOL, &[9]); // 10^-9 s
            writer.option(OPT_END, &[]);
            writer.finish()?;
        }
        Ok(writer)
    }

    /// Writes one frame that passed at `at`.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn frame(&mut self, at: SystemTime, direction: Direction, frame: &[u8]) -> io::Result<()> {
        let nanoseconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let length = u32::try_from(frame.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.packet(&Packet { interface: 0, nanoseconds, direction, length, data: frame, comment: "" })
    }

    /// Writes a part of a frame, or all of it.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let captured = u32::try_from(packet.data.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let flags: u32 = match packet.direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        self.begin(ENHANCED_PACKET);
        self.put(&packet.interface.to_le_bytes());
        self.time(packet.nanoseconds);
        self.put(&captured.to_le_bytes());
        self.put(&packet.length.to_le_bytes());
        self.put(packet.data);
        self.pad();
        if !packet.comment.is_empty() {
            self.option(OPT_COMMENT, packet.comment.as_bytes());
        }
        self.option(EPB_FLAGS, &flags.to_le_bytes());
        self.option(OPT_END, &[]);
        self.finish()
    }

    /// Writes how many frames an interface has seen until a time, in nanoseconds since 1970, and how many of them were not captured.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn statistics(&mut self, interface: u32, nanoseconds: u64, seen: u64, missed: u64) -> io::Result<()> {
        self.begin(INTERFACE_STATISTICS);
        self.put(&interface.to_le_bytes());
        self.time(nanoseconds);
        self.option(ISB_IFRECV, &seen.to_le_bytes());
        self.option(ISB_IFDROP, &missed.to_le_bytes());
        self.option(OPT_END, &[]);
        self.finish()
    }

    fn time(&mut self, nanoseconds: u64) {
        self.put(&((nanoseconds >> 32) as u32).to_le_bytes());
        self.put(&(nanoseconds as u32).to_le_bytes());
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put(&kind.to_le_bytes());
        self.put(&0u32.to_le_bytes()); // total length, known at the end
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    fn finish(&mut self) -> io::Result<()> {
        let total = (self.block.len() + 4) as u32;
        self.block[4..8].copy_from_slice(&total.to_le_bytes());
        self.put(&total.to_le_bytes());
        self.out.write_all(&self.block)
    }
}

/// A capture that can be started and stopped at any time, and that ends when the disk is full, without an effect on the link.
#[derive(Debug, Default)]
pub struct Recorder {
    writer: Option<PcapngWriter<File>>,
    failure: Option<io::Error>,
}

impl Recorder {
    /// Captures from now on, instead of into an earlier file.
    pub fn start(&mut self, writer: PcapngWriter<File>) {
        *self = Self { writer: Some(writer), failure: None };
    }

    /// Whether a capture runs.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.writer.is_some()
    }

    /// Ends the capture. Returns whether one ran.
    ///
    /// # Errors
    /// Why the capture had ended before, for example because the disk was full.
    pub fn stop(&mut self) -> io::Result<bool> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(self.writer.take().is_some()),
        }
    }

    /// Writes a frame, if a capture runs.
    pub fn record(&mut self, at: SystemTime, direction: Direction, frame: &[u8]) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.frame(at, direction, frame)
        {
            *self = Self { writer: None, failure: Some(error) };
        }
    }
}

/// A link whose frames are captured, stamped with the time at which they passed here.
#[derive(Debug)]
pub struct Captured<L> {
    link: L,
    recorder: Recorder,
}

impl<L: Link> Captured<L> {
    /// Wraps `link`; nothing is captured yet.
    pub fn new(link: L) -> Self {
        Self { link, recorder: Recorder::default() }
    }

    /// The capture.
    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }
}

impl<L: Link> Link for Captured<L> {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.recorder.record(SystemTime::now(), Direction::Outbound, frame);
        self.link.send(frame)
    }

    fn send_more(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.recorder.record(SystemTime::now(), Direction::Outbound, frame);
        self.link.send_more(frame)
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        self.link.flush()
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        let length = self.link.recv(buffer, deadline)?;
        if let Some(length) = length {
            self.recorder.record(SystemTime::now(), Direction::Inbound, &buffer[..length]);
        }
        Ok(length)
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.link.poll_fd()
    }

    fn next_event(&self) -> Option<Instant> {
        self.link.next_event()
    }

    fn stats(&self) -> LinkStats {
        self.link.stats()
    }
}
