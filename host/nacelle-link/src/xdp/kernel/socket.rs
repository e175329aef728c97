// SPDX-License-Identifier: Apache-2.0
//! A socket of the family AF_XDP on one queue of an interface, and its memory.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::memory::{Frames, Ring};
use super::{CHUNK, LONGEST};
use crate::interface::{get_option, set_option};
use crate::xdp::XdpFault;

/// How many places a socket has. Powers of two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// For received frames.
    pub(crate) received: u32,
    /// For those under way out.
    pub(crate) sent: u32,
}

/// Of the number of a byte of the memory: its place.
const PLACE: u64 = !(CHUNK as u64 - 1);
/// The kernel takes back the queue of a socket that was closed a moment ago in its own time.
const QUEUE_PATIENCE: Duration = Duration::from_secs(1);
/// The least that a kernel sends in one call, if there is as much (`TX_BATCH_SIZE`).
const AT_ONCE: u32 = 16;

/// A socket on a queue of an interface.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    frames: Frames,
    /// Places for the kernel to receive into, and received frames.
    fill: Ring<u64>,
    received: Ring<libc::xdp_desc>,
    /// Frames to send, and places whose frames are sent.
    send: Ring<libc::xdp_desc>,
    completed: Ring<u64>,
    /// Places that are free for frames to send.
    free: Vec<u64>,
}

impl Socket {
    /// Makes a socket and its memory, and binds it to a queue of the interface of this number.
    pub(crate) fn bind(interface: u32, queue: u32, room: Room) -> Result<Self, XdpFault> {
        let mut socket = Self::new(room)?;
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let length = size_of_val(&address) as libc::socklen_t;
        let patience = Instant::now() + QUEUE_PATIENCE;
        loop {
            // SAFETY: the descriptor is open, and the kernel reads `length` bytes of `address`.
            if unsafe { libc::bind(socket.fd.as_raw_fd(), (&raw const address).cast(), length) } == 0 {
                break;
            }
            let source = io::Error::last_os_error();
            match Errno::from_io_error(&source) {
                Some(Errno::BUSY) if Instant::now() < patience => std::thread::sleep(Duration::from_millis(10)),
                Some(Errno::BUSY) => return Err(XdpFault::QueueTaken { queue }),
                Some(Errno::NETDOWN) => return Err(XdpFault::Down),
                Some(Errno::NODEV) => return Err(XdpFault::NoSuchInterface),
                _ => return Err(XdpFault::System { what: "bind an AF_XDP socket", source }),
            }
        }
        (0..u64::from(room.received)).all(|place| socket.fill.push(place * CHUNK as u64));
        Ok(socket)
    }

    /// One that is not bound.
    pub(crate) fn new(Room { received, sent }: Room) -> Result<Self, XdpFault> {
        let family = AddressFamily::from_raw(libc::AF_XDP as u16);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(family, SocketType::RAW, flags, None).map_err(|errno| match errno {
            Errno::AFNOSUPPORT => XdpFault::NoSockets,
            Errno::PERM | Errno::ACCESS => XdpFault::Privilege,
            errno => XdpFault::System { what: "make an AF_XDP socket", source: errno.into() },
        })?;
        let frames = Frames::new((received + sent) as usize)
            .map_err(|source| XdpFault::System { what: "get memory for frames", source })?;
        let (addr, len) = frames.extent();
        let memory =
            libc::xdp_umem_reg { addr, len, chunk_size: CHUNK as u32, headroom: 0, flags: 0, tx_metadata_len: 0 };
        set_option(&fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory).map_err(|source| {
            match Errno::from_io_error(&source) {
                Some(Errno::NOBUFS) => XdpFault::LockedMemory { bytes: len },
                _ => XdpFault::System { what: "share memory with the kernel", source },
            }
        })?;
        let rings = || -> io::Result<_> {
            for (option, size) in [
                (libc::XDP_UMEM_FILL_RING, received),
                (libc::XDP_UMEM_COMPLETION_RING, sent),
                (libc::XDP_RX_RING, received),
                (libc::XDP_TX_RING, sent),
            ] {
                set_option(&fd, libc::SOL_XDP, option, &size)?;
            }
            let at = offsets(&fd)?;
            Ok((
                Ring::map(fd.as_fd(), libc::XDP_UMEM_PGOFF_FILL_RING, &at.fr, received)?,
                Ring::map(fd.as_fd(), libc::XDP_PGOFF_RX_RING as u64, &at.rx, received)?,
                Ring::map(fd.as_fd(), libc::XDP_PGOFF_TX_RING as u64, &at.tx, sent)?,
                Ring::map(fd.as_fd(), libc::XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, sent)?,
            ))
        };
        let free = (received..received + sent).map(|place| u64::from(place) * CHUNK as u64).collect();
        let (fill, received, send, completed) =
            rings().map_err(|source| XdpFault::System { what: "share rings with the kernel", source })?;
        Ok(Self { fd, frames, fill, received, send, completed, free })
    }

    /// Copies the next received frame into `buffer` and returns its length, if there is one.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let frame = self.received.pop()?;
        let length = self.frames.read(frame.addr, frame.len as usize, buffer);
        // The ring has room for every place.
        self.fill.push(frame.addr & PLACE);
        Some(length)
    }

    /// How many frames the kernel has dropped: those longer than a place, and those that came when there was none.
    pub(crate) fn dropped(&self) -> u64 {
        let mut counts = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        // They stay 0 if the kernel does not tell.
        let _nothing_depends_on_it = get_option(&self.fd, libc::SOL_XDP, libc::XDP_STATISTICS, &mut counts);
        counts.rx_dropped.saturating_add(counts.rx_ring_full)
    }

    /// Wakes the kernel if it waits for places to receive into.
    pub(crate) fn wake(&mut self) {
        if self.fill.needs_wakeup() {
            // SAFETY: the descriptor is open, and there is no buffer that the kernel could write to.
            let _what_is_wrong_the_next_send_will_say = unsafe {
                let (fd, none) = (self.fd.as_raw_fd(), std::ptr::null_mut());
                libc::recvfrom(fd, none, 0, libc::MSG_DONTWAIT, std::ptr::null_mut(), std::ptr::null_mut())
            };
        }
    }

    /// Puts a frame on the way, on which it goes with the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// `WouldBlock` if there is no place for it now, and EMSGSIZE if there never is. Other errors are those of `flush`.
    pub(crate) fn put(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() > LONGEST {
            return Err(Errno::MSGSIZE.into());
        }
        if self.free.is_empty() {
            self.take_back();
        }
        if self.free.is_empty() {
            // Those on the way must leave first.
            self.flush()?;
            self.take_back();
        }
        let addr = self.free.pop().ok_or(io::ErrorKind::WouldBlock)?;
        let len = self.frames.write(addr, frame) as u32;
        // The ring has room for every place.
        self.send.push(libc::xdp_desc { addr, len, options: 0 });
        Ok(())
    }

    /// Takes the places whose frames are sent.
    fn take_back(&mut self) {
        while let Some(place) = self.completed.pop() {
            self.free.push(place & PLACE);
        }
    }

    /// Lets the kernel send what is on the way. What it has no room for now stays there until the next time.
    ///
    /// # Errors
    /// The interface's. All frames stay on the way.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let mut unread = self.send.unread();
        while unread > 0 && self.send.needs_wakeup() {
            // SAFETY: the descriptor is open, and there is no buffer that the kernel could read.
            let result = unsafe {
                libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
            };
            if result >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match Errno::from_io_error(&error) {
                // It has sent as many as it does in one call, or has no room.
                Some(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => unread = unread.saturating_sub(AT_ONCE),
                // The interface has dropped a frame.
                Some(Errno::BUSY) => unread -= 1,
                _ => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Where the words and entries of the rings are.
fn offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    let none = || libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
    let mut offsets = libc::xdp_mmap_offsets { rx: none(), tx: none(), fr: none(), cr: none() };
    let length = get_option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    // Kernels before 5.4 have no flags.
    if length == size_of_val(&offsets) { Ok(offsets) } else { Err(io::ErrorKind::Unsupported.into()) }
}
