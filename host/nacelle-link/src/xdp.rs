// SPDX-License-Identifier: Apache-2.0
//! Ethernet frames of a network interface, by an AF_XDP socket. Needs `CAP_NET_RAW`, `CAP_NET_ADMIN` and `CAP_BPF`.
//!
//! As with [`PacketLink`](crate::PacketLink) whoever uses the link is a host of its own on the interface's network. A program at
//! the interface (`program`) redirects the host's frames to the socket before the kernel's stack sees them; the kernel copies them
//! into memory that the link shares with it, or its driver receives there (`kernel`). The program is there as long as the link.

mod checksum;
mod fault;
mod kernel;
mod program;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::interface::{InterfaceName, Tally, account, change_membership, learned, look, new_source, queues};
use crate::{Link, LinkError, LinkStats, MIN_FRAME, check_length, send_patiently, wait_readable};
pub use fault::XdpFault;
use kernel::{Attachment, LONGEST, Program, Room, Socket, Sockets};

/// Longest IP packet that fits the memory of one frame.
const LONGEST_PACKET: usize = LONGEST - MIN_FRAME;
/// Places of a socket that has the only queue; of the first of several, by which frames are sent; and of the others.
const ALONE: Room = Room { received: 2048, sent: 1024 };
const FIRST: Room = Room { received: 1024, sent: 1024 };
const OTHER: Room = Room { received: 1024, sent: 1 };
/// Most queues of an interface.
const MOST_QUEUES: u32 = 64;

/// AF_XDP sockets on an interface, one for each receive queue, and the program that redirects a host's frames to them.
#[derive(Debug)]
pub struct XdpLink {
    attachment: Attachment,
    map: Sockets,
    /// At least one. Frames are sent by the first.
    sockets: Vec<Socket>,
    /// Which is looked at next.
    turn: usize,
    /// An epoll descriptor on all sockets, if there are several.
    poll: Option<OwnedFd>,
    /// A packet socket that receives nothing, by which the interface is asked for the frames of the host.
    membership: OwnedFd,
    interface: InterfaceName,
    index: u32,
    mtu: usize,
    ip: Ipv4Addr,
    /// The Ethernet address that frames have been sent from.
    mac: Option<[u8; 6]>,
    /// On the way since the last flush.
    kept: Tally,
    stats: LinkStats,
}

impl XdpLink {
    /// Sends and receives on an interface, as a host with the address `ip`. What the host is asked by ARP comes at once; other
    /// frames from the first one on that it has sent.
    ///
    /// # Errors
    /// [`LinkError::Xdp`] with what is wrong.
    pub fn open(interface: InterfaceName, ip: Ipv4Addr) -> Result<Self, LinkError> {
        Self::try_open(interface, ip).map_err(|fault| LinkError::Xdp { interface, fault })
    }

    fn try_open(interface: InterfaceName, ip: Ipv4Addr) -> Result<Self, XdpFault> {
        let membership = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(|errno| fault("make a packet socket")(errno.into()))?;
        let (index, mtu) = look(&membership, interface).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidInput => XdpFault::NotEthernet,
            _ if Errno::from_io_error(&source) == Some(Errno::NODEV) => XdpFault::NoSuchInterface,
            _ => fault("look at the interface")(source),
        })?;
        let count = queues(interface).map_err(fault("count the queues of the interface"))?;
        if count > MOST_QUEUES {
            return Err(XdpFault::Queues { count, most: MOST_QUEUES });
        }
        let map = Sockets::new(count).map_err(|source| match Errno::from_io_error(&source) {
            Some(Errno::INVAL | Errno::NOSYS) => XdpFault::NoSockets,
            _ => fault("make a map of sockets")(source),
        })?;
        // With a map that is empty it leaves all to the kernel.
        let program = load(None, ip, &map).map_err(fault("load an XDP program"))?;
        let attachment = Attachment::new(&program, index).map_err(|source| match Errno::from_io_error(&source) {
            Some(Errno::BUSY | Errno::EXIST) => XdpFault::ProgramTaken,
            Some(Errno::PERM | Errno::ACCESS) => XdpFault::Privilege,
            _ => XdpFault::Refused { source },
        })?;
        let mut sockets = Vec::with_capacity(count as usize);
        for queue in 0..count {
            let room = match queue {
                0 if count == 1 => ALONE,
                0 => FIRST,
                _ => OTHER,
            };
            let socket = Socket::bind(index, queue, room)?;
            map.set(queue, &socket).map_err(fault("put a socket into a map"))?;
            sockets.push(socket);
        }
        let poll = (count > 1).then(|| on_all(&sockets)).transpose().map_err(fault("wait for several sockets"))?;
        let (kept, stats) = (Tally::default(), LinkStats::default());
        Ok(Self {
            attachment,
            map,
            sockets,
            turn: 0,
            poll,
            membership,
            interface,
            index,
            mtu,
            ip,
            mac: None,
            kept,
            stats,
        })
    }

    /// Longest IP packet that the link carries, in bytes: less than the interface's, if that has longer ones.
    #[must_use]
    pub fn ip_mtu(&self) -> usize {
        self.mtu.min(LONGEST_PACKET)
    }

    /// The link, if it carries every packet that the interface does: for a host whose peers choose how long packets are.
    ///
    /// # Errors
    /// [`XdpFault::Mtu`] if it does not.
    pub fn whole(self) -> Result<Self, LinkError> {
        let (mtu, longest, interface) = (self.mtu, LONGEST_PACKET, self.interface);
        if mtu > longest { Err(LinkError::Xdp { interface, fault: XdpFault::Mtu { mtu, longest } }) } else { Ok(self) }
    }

    /// Takes the frames to the host's Ethernet address from now on.
    fn learn(&mut self, mac: [u8; 6]) -> io::Result<()> {
        change_membership(&self.membership, self.index, self.mac, mac)?;
        self.attachment.replace(&load(Some(mac), self.ip, &self.map)?)?;
        self.mac = Some(mac);
        Ok(())
    }

    /// The next frame of the sockets, which take turns.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        (0..self.sockets.len()).find_map(|_| {
            self.turn = (self.turn + 1) % self.sockets.len();
            self.sockets[self.turn].receive(buffer)
        })
    }
}

fn load(mac: Option<[u8; 6]>, ip: Ipv4Addr, sockets: &Sockets) -> io::Result<Program> {
    Program::load(&program::redirect(mac, ip, sockets.number()))
}

/// A descriptor that is readable when one of the sockets is.
fn on_all(sockets: &[Socket]) -> io::Result<OwnedFd> {
    let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for socket in sockets {
        epoll::add(&all, socket, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(all)
}

/// What it means that this failed.
fn fault(what: &'static str) -> impl FnOnce(io::Error) -> XdpFault {
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied => XdpFault::Privilege,
        _ => XdpFault::System { what, source },
    }
}

impl Link for XdpLink {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.send_more(frame)?;
        self.flush()
    }

    fn send_more(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        check_length(frame)?;
        if let Some(mac) = new_source(frame, self.mac) {
            learned(self.learn(mac))?;
        }
        if frame.len() > MIN_FRAME + self.ip_mtu() {
            self.stats.tx_dropped += 1;
            return Ok(());
        }
        match send_patiently(|| self.sockets[0].put(frame)) {
            Ok(()) => {
                self.kept += Tally::of(frame);
                Ok(())
            }
            failed => account(&mut self.stats, Tally::of(frame), failed),
        }
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        account(&mut self.stats, std::mem::take(&mut self.kept), self.sockets[0].flush())
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        loop {
            if let Some(length) = self.receive(buffer) {
                checksum::settle(&mut buffer[..length]);
                self.stats.received(length);
                return Ok(Some(length));
            }
            self.sockets.iter_mut().for_each(Socket::wake);
            // What was kept, and what the kernel had no room for.
            self.flush()?;
            if Instant::now() >= deadline {
                return Ok(None);
            }
            wait_readable([self.poll_fd()], Some(deadline)).map_err(LinkError::io("wait for a frame"))?;
        }
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.poll.as_ref().map_or_else(|| self.sockets[0].as_fd(), OwnedFd::as_fd)
    }

    fn stats(&self) -> LinkStats {
        LinkStats { rx_dropped: self.sockets.iter().map(Socket::dropped).sum(), ..self.stats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0x4e, 0x41, 0, 0x80, 0xff];
    const IP: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);

    /// A frame with so many bytes behind its header, where an ARP packet has `target`.
    fn frame(to: [u8; 6], kind: u16, target: Ipv4Addr, length: usize) -> Vec<u8> {
        let mut frame = [&to[..], &[2, 0, 0, 0, 0, 9], &kind.to_be_bytes(), &[0; 24], &target.octets()].concat();
        frame.resize(MIN_FRAME + length, 0);
        frame
    }

    /// The kernel runs the program on frames. It checks the program first.
    #[test]
    fn the_program_redirects_what_is_for_the_host() {
        let sockets = match Sockets::new(1) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("not tested: it needs CAP_BPF");
                return;
            }
            sockets => sockets.unwrap(),
        };
        let socket = Socket::new(OTHER).unwrap();
        sockets.set(0, &socket).unwrap();
        let verdict = |mac, frame: Vec<u8>| kernel::try_program(&load(mac, IP, &sockets).unwrap(), &frame).unwrap();
        let (all, group, other) = ([0xff; 6], [1, 0, 0x5e, 0, 0, 1], Ipv4Addr::new(10, 99, 0, 1));
        let pass = program::PASS as u32;
        for (to, kind, target, length, expected) in [
            (MAC, 0x0800, other, 28, program::REDIRECT),
            (MAC, 0x0806, other, 28, program::REDIRECT),
            (MAC, 0x0800, other, 1486, program::REDIRECT),
            (all, 0x0806, IP, 28, program::REDIRECT),
            (group, 0x0806, IP, 46, program::REDIRECT),
            (all, 0x0806, other, 28, pass),
            (all, 0x0800, IP, 28, pass),
            (group, 0x86dd, IP, 100, pass),
            (MAC, 0x0800, other, 27, pass),
            ([2, 0x4e, 0x41, 0, 0x80, 0xfe], 0x0800, IP, 28, pass),
            ([2, 0x4e, 0x41, 1, 0x80, 0xff], 0x0806, IP, 28, pass),
        ] {
            let case = format!("{to:x?} {kind:x} {target} {length}");
            assert_eq!(verdict(Some(MAC), frame(to, kind, target, length)), expected, "{case}");
        }
        // Before the host has sent a frame.
        assert_eq!(verdict(None, frame(all, 0x0806, IP, 28)), program::REDIRECT);
        assert_eq!(verdict(None, frame(MAC, 0x0800, IP, 28)), pass);
        assert_eq!(verdict(None, frame([0; 6], 0x0800, IP, 28)), pass);
    }

    /// On a loopback interface of its own.
    #[test]
    fn a_queue_has_one_socket_at_a_time() {
        // SAFETY: it changes what this thread sees of the network, and nothing in memory.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            eprintln!("not tested: it needs root");
            return;
        }
        let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
        assert!(up.success());
        let first = Socket::bind(1, 0, OTHER).unwrap();
        assert!(matches!(Socket::bind(1, 0, OTHER), Err(XdpFault::QueueTaken { queue: 0 })));
        drop(first);
        Socket::bind(1, 0, OTHER).unwrap();
        assert!(matches!(Socket::bind(1, 1, OTHER), Err(XdpFault::System { .. })));
        assert!(matches!(Socket::bind(77, 0, OTHER), Err(XdpFault::NoSuchInterface)));
    }

    #[test]
    fn every_fault_says_what_to_do() {
        let io = || io::Error::from(io::ErrorKind::InvalidInput);
        for fault in [
            XdpFault::NoSuchInterface,
            XdpFault::NotEthernet,
            XdpFault::Down,
            XdpFault::Queues { count: 65, most: MOST_QUEUES },
            XdpFault::Mtu { mtu: 9000, longest: LONGEST_PACKET },
            XdpFault::Privilege,
            XdpFault::NoSockets,
            XdpFault::ProgramTaken,
            XdpFault::QueueTaken { queue: 3 },
            XdpFault::LockedMemory { bytes: 1 },
            XdpFault::Refused { source: io() },
            XdpFault::System { what: "try", source: io() },
        ] {
            assert!(fault.hint().len() > 20 && !fault.to_string().is_empty(), "{fault}");
        }
        assert!(XdpFault::Queues { count: 65, most: MOST_QUEUES }.hint().contains("ethtool -L"));
        let denied = fault("load")(io::ErrorKind::PermissionDenied.into());
        assert!(matches!(denied, XdpFault::Privilege));
    }
}
