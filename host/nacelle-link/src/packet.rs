// SPDX-License-Identifier: Apache-2.0
//! Ethernet frames of a network interface, by a packet socket (packet(7)). Needs `CAP_NET_RAW`.
//!
//! Whoever uses the link is a host of its own on the interface's network, with addresses of its own: the kernel's are not touched,
//! and its stack drops frames for other Ethernet addresses. The link learns the host's Ethernet address from the frames that it sends,
//! and asks the interface for frames to it; a filter in the kernel keeps all other traffic away.
//!
//! What hosts on this machine send may come as no wire has it: without checksums, and as several datagrams in one frame. The kernel
//! says so before each frame (`PACKET_VNET_HDR`), and the link makes plain frames of it (`offload`).

mod offload;

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sockopt};

use crate::interface::{
    InterfaceName, Tally, account, change_membership, get_option, is_unplugged, learned, look, new_source, set_option,
};
use crate::{Link, LinkError, LinkStats, check_length, recv_until, send_patiently};
use offload::{HEADER, Received};

/// Requested of the kernel for received frames, in bytes.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A packet socket on an interface.
#[derive(Debug)]
pub struct PacketLink {
    socket: OwnedFd,
    index: u32,
    mtu: usize,
    /// The Ethernet address that frames have been sent from.
    mac: Option<[u8; 6]>,
    /// What came last, and what is left of it.
    received: Received,
    /// What the kernel has said of frames that it dropped.
    dropped: Cell<u64>,
    stats: LinkStats,
}

impl PacketLink {
    /// Sends and receives on an interface.
    ///
    /// # Errors
    /// [`LinkError::Interface`] if there is no such interface, it is not Ethernet, or this user may not.
    pub fn open(interface: InterfaceName) -> Result<Self, LinkError> {
        let open = || -> io::Result<Self> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
            let (index, mtu) = look(&socket, interface)?;
            // Larger ones only mean fewer losses.
            let _ = sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
                .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER));
            set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
            set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1i32)?;
            let (received, dropped, stats) = (Received::default(), Cell::new(0), LinkStats::default());
            let link = Self { socket, index, mtu, mac: None, received, dropped, stats };
            // Nothing comes before it is bound.
            link.filter()?;
            link.bind()?;
            Ok(link)
        };
        open().map_err(|source| LinkError::Interface { interface, source })
    }

    /// Longest IP packet that the interface sends, in bytes.
    #[must_use]
    pub fn ip_mtu(&self) -> usize {
        self.mtu
    }

    fn bind(&self) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: self.index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the descriptor is open, and the kernel reads `length` bytes of `address`.
        let result = unsafe { libc::bind(self.socket.as_raw_fd(), (&raw const address).cast(), length) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Lets ARP and IPv4 to the host, or to all, through.
    fn filter(&self) -> io::Result<()> {
        let [a, b, c, d, e, f] = self.mac.unwrap_or([0xff; 6]);
        let (high, low) = (u32::from_be_bytes([a, b, c, d]), u32::from(u16::from_be_bytes([e, f])));
        let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let load = |width, at| step(libc::BPF_LD | width | libc::BPF_ABS, 0, 0, at);
        let jump = |how, jt, jf, k| step(libc::BPF_JMP | how | libc::BPF_K, jt, jf, k);
        let mut program = [
            load(libc::BPF_H, 12),
            jump(libc::BPF_JEQ, 1, 0, 0x0800), // IPv4: 3
            jump(libc::BPF_JEQ, 0, 7, 0x0806), // else ARP, or the last
            load(libc::BPF_B, 0),
            jump(libc::BPF_JSET, 4, 0, 1), // to a group: all of it
            load(libc::BPF_W, 0),
            jump(libc::BPF_JEQ, 0, 3, high),
            load(libc::BPF_H, 4),
            jump(libc::BPF_JEQ, 0, 1, low),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        ];
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        set_option(&self.socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Asks for frames to the host's Ethernet address from now on.
    fn learn(&mut self, mac: [u8; 6]) -> io::Result<()> {
        change_membership(&self.socket, self.index, self.mac, mac)?;
        self.mac = Some(mac);
        self.filter()
    }
}

impl Link for PacketLink {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        check_length(frame)?;
        if let Some(mac) = new_source(frame, self.mac) {
            learned(self.learn(mac))?;
        }
        // Nothing is left to the interface.
        let parts = [IoSlice::new(&[0; HEADER]), IoSlice::new(frame)];
        let send = || {
            let mut no_control = SendAncillaryBuffer::default();
            rustix::net::sendmsg(&self.socket, &parts, &mut no_control, SendFlags::empty())?;
            Ok(())
        };
        let result = send_patiently(send);
        account(&mut self.stats, Tally::of(frame), result)
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        let received = &mut self.received;
        let length = recv_until(&self.socket, deadline, |socket| {
            if let Some(length) = received.next(buffer) {
                return Ok(Some(length));
            }
            match rustix::net::recv(socket, received.room(), RecvFlags::empty()) {
                Ok((_, length)) => {
                    received.take(length);
                    Ok(received.next(buffer))
                }
                Err(Errno::AGAIN | Errno::INTR) => Ok(None),
                Err(errno) if is_unplugged(&errno.into()) => Ok(None),
                Err(errno) => Err(LinkError::io("receive a frame from an interface")(errno.into())),
            }
        })?;
        if let Some(length) = length {
            self.stats.received(length);
        }
        Ok(length)
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn next_event(&self) -> Option<Instant> {
        // The descriptor does not tell of what is left here.
        self.received.has_more().then(Instant::now)
    }

    fn stats(&self) -> LinkStats {
        let mut new = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        // It counts from the last time that it was asked, and nothing if the kernel does not tell.
        let _nothing_depends_on_it = get_option(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut new);
        self.dropped.set(self.dropped.get() + u64::from(new.tp_drops));
        LinkStats { rx_dropped: self.dropped.get(), ..self.stats }
    }
}
