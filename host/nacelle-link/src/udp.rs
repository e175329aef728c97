// SPDX-License-Identifier: Apache-2.0
//! A UDP socket for RoCEv2: the kernel does IP, and no privilege is needed.
//!
//! The socket is bound to one address and port 4791, since peers send to that port, and is never connected: then Linux sends with
//! don't fragment and IPv4 identification 0, or 0, 1, 2 and so on within one segmented send, which the ICRC covers. Several
//! datagrams pass in one call: equally long ones to one peer are sent by UDP_SEGMENT and received by UDP_GRO, others received by
//! recvmmsg(2).

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

use nacelle_memory::Bytes;
use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::{LinkError, LinkStats, owner, send_patiently};

/// The UDP port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;
/// Requested of the kernel for each direction, in bytes; it gives less to users without privileges.
const SOCKET_BUFFER: usize = 4 << 20;
/// Buffers for one receive call, each for the longest run that the kernel coalesces.
const BUFFERS: usize = 16;
const BUFFER: usize = 1 << 16;
/// Most bytes of one segmented send: an IP packet with its headers has at most 65535.
pub const MAX_BATCH: usize = 65_535 - 60;
/// The ECN bits of the type of service (IPv4) or traffic class (IPv6).
const ECN: u8 = 0b11;
/// Free addresses tried in 127.0.0.0/8.
const ADDRESS_TRIES: usize = 64;

/// Whether packets have an ICRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icrc {
    /// They do.
    Kept,
    /// Nothing on the way can damage them, and both ends have agreed to leave it out: its bytes are zeros, and nobody looks at them.
    LeftOut,
}

/// What one receive gives: a datagram, or several of one sender and length.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// The sender.
    pub from: SocketAddr,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// The datagrams, one behind the other. Those in memory that the sender shares have no ICRC ([`Icrc::LeftOut`]).
    pub bytes: Bytes<'a>,
    /// Bytes of each but the last, which may be shorter.
    pub stride: usize,
}

/// Datagrams to send to port 4791 of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The peer.
    pub to: IpAddr,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// The datagrams, one behind the other.
    pub bytes: &'a [u8],
    /// Bytes of each but the last, which may be shorter; `None` if there is one only.
    pub segment_size: Option<usize>,
}

impl Outgoing<'_> {
    /// How many datagrams there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        count(self.bytes.len(), self.segment_size)
    }
}

/// Datagrams that were written in the room of a link, to send to port 4791 of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The peer.
    pub to: IpAddr,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// Bytes of all of them.
    pub len: usize,
    /// Bytes of each but the last, which may be shorter; `None` if there is one only.
    pub segment_size: Option<usize>,
}

impl Placed {
    /// How many datagrams there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        count(self.len, self.segment_size)
    }
}

fn count(len: usize, segment_size: Option<usize>) -> u64 {
    segment_size.map_or(1, |size| len.div_ceil(size.max(1))) as u64
}

/// What became of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It left, or was dropped and counted, as on any network.
    Done,
    /// The way to the peer does not take several datagrams in one send: nothing was sent, and from now on
    /// [`DatagramLink::max_segments`] is 1.
    NotSegmented,
}

/// A place where UDP datagrams of RoCEv2 are sent and received.
pub trait DatagramLink: Send {
    /// Its address and port.
    fn local(&self) -> SocketAddr;

    /// Datagrams that one send may have now.
    fn max_segments(&self) -> usize;

    /// Whether packets to this peer need an ICRC now.
    fn icrc(&self, _to: IpAddr) -> Icrc {
        Icrc::Kept
    }

    /// Sends datagrams. What cannot be passed on in bounded time is dropped and counted.
    ///
    /// # Errors
    /// [`LinkError::Io`] if the link is broken for good.
    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<Delivery, LinkError>;

    /// Room of [`MAX_BATCH`] bytes in which datagrams without ICRCs ([`Icrc::LeftOut`]) can be written that
    /// [`send_placed`](Self::send_placed) sends, so that they are not copied again; `None` if the link has none, or not now. What is
    /// read back of it may be something else than was written.
    fn room(&mut self) -> Option<&mut [u8]> {
        None
    }

    /// Sends what was written at the beginning of the last [`room`](Self::room).
    fn send_placed(&mut self, _placed: Placed) {}

    /// Gives what has come to `take`, and returns whether there was anything. Never waits.
    ///
    /// # Errors
    /// [`LinkError::Io`] if the link is broken for good.
    fn recv(&mut self, take: &mut dyn FnMut(Incoming<'_>)) -> Result<bool, LinkError>;

    /// Becomes readable when something may be there; of some links only after [`arm`](Self::arm).
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// Announces that nobody looks from now on until the descriptor is readable. The next `recv` ends it.
    fn arm(&mut self) {}

    /// A peer that is known to be gone for good, once.
    fn poll_gone(&mut self) -> Option<IpAddr> {
        None
    }

    /// When `recv` must be called though nothing is readable; `None` if never.
    fn next_event(&self) -> Option<Instant> {
        None
    }

    /// What has passed so far, in datagrams.
    fn stats(&self) -> LinkStats;
}

/// A UDP socket on port 4791.
#[derive(Debug)]
pub struct UdpLink {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    buffers: Box<[u8]>,
    /// Room for the control messages of one receive call: length of a run, and ECN bits.
    control: Vec<u8>,
    /// Whether the last receive call filled more than one buffer.
    crowded: bool,
    stats: LinkStats,
}

impl UdpLink {
    /// Takes port 4791 of an address of this machine.
    ///
    /// # Errors
    /// [`LinkError::PortTaken`] if another program, or the kernel's own RoCE, has it; [`LinkError::NotLocal`] if the address is not
    /// one of this machine; [`LinkError::Io`] for what else the system says.
    pub fn bind(address: IpAddr) -> Result<Self, LinkError> {
        let local = SocketAddr::new(address, ROCE_PORT);
        if address.is_unspecified() || address.is_multicast() {
            return Err(LinkError::NotLocal { address });
        }
        let socket = UdpSocket::bind(local).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => LinkError::PortTaken { address, by: owner::of_udp_port(local) },
            io::ErrorKind::AddrNotAvailable => LinkError::NotLocal { address },
            _ => LinkError::io(format!("bind a UDP socket to {local}"))(error),
        })?;
        Self::new(socket, local).map_err(LinkError::io("set up a UDP socket"))
    }

    /// Takes an address for a caller of `peer`: of a peer on this machine a loopback address that no other program uses, else
    /// that from which packets to the peer leave.
    ///
    /// # Errors
    /// As [`UdpLink::bind`]; [`LinkError::Io`] too if there is no route to the peer.
    pub fn for_peer(peer: IpAddr) -> Result<Self, LinkError> {
        let routed = Route::to(peer)?.local;
        if !peer.is_loopback() && routed != peer {
            return Self::bind(routed);
        }
        if peer.is_ipv6() {
            // There is one loopback address only; another address of this machine serves a caller of a device there.
            return Self::bind(if peer.is_loopback() { routed } else { Ipv6Addr::LOCALHOST.into() });
        }
        let mut tries = 0;
        loop {
            // Not 127.0.0.0/16, where users and devices choose addresses.
            let host = fastrand::u32(0x7f01_0001..0x7fff_fffe);
            tries += 1;
            match Self::bind(Ipv4Addr::from_bits(host).into()) {
                Err(LinkError::PortTaken { .. }) if tries < ADDRESS_TRIES => {}
                other => return other,
            }
        }
    }

    fn new(socket: UdpSocket, local: SocketAddr) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // Packets that are too long for the way are refused here, as soon as the kernel knows.
        if local.is_ipv4() {
            sockopt::set_ip_mtu_discover(&socket, sockopt::Ipv4PathMtuDiscovery::DO)?;
        } else {
            sockopt::set_ipv6_mtu_discover(&socket, sockopt::Ipv6PathMtuDiscovery::DO)?;
        }
        // quinn-udp requests these too, which are of no use here: the address is known. With all that it requests, its buffer for
        // control messages is too short for the last one, the ECN bits.
        switch_off(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS)?;
        match local {
            SocketAddr::V4(_) => switch_off(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO)?,
            SocketAddr::V6(_) => switch_off(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)?,
        }
        // Larger ones only mean fewer losses.
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER));
        let _ = sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER);
        let buffers = vec![0; BUFFERS * BUFFER].into_boxed_slice();
        let control = cmsg_space!(libc::c_int, libc::c_int);
        Ok(Self { socket, state, local, buffers, control, crowded: false, stats: LinkStats::default() })
    }

    /// Bytes that the kernel stores for this socket, its own overhead included.
    ///
    /// # Errors
    /// The error of the system.
    pub fn receive_buffer(&self) -> io::Result<usize> {
        Ok(sockopt::socket_recv_buffer_size(&self.socket)?)
    }
}

/// Sets an option of the socket to 0. For those that neither the standard library nor `rustix` has.
#[allow(unsafe_code)]
fn switch_off(socket: &UdpSocket, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    let value: libc::c_int = 0;
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open while `socket` is borrowed, and the kernel reads `length` bytes of `value`.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Why a receive call has received nothing: an error, if the socket is broken.
fn received_nothing(error: io::Error) -> Result<(), LinkError> {
    // A peer that is not there is no fault of this socket; an interrupted call is repeated by the next look.
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(LinkError::io("receive UDP datagrams")(error)),
    }
}

impl LinkStats {
    /// Counts what one buffer has received, and describes it.
    fn incoming<'a>(&mut self, from: SocketAddr, ecn: u8, stride: usize, bytes: &'a [u8]) -> Incoming<'a> {
        let stride = stride.max(1);
        self.rx_frames += bytes.len().div_ceil(stride) as u64;
        self.rx_bytes += bytes.len() as u64;
        Incoming { from, ecn, bytes: bytes.into(), stride }
    }
}

impl UdpLink {
    /// Receives into one buffer. What came alone is likely to be followed by one alone, and asking for more costs another look
    /// into the queue. So does asking by `quinn-udp`, which clears and fills headers for many buffers: most looks of a side that
    /// polls find nothing.
    fn recv_one(&mut self, take: &mut dyn FnMut(Incoming<'_>)) -> Result<bool, LinkError> {
        let Self { socket, buffers, control, .. } = self;
        let mut slice = [IoSliceMut::new(&mut buffers[..BUFFER])];
        let received =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slice, Some(control), MsgFlags::MSG_DONTWAIT);
        let message = match received {
            Ok(message) => message,
            Err(errno) => return received_nothing(errno.into()).map(|()| false),
        };
        let Some(from) = message.address.as_ref().and_then(socket_address) else { return Ok(false) };
        let len = message.bytes;
        let (mut stride, mut ecn) = (len, 0);
        for said in message.cmsgs().into_iter().flatten() {
            match said {
                ControlMessageOwned::UdpGroSegments(size) => stride = size as usize,
                ControlMessageOwned::Ipv4Tos(tos) => ecn = tos & ECN,
                ControlMessageOwned::Ipv6TClass(class) => ecn = class as u8 & ECN,
                _ => {}
            }
        }
        self.crowded = len > stride;
        take(self.stats.incoming(from, ecn, stride, &self.buffers[..len]));
        Ok(true)
    }
}

/// The address in what the kernel says of a sender.
fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}

impl DatagramLink for UdpLink {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<Delivery, LinkError> {
        let Outgoing { to, ecn, bytes, segment_size } = outgoing;
        // Nothing marks packets on the loopback interface, and a control message for it costs time.
        let ecn = if to.is_loopback() { 0 } else { ecn };
        if segment_size.is_none()
            && ecn == 0
            && let Ok(length) = self.socket.send_to(bytes, (to, ROCE_PORT))
        {
            self.stats.sent(length);
            return Ok(Delivery::Done);
        }
        let transmit = quinn_udp::Transmit {
            destination: SocketAddr::new(to, ROCE_PORT),
            ecn: EcnCodepoint::from_bits(ecn),
            contents: bytes,
            segment_size,
            src_ip: None,
        };
        let socket = UdpSockRef::from(&self.socket);
        let sent = match self.state.try_send(socket, &transmit) {
            Err(error) if crate::is_full(&error) => {
                send_patiently(|| self.state.try_send((&self.socket).into(), &transmit).map(|()| bytes.len()))
                    .map(|_| ())
            }
            other => other,
        };
        let count = outgoing.count();
        let errno = match sent {
            Ok(()) => {
                self.stats.tx_frames += count;
                self.stats.tx_bytes += bytes.len() as u64;
                return Ok(Delivery::Done);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.stats.tx_dropped += count;
                return Ok(Delivery::Done);
            }
            Err(error) => error.raw_os_error().map(Errno::from_raw_os_error).ok_or(error),
        };
        match errno {
            Ok(Errno::IO | Errno::INVAL) if segment_size.is_some() && self.max_segments() == 1 => {
                Ok(Delivery::NotSegmented)
            }
            // Too long for the way, as the kernel has learnt; or no way, for now, or by a rule of a firewall.
            Ok(Errno::MSGSIZE) => {
                self.stats.tx_dropped += count;
                Ok(Delivery::Done)
            }
            Ok(
                Errno::NETUNREACH
                | Errno::HOSTUNREACH
                | Errno::NETDOWN
                | Errno::PERM
                | Errno::ACCESS
                | Errno::CONNREFUSED,
            ) => {
                self.stats.tx_no_carrier += count;
                Ok(Delivery::Done)
            }
            Ok(errno) => Err(LinkError::io(format!("send a UDP datagram to {to}"))(errno.into())),
            Err(error) => Err(LinkError::io(format!("send a UDP datagram to {to}"))(error)),
        }
    }

    fn recv(&mut self, take: &mut dyn FnMut(Incoming<'_>)) -> Result<bool, LinkError> {
        if !self.crowded {
            return self.recv_one(take);
        }
        let mut chunks = self.buffers.chunks_exact_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let mut metas = [RecvMeta::default(); BUFFERS];
        let socket = UdpSockRef::from(&self.socket);
        let count = match self.state.recv(socket, &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) => return received_nothing(error).map(|()| false),
        };
        self.crowded = count > 1;
        for (meta, bytes) in metas[..count].iter().zip(self.buffers.chunks_exact(BUFFER)) {
            let ecn = meta.ecn.map_or(0, |ecn| ecn as u8);
            take(self.stats.incoming(meta.addr, ecn, meta.stride, &bytes[..meta.len]));
        }
        Ok(count > 0)
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn stats(&self) -> LinkStats {
        self.stats
    }
}

impl<L: DatagramLink + ?Sized> DatagramLink for Box<L> {
    fn local(&self) -> SocketAddr {
        (**self).local()
    }
    fn max_segments(&self) -> usize {
        (**self).max_segments()
    }
    fn icrc(&self, to: IpAddr) -> Icrc {
        (**self).icrc(to)
    }
    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<Delivery, LinkError> {
        (**self).send(outgoing)
    }
    fn room(&mut self) -> Option<&mut [u8]> {
        (**self).room()
    }
    fn send_placed(&mut self, placed: Placed) {
        (**self).send_placed(placed);
    }
    fn recv(&mut self, take: &mut dyn FnMut(Incoming<'_>)) -> Result<bool, LinkError> {
        (**self).recv(take)
    }
    fn poll_fd(&self) -> BorrowedFd<'_> {
        (**self).poll_fd()
    }
    fn arm(&mut self) {
        (**self).arm();
    }
    fn poll_gone(&mut self) -> Option<IpAddr> {
        (**self).poll_gone()
    }
    fn next_event(&self) -> Option<Instant> {
        (**self).next_event()
    }
    fn stats(&self) -> LinkStats {
        (**self).stats()
    }
}

/// How this machine reaches a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The address from which packets to it leave.
    pub local: IpAddr,
    /// Longest IP packet on the way, in bytes, as far as the kernel knows.
    pub ip_mtu: usize,
}

impl Route {
    /// Asks the kernel; nothing is sent.
    ///
    /// # Errors
    /// [`LinkError::Io`] if there is no route.
    pub fn to(peer: IpAddr) -> Result<Self, LinkError> {
        let ask = || -> io::Result<Self> {
            let any: IpAddr = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect((peer, ROCE_PORT))?;
            let ip_mtu = if peer.is_ipv4() { sockopt::ip_mtu(&socket)? } else { sockopt::ipv6_mtu(&socket)? };
            Ok(Self { local: socket.local_addr()?.ip(), ip_mtu: ip_mtu as usize })
        };
        ask().map_err(LinkError::io(format!("find a route to {peer}")))
    }
}
