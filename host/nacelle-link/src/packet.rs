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

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::time::Instant;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, netdevice, sockopt,
};

use crate::{Link, LinkError, LinkStats, check_length, recv_until, send_patiently};
use offload::{HEADER, Received};

/// `ioctl` numbers of `linux/sockios.h`.
const SIOCGIFMTU: Opcode = 0x8921;
const SIOCGIFHWADDR: Opcode = 0x8927;
/// Longest interface name, in bytes, its final zero included (`IFNAMSIZ`).
const NAME_SIZE: usize = 16;
/// Ethernet, among the kinds of interfaces (`ARPHRD_ETHER`).
const ETHERNET: u16 = 1;
/// Requested of the kernel for received frames, in bytes.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The name of a network interface.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InterfaceName([u8; NAME_SIZE]);

impl FromStr for InterfaceName {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        let fits = (1..NAME_SIZE).contains(&text.len());
        if !fits || text.bytes().any(|byte| byte == b'/' || byte.is_ascii_whitespace() || byte == 0) {
            return Err(LinkError::BadPath { path: text.into(), why: "interface names have 1 to 15 characters" });
        }
        let mut name = [0; NAME_SIZE];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(name))
    }
}

impl InterfaceName {
    /// The name, and zeros behind it.
    pub(crate) fn bytes(self) -> [u8; NAME_SIZE] {
        self.0
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0.split(|byte| *byte == 0).next().unwrap_or_default()))
    }
}

impl fmt::Debug for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `struct ifreq` where the union holds a number.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_SIZE],
    value: i32,
    rest: [u8; 20],
}

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
            set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
            set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1i32)?;
            let (received, stats) = (Received::default(), LinkStats::default());
            let link = Self { socket, index, mtu, mac: None, received, stats };
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
        set(&self.socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Asks for frames to the host's Ethernet address from now on.
    fn learn(&mut self, mac: [u8; 6]) -> io::Result<()> {
        change_membership(&self.socket, self.index, self.mac, mac)?;
        self.mac = Some(mac);
        self.filter()
    }
}

/// Number of an interface and its longest IP packet, in bytes.
///
/// # Errors
/// ENODEV if there is none; `InvalidInput` if it is not Ethernet.
pub(crate) fn look(socket: &OwnedFd, interface: InterfaceName) -> io::Result<(u32, usize)> {
    let index = netdevice::name_to_index(socket, &interface.to_string())?;
    let kind = (ask::<SIOCGIFHWADDR>(socket, interface)? as u32).to_ne_bytes();
    if u16::from_ne_bytes([kind[0], kind[1]]) != ETHERNET {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no Ethernet interface"));
    }
    let mtu = usize::try_from(ask::<SIOCGIFMTU>(socket, interface)?).unwrap_or_default();
    Ok((index, mtu))
}

/// Asks the interface of a packet socket for the frames to one Ethernet address more, and no longer for those to the old one.
pub(crate) fn change_membership(socket: &OwnedFd, index: u32, old: Option<[u8; 6]>, new: [u8; 6]) -> io::Result<()> {
    let membership = |[a, b, c, d, e, f]: [u8; 6]| libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_UNICAST as u16,
        mr_alen: 6,
        mr_address: [a, b, c, d, e, f, 0, 0],
    };
    if let Some(old) = old {
        set(socket, libc::SOL_PACKET, libc::PACKET_DROP_MEMBERSHIP, &membership(old))?;
    }
    set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership(new))
}

/// What the kernel says of an interface.
fn ask<const OPCODE: Opcode>(socket: impl AsFd, interface: InterfaceName) -> io::Result<i32> {
    let mut request = InterfaceRequest { name: interface.0, value: 0, rest: [0; 20] };
    // SAFETY: every OPCODE used here takes a pointer to one `struct ifreq`, which InterfaceRequest lays out in full (40 bytes), and
    // neither keeps the pointer nor writes beyond it.
    unsafe { ioctl(socket, Updater::<OPCODE, InterfaceRequest>::new(&mut request)) }?;
    Ok(request.value)
}

/// Sets an option of the socket that `rustix` does not have.
fn set<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel reads `length` bytes of `value`, and of a filter the program that it names, which
    // is there until this returns.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An interface that is down or removed is an unplugged cable.
pub(crate) fn is_unplugged(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NETDOWN | Errno::NXIO | Errno::NODEV | Errno::NETUNREACH))
}

impl Link for PacketLink {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        check_length(frame)?;
        let mac = frame.get(6..12).and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
        if let Some(mac) = mac.filter(|mac| self.mac != Some(*mac)) {
            match self.learn(mac) {
                Err(error) if !is_unplugged(&error) => {
                    return Err(LinkError::io("ask an interface for the frames of a host")(error));
                }
                _ => {}
            }
        }
        // Nothing is left to the interface.
        let parts = [IoSlice::new(&[0; HEADER]), IoSlice::new(frame)];
        let send = || {
            let mut no_control = SendAncillaryBuffer::default();
            Ok(rustix::net::sendmsg(&self.socket, &parts, &mut no_control, SendFlags::empty())?)
        };
        match send_patiently(send) {
            Ok(_) => {
                self.stats.sent(frame.len());
            }
            // Full, or longer than the interface sends.
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    || error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) =>
            {
                self.stats.tx_dropped += 1;
            }
            Err(error) if is_unplugged(&error) => self.stats.tx_no_carrier += 1,
            Err(error) => return Err(LinkError::io("send a frame on an interface")(error)),
        }
        Ok(())
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
        self.stats
    }
}
