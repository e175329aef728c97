// SPDX-License-Identifier: Apache-2.0
//! What the links by packet and AF_XDP sockets have in common: network interfaces, and the host on each of their networks that such
//! a link is for.

use std::fmt;
use std::io;
use std::ops::AddAssign;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::str::FromStr;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice};

use crate::{LinkError, LinkStats};

/// `ioctl` numbers of `linux/sockios.h`.
const SIOCGIFMTU: Opcode = 0x8921;
const SIOCGIFHWADDR: Opcode = 0x8927;
const SIOCETHTOOL: Opcode = 0x8946;
/// A command of `linux/ethtool.h`.
const GET_CHANNELS: u32 = 0x3c;
/// Longest interface name, in bytes, its final zero included (`IFNAMSIZ`).
const NAME_SIZE: usize = 16;
/// Ethernet, among the kinds of interfaces (`ARPHRD_ETHER`).
const ETHERNET: u16 = 1;

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

/// `struct ifreq` where the union holds such a value; not shorter than the 40 bytes of the kernel's.
#[repr(C)]
struct InterfaceRequest<V> {
    name: [u8; NAME_SIZE],
    value: V,
    rest: [u8; 20],
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
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

/// What the kernel says of an interface.
fn ask<const OPCODE: Opcode>(socket: impl AsFd, interface: InterfaceName) -> io::Result<i32> {
    let mut request = InterfaceRequest { name: interface.0, value: 0, rest: [0; 20] };
    // SAFETY: every OPCODE used here takes a pointer to one `struct ifreq`, which InterfaceRequest lays out in full, and neither keeps
    // the pointer nor writes beyond it.
    unsafe { ioctl(socket, Updater::<OPCODE, InterfaceRequest<i32>>::new(&mut request)) }?;
    Ok(request.value)
}

/// How many receive queues an interface has; one, if it knows nothing of queues.
pub(crate) fn queues(interface: InterfaceName) -> io::Result<u32> {
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    let mut request = InterfaceRequest { name: interface.0, value: &raw mut channels, rest: [0; 20] };
    // SAFETY: this OPCODE takes a pointer to one `struct ifreq`, which InterfaceRequest lays out in full, and writes one
    // `struct ethtool_channels` where its pointer points, as the command says; it keeps neither.
    match unsafe { ioctl(&socket, Updater::<SIOCETHTOOL, InterfaceRequest<*mut Channels>>::new(&mut request)) } {
        Ok(()) => Ok(channels.receive.saturating_add(channels.combined).max(1)),
        Err(Errno::OPNOTSUPP) => Ok(1),
        Err(errno) => Err(errno.into()),
    }
}

/// Sets an option of a socket that `rustix` does not have.
///
/// # Errors
/// The error of the system.
pub(crate) fn set_option<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the descriptor is open, and the kernel reads `length` bytes of `value`; of a filter also the program that it names, which
    // is there until this returns. Of memory that it names the kernel pins the pages, so that what it does there hits nothing else if
    // this process unmaps them.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What consists of numbers alone.
///
/// # Safety
/// Any bits must be a value of the type.
pub(crate) unsafe trait Numbers: Copy {}
// SAFETY: all fields of these are numbers.
unsafe impl Numbers for u64 {}
// SAFETY: the same.
unsafe impl Numbers for libc::xdp_desc {}
// SAFETY: the same.
unsafe impl Numbers for libc::xdp_mmap_offsets {}
// SAFETY: the same.
unsafe impl Numbers for libc::xdp_statistics {}
// SAFETY: the same.
unsafe impl Numbers for libc::tpacket_stats {}

/// Reads an option of a socket that `rustix` does not have into `value`, and returns how many bytes the kernel has for it.
///
/// # Errors
/// The error of the system.
pub(crate) fn get_option<T: Numbers>(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &mut T,
) -> io::Result<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_mut(value).cast();
    // SAFETY: the descriptor is open, and the kernel writes `length` bytes of `value` at most, of which any bits are a value.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, value, &raw mut length) };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

/// Asks the interface of a packet socket for the frames to one Ethernet address more, and no longer for those to the old one.
///
/// # Errors
/// The error of the system. It may be tried again.
pub(crate) fn change_membership(socket: &OwnedFd, index: u32, old: Option<[u8; 6]>, new: [u8; 6]) -> io::Result<()> {
    let membership = |[a, b, c, d, e, f]: [u8; 6]| libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_UNICAST as u16,
        mr_alen: 6,
        mr_address: [a, b, c, d, e, f, 0, 0],
    };
    if let Some(old) = old {
        set_option(socket, libc::SOL_PACKET, libc::PACKET_DROP_MEMBERSHIP, &membership(old))?;
    }
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership(new))
}

/// The Ethernet address that a frame is sent from, if it is another than the one before.
pub(crate) fn new_source(frame: &[u8], before: Option<[u8; 6]>) -> Option<[u8; 6]> {
    let source = frame.get(6..12)?.try_into().ok()?;
    (before != Some(source)).then_some(source)
}

/// Whether the frames to a new address come from now on. Of an interface that is unplugged they do when it is tried again, with
/// the next frame.
///
/// # Errors
/// [`LinkError::Io`] if they never will.
pub(crate) fn learned(result: io::Result<()>) -> Result<(), LinkError> {
    match result {
        Err(error) if !is_unplugged(&error) => Err(LinkError::io("ask an interface for the frames of a host")(error)),
        _ => Ok(()),
    }
}

/// So many frames, of so many bytes together.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    frames: u64,
    bytes: u64,
}

impl Tally {
    /// One frame.
    pub(crate) fn of(frame: &[u8]) -> Self {
        Self { frames: 1, bytes: frame.len() as u64 }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// Counts frames by what has become of them.
///
/// # Errors
/// [`LinkError::Io`] if the link is broken for good.
pub(crate) fn account(stats: &mut LinkStats, tally: Tally, result: io::Result<()>) -> Result<(), LinkError> {
    match result {
        Ok(()) => {
            stats.tx_frames += tally.frames;
            stats.tx_bytes += tally.bytes;
        }
        // Full, or longer than the interface sends.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock || is(&error, Errno::MSGSIZE) => {
            stats.tx_dropped += tally.frames;
        }
        Err(error) if is_unplugged(&error) => stats.tx_no_carrier += tally.frames,
        Err(error) => return Err(LinkError::io("send a frame on an interface")(error)),
    }
    Ok(())
}

/// What to do if there is no such interface.
pub(crate) const NO_SUCH_INTERFACE: &str = "name an interface that 'ip link' shows";
/// What to do if it has no Ethernet frames.
pub(crate) const NOT_ETHERNET: &str = "name an Ethernet interface, or reach the device by --link udp";
/// What to do if this user may not.
pub(crate) const PRIVILEGE: &str = "run it as root, or give the program the capabilities with setcap(8)";

/// What to do about an interface that a packet socket cannot use, in one line.
pub(crate) fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => PRIVILEGE,
        io::ErrorKind::InvalidInput => NOT_ETHERNET,
        _ if is(error, Errno::NODEV) => NO_SUCH_INTERFACE,
        _ => "see with 'ip link' whether the interface is there and works",
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}

/// An interface that is down or removed is an unplugged cable.
pub(crate) fn is_unplugged(error: &io::Error) -> bool {
    [Errno::NETDOWN, Errno::NXIO, Errno::NODEV, Errno::NETUNREACH].iter().any(|errno| is(error, *errno))
}
