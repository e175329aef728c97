// SPDX-License-Identifier: Apache-2.0
//! A caller's link by shared memory.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::channel::{Channel, End};
use super::{greeting, readable, socket_path};
use crate::{
    DatagramLink, Delivery, Icrc, Incoming, LinkError, LinkStats, Outgoing, Placed, ROCE_PORT, WireDir, own_user,
};

/// How long a device may take to offer its memory when a link is opened, and when it is opened again.
const GREETING: Duration = Duration::from_secs(2);
const GREETING_AGAIN: Duration = Duration::from_millis(100);
/// How long to wait before a link is opened again that the device does not offer.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How long a full ring is waited for.
const PATIENCE: Duration = Duration::from_millis(50);
/// Looks at the ring between two looks at the socket, which cost more.
const LOOKS: u32 = 1024;

/// Tokens of the descriptors.
const WAKE: u64 = 0;
const SOCKET: u64 = 1;

/// A caller's end. When the device is gone, [`DatagramLink::poll_gone`] says so, and what is sent from then on opens the link again,
/// if there is a device.
#[derive(Debug)]
pub struct ShmLink {
    path: PathBuf,
    local: IpAddr,
    device: IpAddr,
    icrc: Icrc,
    channel: Option<Channel>,
    set: OwnedFd,
    looks: u32,
    armed: bool,
    gone: bool,
    /// When it may be opened again.
    again_at: Option<Instant>,
    stats: LinkStats,
}

fn open(path: &Path, had: Option<IpAddr>, icrc: Icrc, patience: Duration) -> io::Result<(IpAddr, IpAddr, Channel)> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    for direction in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        sockopt::set_socket_timeout(&socket, direction, Some(patience))?;
    }
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    if sockopt::socket_peercred(&socket)?.uid.as_raw() != own_user() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the device is another user's"));
    }
    greeting::ask(&socket, had, icrc)?;
    let offer = greeting::offered(&socket)?;
    if icrc == Icrc::Kept && offer.icrc == Icrc::LeftOut {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the device leaves out the ICRCs that it was asked for",
        ));
    }
    Ok((offer.address, offer.device, Channel::new(End::Caller, offer.shared, socket, offer.icrc)?))
}

impl ShmLink {
    /// Shares memory with the device of this name on a wire. With [`Icrc::LeftOut`] the ICRCs are left out if the device agrees.
    ///
    /// # Errors
    /// [`LinkError::Shm`] if there is no such device, it does not offer shared memory, is another user's, or has no room for another
    /// caller.
    pub fn open(wire: &WireDir, name: &str, icrc: Icrc) -> Result<Self, LinkError> {
        let fail = |source| LinkError::Shm { name: name.to_owned(), source };
        let path = socket_path(wire, name);
        let (local, device, channel) = open(&path, None, icrc, GREETING).map_err(fail)?;
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| fail(errno.into()))?;
        let mut link = Self {
            path,
            local,
            device,
            icrc,
            channel: None,
            set,
            looks: 0,
            armed: false,
            gone: false,
            again_at: None,
            stats: LinkStats::default(),
        };
        link.take(channel).map_err(fail)?;
        Ok(link)
    }

    /// The device's address.
    #[must_use]
    pub fn device(&self) -> IpAddr {
        self.device
    }

    fn take(&mut self, channel: Channel) -> io::Result<()> {
        for (token, fd) in [(WAKE, channel.wake_fd().as_fd()), (SOCKET, channel.socket().as_fd())] {
            epoll::add(&self.set, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?;
        }
        self.channel = Some(channel);
        Ok(())
    }

    /// The device is gone, or has broken the ring.
    fn lose(&mut self) {
        self.channel = None;
        self.gone = true;
    }

    /// Opens the link again, under the same address.
    fn reopen(&mut self) {
        let now = Instant::now();
        if self.gone || self.again_at.is_some_and(|at| now < at) {
            return;
        }
        let opened = open(&self.path, Some(self.local), self.icrc, GREETING_AGAIN);
        if let Ok((local, device, channel)) = opened
            && (local, device) == (self.local, self.device)
            // If it cannot be waited for, it is as if it were not there.
            && self.take(channel).is_ok()
        {
            self.again_at = None;
            return;
        }
        self.again_at = Some(now + AGAIN_AFTER);
    }

    /// Looks at the descriptors.
    fn look(&mut self) -> Result<(), LinkError> {
        let mut events = [MaybeUninit::uninit(); 2];
        let Some(channel) = &mut self.channel else { return Ok(()) };
        for token in readable(&self.set, &mut events)? {
            match token {
                WAKE => channel.clear_wake(),
                // Nothing is said by it but the end.
                _ => channel.close(),
            }
        }
        Ok(())
    }
}

impl DatagramLink for ShmLink {
    fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local, ROCE_PORT)
    }

    fn max_segments(&self) -> usize {
        usize::MAX
    }

    fn icrc(&self, _to: IpAddr) -> Icrc {
        self.channel.as_ref().map_or(Icrc::Kept, Channel::icrc)
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<Delivery, LinkError> {
        let count = outgoing.count();
        if self.channel.is_none() {
            self.reopen();
        }
        let Some(channel) = self.channel.as_mut().filter(|_| outgoing.to == self.device) else {
            self.stats.tx_no_carrier += count;
            return Ok(Delivery::Done);
        };
        match channel.send(&outgoing, PATIENCE) {
            Ok(true) => {
                self.stats.tx_frames += count;
                self.stats.tx_bytes += outgoing.bytes.len() as u64;
            }
            Ok(false) => self.stats.tx_dropped += count,
            Err(_) => self.lose(),
        }
        Ok(Delivery::Done)
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        self.channel.as_mut()?.room()
    }

    fn send_placed(&mut self, placed: Placed) {
        let count = placed.count();
        match &mut self.channel {
            Some(channel) if placed.to == self.device => {
                channel.send_placed(placed);
                self.stats.tx_frames += count;
                self.stats.tx_bytes += placed.len as u64;
            }
            _ => self.stats.tx_no_carrier += count,
        }
    }

    fn recv(&mut self, take: &mut dyn FnMut(Incoming<'_>)) -> Result<bool, LinkError> {
        self.looks = self.looks.wrapping_add(1);
        if std::mem::take(&mut self.armed) || self.looks.is_multiple_of(LOOKS) {
            if let Some(channel) = &mut self.channel {
                channel.disarm();
            }
            self.look()?;
        }
        let Self { channel: Some(channel), device, stats, .. } = self else { return Ok(false) };
        let from = SocketAddr::new(*device, ROCE_PORT);
        let found = channel.recv(|header, bytes| take(stats.shared(from, header, bytes)));
        if found.is_err() {
            self.lose();
        }
        Ok(found.unwrap_or(false))
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }

    fn arm(&mut self) {
        self.armed = true;
        if let Some(channel) = &mut self.channel {
            channel.arm();
        }
    }

    fn poll_gone(&mut self) -> Option<IpAddr> {
        std::mem::take(&mut self.gone).then_some(self.device)
    }

    fn stats(&self) -> LinkStats {
        self.stats
    }
}
