// SPDX-License-Identifier: Apache-2.0
//! How a caller and a device begin to share memory: one message each by a socket of the wire's directory. The device's has the
//! descriptors with it.
//!
//! ```text
//! caller:  magic[4] version:u16 icrc:u16 address[16]                             the address that it had, or zeros
//! device:  magic[4] version:u16 icrc:u16 address[16] device[16] memory:u64       and 3 descriptors
//! ```
//!
//! `icrc` is 1 if the ICRCs of packets are kept, else 0: a device keeps them if the caller asks for it, or if it wants them itself.
//! Numbers are in this machine's order: both are on it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use super::channel::{MEMORY, Shared};
use crate::Icrc;

const MAGIC: [u8; 4] = *b"NCsm";
const VERSION: u16 = 3;
const REQUEST: usize = 24;
const OFFER: usize = REQUEST + 16 + 8;

/// Addresses that devices give to callers by shared memory: 0.0.0.0/8, by which no host sends to another (RFC 1122), and the discard
/// prefix 100::/64 (RFC 6666).
pub(super) fn is_given(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[0] == 0,
        IpAddr::V6(ip) => ip.segments()[..4] == [0x100, 0, 0, 0],
    }
}

/// One of them, of the family of a device's.
pub(super) fn given(number: u32, device: IpAddr) -> IpAddr {
    match device {
        IpAddr::V4(_) => Ipv4Addr::from_bits(number & 0xff_ffff).into(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(0x100 << 112 | u128::from(number)).into(),
    }
}

fn put(ip: Option<IpAddr>, into: &mut Vec<u8>) {
    let bytes = match ip {
        Some(IpAddr::V4(ip)) => ip.to_ipv6_mapped().octets(),
        Some(IpAddr::V6(ip)) => ip.octets(),
        None => [0; 16],
    };
    into.extend_from_slice(&bytes);
}

fn get(bytes: &[u8]) -> Option<IpAddr> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    Some(Ipv6Addr::from(bytes).to_canonical()).filter(|ip| !ip.is_unspecified())
}

fn begin(ip: Option<IpAddr>, icrc: Icrc) -> Vec<u8> {
    let mut message = Vec::with_capacity(OFFER);
    message.extend_from_slice(&MAGIC);
    message.extend_from_slice(&VERSION.to_ne_bytes());
    message.extend_from_slice(&u16::from(icrc == Icrc::Kept).to_ne_bytes());
    put(ip, &mut message);
    message
}

fn is_ours(message: &[u8], len: usize) -> bool {
    message.len() == len && message[..4] == MAGIC && message[4..6] == VERSION.to_ne_bytes()
}

fn icrc(message: &[u8]) -> Icrc {
    if message[6..8] == [0, 0] { Icrc::LeftOut } else { Icrc::Kept }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A caller asks: for the address that it had, if it had one.
pub(super) fn ask(socket: impl AsFd, had: Option<IpAddr>, icrc: Icrc) -> io::Result<()> {
    rustix::net::send(socket, &begin(had, icrc), SendFlags::NOSIGNAL)?;
    Ok(())
}

/// What a caller has asked for. `WouldBlock` if it has not yet.
pub(super) fn asked(socket: impl AsFd) -> io::Result<(Option<IpAddr>, Icrc)> {
    let mut message = [0; REQUEST + 1];
    let (bytes, length) = rustix::net::recv(socket, &mut message[..], RecvFlags::DONTWAIT)?;
    let _ = bytes;
    let message = &message[..length.min(message.len())];
    if !is_ours(message, REQUEST) {
        return Err(invalid("it is no request for shared memory of this version"));
    }
    Ok((get(&message[8..24]), icrc(message)))
}

/// The device offers: an address, its own, whether ICRCs are kept, and what is shared.
pub(super) fn offer(socket: impl AsFd, address: IpAddr, device: IpAddr, icrc: Icrc, shared: &Shared) -> io::Result<()> {
    let mut message = begin(Some(address), icrc);
    put(Some(device), &mut message);
    message.extend_from_slice(&(MEMORY as u64).to_ne_bytes());
    let fds: [BorrowedFd<'_>; 3] = [shared.memory.as_fd(), shared.wakes_device.as_fd(), shared.wakes_caller.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(socket, &[IoSlice::new(&message)], &mut control, flags)?;
    Ok(())
}

/// What a device offers.
pub(super) struct Offer {
    /// The caller's address.
    pub(super) address: IpAddr,
    /// The device's.
    pub(super) device: IpAddr,
    pub(super) icrc: Icrc,
    pub(super) shared: Shared,
}

/// What a device has offered. Waits as long as the socket does.
pub(super) fn offered(socket: impl AsFd) -> io::Result<Offer> {
    let mut message = [0; OFFER + 1];
    // Room for more descriptors than come, so that those that are too many are closed here.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut message)];
    let came = rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let fds: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    let message = &message[..came.bytes.min(OFFER + 1)];
    if came.bytes == 0 {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the device has no room for another caller"));
    }
    if !is_ours(message, OFFER) || came.flags.contains(ReturnFlags::CTRUNC) {
        return Err(invalid("the device shares memory in another way: both programs must be of one version"));
    }
    let size = u64::from_ne_bytes(message[40..48].try_into().map_err(|_| invalid("short"))?);
    let addresses = get(&message[8..24]).zip(get(&message[24..40]));
    match (addresses, <[OwnedFd; 3]>::try_from(fds)) {
        (Some((address, device)), Ok([memory, wakes_device, wakes_caller]))
            if size == MEMORY as u64 && is_given(address) && address.is_ipv4() == device.is_ipv4() =>
        {
            let shared = Shared { memory, wakes_device, wakes_caller };
            Ok(Offer { address, device, icrc: icrc(message), shared })
        }
        _ => Err(invalid("the device's offer of shared memory makes no sense")),
    }
}
