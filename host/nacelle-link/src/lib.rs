// SPDX-License-Identifier: Apache-2.0
//! Where Ethernet frames and UDP datagrams come from and go to.
//!
//! A [`Link`] moves whole Ethernet frames (no preamble, no FCS). The virtual wire ([`VirtualWire`], [`Switch`]) joins the
//! processes of one machine without root; [`Tap`] joins the kernel's own stack; [`PacketLink`] and [`XdpLink`] use a network
//! interface; [`Captured`] writes what passes to a pcapng file; [`Impaired`] loses, doubles, reorders, damages and delays frames by a seed.
//!
//! A [`DatagramLink`] moves the UDP datagrams of RoCEv2 instead, where the kernel does IP: [`UdpLink`] is a socket, and needs no
//! privilege. [`ShmLink`] and [`ShmHub`] carry them between the processes of one user by shared memory.
//!
//! Like Ethernet itself a link may lose frames: one that cannot be passed on within a bounded time is dropped and counted,
//! and nothing here waits for ever.

#![warn(missing_docs)]

mod bridge;
mod claim;
mod direct;
mod impair;
mod interface;
mod owner;
mod packet;
mod pcapng;
mod probe;
mod shm;
mod switch;
mod tap;
mod udp;
mod wire;
mod xdp;

use std::io;
use std::net::IpAddr;
use std::ops::Add;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use smallvec::SmallVec;

pub use bridge::bridge;
pub use claim::Claim;
pub use impair::{Impaired, ImpairedDatagrams, ImpairmentCounts, Impairments};
pub use interface::InterfaceName;
pub use packet::PacketLink;
pub use pcapng::{Captured, Direction, Packet, PcapngWriter, Recorder};
pub use probe::PortProbe;
pub use shm::{ShmHub, ShmLink, offers_shm, withdraw_shm};
pub use switch::{Switch, SwitchHost, SwitchStats};
pub use tap::Tap;
pub use udp::{DatagramLink, Delivery, Icrc, Incoming, MAX_BATCH, Outgoing, Placed, ROCE_PORT, Route, UdpLink};
pub use wire::{VirtualWire, WireDir};
pub use xdp::{XdpFault, XdpLink};

/// The longest Ethernet frame that a link carries, in bytes: a jumbo frame of 9 216 bytes and its headers.
pub const MAX_FRAME: usize = 9_234;
/// The shortest thing that can be a frame, in bytes: the Ethernet header alone.
pub const MIN_FRAME: usize = 14;

/// Waiting for this many descriptors allocates nothing.
const FEW: usize = 8;

/// What went through a link, and what did not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LinkStats {
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes of the frames sent.
    pub tx_bytes: u64,
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes of the frames received.
    pub rx_bytes: u64,
    /// Frames that came to an interface and were dropped before this side received them: it was too slow, or they were too long.
    /// Links that are no interface's have no such count.
    pub rx_dropped: u64,
    /// Frames dropped because the other side's queue stayed full.
    pub tx_dropped: u64,
    /// Frames dropped because there was no party at the other side.
    pub tx_no_carrier: u64,
}

impl LinkStats {
    /// Counts a frame sent, of so many bytes.
    fn sent(&mut self, bytes: usize) {
        self.tx_frames += 1;
        self.tx_bytes += bytes as u64;
    }

    /// Counts a frame received, of so many bytes.
    fn received(&mut self, bytes: usize) {
        self.rx_frames += 1;
        self.rx_bytes += bytes as u64;
    }
}

impl Add for LinkStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tx_frames: self.tx_frames + other.tx_frames,
            tx_bytes: self.tx_bytes + other.tx_bytes,
            rx_frames: self.rx_frames + other.rx_frames,
            rx_bytes: self.rx_bytes + other.rx_bytes,
            rx_dropped: self.rx_dropped + other.rx_dropped,
            tx_dropped: self.tx_dropped + other.tx_dropped,
            tx_no_carrier: self.tx_no_carrier + other.tx_no_carrier,
        }
    }
}

/// Why a link cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// There is no switch on this wire.
    #[error("no device and no switch is running on the wire {}", dir.display())]
    NoSwitch {
        /// The wire's directory.
        dir: PathBuf,
    },
    /// Another live party has this name.
    #[error("the name {name} is taken on the wire {}", dir.display())]
    NameTaken {
        /// The requested name.
        name: String,
        /// The wire's directory.
        dir: PathBuf,
    },
    /// The directory or name cannot be used for a wire.
    #[error("{} cannot be used for a wire: {why}", path.display())]
    BadPath {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Port 4791 of the address is taken.
    #[error("UDP port {ROCE_PORT} of {address} is taken{}", by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default())]
    PortTaken {
        /// The address.
        address: IpAddr,
        /// Who has it, as far as this user may know.
        by: Option<String>,
    },
    /// No interface of this machine has the address.
    #[error("{address} is not one address of this machine")]
    NotLocal {
        /// The address.
        address: IpAddr,
    },
    /// An interface cannot be used by a packet socket.
    #[error("cannot send and receive frames on the interface {interface}: {source}{}", privilege(source))]
    Interface {
        /// The interface.
        interface: InterfaceName,
        /// What the operating system said.
        source: io::Error,
    },
    /// An interface cannot be used by an AF_XDP socket.
    #[error("cannot use AF_XDP on the interface {interface}: {fault}")]
    Xdp {
        /// The interface.
        interface: InterfaceName,
        /// What is wrong.
        fault: XdpFault,
    },
    /// A device does not share memory.
    #[error("cannot share memory with the device {name}: {source}")]
    Shm {
        /// The device's name.
        name: String,
        /// What the device's socket or the operating system said.
        source: io::Error,
    },
    /// An RDMA NIC cannot be used.
    #[error("{what}")]
    Nic {
        /// What is wrong.
        what: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The frame is too short or too long for Ethernet.
    #[error("a frame of {length} bytes is not between {MIN_FRAME} and {MAX_FRAME} bytes")]
    FrameLength {
        /// The frame's length in bytes.
        length: usize,
    },
    /// The kernel gives no TAP device.
    #[error("cannot {what}: {source}")]
    Tap {
        /// What was tried.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The operating system refused.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the operating system said.
        source: io::Error,
    },
}

/// What is missing if the system refuses.
fn privilege(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied { " (it needs root or CAP_NET_RAW)" } else { "" }
}

impl LinkError {
    /// What to do about it, in one line, where that is known here.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Interface { source, .. } => Some(interface::hint(source)),
            Self::Xdp { fault, .. } => Some(fault.hint()),
            Self::Nic { hint, .. } => Some(hint),
            _ => None,
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }

    pub(crate) fn tap(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Tap { what: what.into(), source }
    }
}

/// A place where Ethernet frames are sent and received.
pub trait Link: Send {
    /// Sends one frame. A frame that cannot be passed on in bounded time is dropped and counted, as on any Ethernet.
    ///
    /// # Errors
    /// [`LinkError::FrameLength`] if it is no frame; [`LinkError::Io`] if the link is broken for good.
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError>;

    /// As [`send`](Self::send), for the first of several frames: a link that sends several at once at less expense may keep it until
    /// [`flush`](Self::flush), or until `recv` finds no frame.
    ///
    /// # Errors
    /// As `send`.
    fn send_more(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.send(frame)
    }

    /// Sends what [`send_more`](Self::send_more) has kept.
    ///
    /// # Errors
    /// [`LinkError::Io`] if the link is broken for good.
    fn flush(&mut self) -> Result<(), LinkError> {
        Ok(())
    }

    /// Receives one frame into `buffer` and returns its length, or `None` if none came until `deadline`. A deadline in the
    /// past means: only what is already there. The buffer should have [`MAX_FRAME`] bytes: longer frames are cut to it.
    ///
    /// # Errors
    /// [`LinkError::Io`] if the link is broken for good.
    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError>;

    /// Becomes readable when a frame may be there: for poll(2) on several descriptors.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// When `recv` must be called though nothing is readable; `None` if never.
    fn next_event(&self) -> Option<Instant> {
        None
    }

    /// What has passed so far.
    fn stats(&self) -> LinkStats;
}

impl<L: Link + ?Sized> Link for Box<L> {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        (**self).send(frame)
    }
    fn send_more(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        (**self).send_more(frame)
    }
    fn flush(&mut self) -> Result<(), LinkError> {
        (**self).flush()
    }
    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        (**self).recv(buffer, deadline)
    }
    fn poll_fd(&self) -> BorrowedFd<'_> {
        (**self).poll_fd()
    }
    fn next_event(&self) -> Option<Instant> {
        (**self).next_event()
    }
    fn stats(&self) -> LinkStats {
        (**self).stats()
    }
}

/// Waits until one of `fds` is readable or `deadline` has passed. Returns early if a signal arrives.
///
/// # Errors
/// The result of poll(2), except `EINTR`.
pub fn wait_readable<'a>(fds: impl IntoIterator<Item = BorrowedFd<'a>>, deadline: Option<Instant>) -> io::Result<()> {
    let mut polled: SmallVec<[PollFd<'_>; FEW]> =
        fds.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    wait(&mut polled, deadline)
}

fn wait(fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
    let timeout = deadline.map(|at| {
        let left = at.saturating_duration_since(Instant::now());
        Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(left.subsec_nanos()) }
    });
    match rustix::event::poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Calls `attempt` until it gives a frame, waiting for `fd` in between, and until `deadline` at most.
fn recv_until<F: AsFd>(
    fd: &F,
    deadline: Instant,
    mut attempt: impl FnMut(&F) -> Result<Option<usize>, LinkError>,
) -> Result<Option<usize>, LinkError> {
    loop {
        if let Some(length) = attempt(fd)? {
            return Ok(Some(length));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        wait_readable([fd.as_fd()], Some(deadline)).map_err(LinkError::io("wait for a frame"))?;
    }
}

fn check_length(frame: &[u8]) -> Result<(), LinkError> {
    if (MIN_FRAME..=MAX_FRAME).contains(&frame.len()) {
        Ok(())
    } else {
        Err(LinkError::FrameLength { length: frame.len() })
    }
}

/// Whether a send failed because there is no room now: the other side's queue is full, or the kernel is out of buffers.
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error())
}

/// Tries `attempt` again while there is no room: shorter waits first, 50 ms in all. Then the error is `WouldBlock`.
fn send_patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut pause = Duration::from_micros(20);
    loop {
        match attempt() {
            Err(error) if is_full(&error) && pause < Duration::from_millis(25) => {
                std::thread::sleep(pause);
                pause *= 2;
            }
            Err(error) if is_full(&error) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The user at the other end of a Unix socket, as the kernel saw it connect.
///
/// # Errors
/// The error of the system.
pub fn peer_user(socket: &UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(socket)?.uid.as_raw())
}

/// The user of this process.
#[must_use]
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel is out of buffers for a moment, or for longer: that is a full queue, and no broken link.
    #[test]
    fn a_send_that_meets_full_queues_is_tried_again() {
        for full in [Errno::NOBUFS, Errno::AGAIN] {
            let mut tries = 0;
            let sent = send_patiently(|| {
                tries += 1;
                if tries < 5 { Err(full.into()) } else { Ok(3) }
            });
            assert_eq!((sent.unwrap(), tries), (3, 5));
            let error = send_patiently::<()>(|| Err(full.into())).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{full}");
        }
        assert_eq!(send_patiently::<()>(|| Err(Errno::PIPE.into())).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
