// SPDX-License-Identifier: Apache-2.0
//! A TAP device: a link into the kernel's own network stack. Needs root (`CAP_NET_ADMIN`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Instant;

use rustix::ioctl::{Opcode, Updater, ioctl};

use crate::{Link, LinkError, LinkStats, check_length, recv_until, send_patiently};

/// `ioctl` numbers and flags of `linux/if_tun.h`, `linux/sockios.h` and `linux/if.h`.
const TUNSETIFF: Opcode = 0x4004_54ca;
const SIOCGIFFLAGS: Opcode = 0x8913;
const SIOCSIFFLAGS: Opcode = 0x8914;
const SIOCSIFMTU: Opcode = 0x8922;
const SIOCSIFHWADDR: Opcode = 0x8924;
const IFF_TAP: u16 = 0x0002;
const IFF_NO_PI: u16 = 0x1000;
const IFF_UP: u16 = 0x0001;
/// Hardware type of Ethernet (`linux/if_arp.h`): the family of an address.
const ARPHRD_ETHER: u16 = 1;
/// Longest interface name, in bytes, its final zero included (`IFNAMSIZ`).
const NAME_SIZE: usize = 16;

/// `struct ifreq`: the union holds flags, an MTU or an address (`struct sockaddr`), from its first byte on.
#[repr(C)]
#[derive(Clone, Copy)]
struct InterfaceRequest {
    name: [u8; NAME_SIZE],
    value: [u8; 24],
}

impl InterfaceRequest {
    fn flags(&self) -> u16 {
        u16::from_ne_bytes([self.value[0], self.value[1]])
    }

    fn with<const N: usize>(mut self, value: [u8; N]) -> Self {
        self.value[..N].copy_from_slice(&value);
        self
    }
}

/// A TAP device that exists as long as this value does.
#[derive(Debug)]
pub struct Tap {
    file: File,
    name: [u8; NAME_SIZE],
    stats: LinkStats,
}

impl Tap {
    /// Makes the device `name` and brings it up. It gets no address: that is the administrator's to choose.
    ///
    /// # Errors
    /// [`LinkError::BadPath`] if the name is no interface name; [`LinkError::Tap`] if the kernel refuses.
    pub fn open(name: &str) -> Result<Self, LinkError> {
        let mut tap = Self::make(name)?;
        tap.bring_up()?;
        Ok(tap)
    }

    /// The same with a MAC address, from which all frames of the kernel are.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_mac(name: &str, mac: [u8; 6]) -> Result<Self, LinkError> {
        let mut tap = Self::make(name)?;
        let [family_low, family_high] = ARPHRD_ETHER.to_ne_bytes();
        let [a, b, c, d, e, f] = mac;
        tap.ioctl::<SIOCSIFHWADDR, _>("set the MAC address", [family_low, family_high, a, b, c, d, e, f])?;
        tap.bring_up()?;
        Ok(tap)
    }

    fn make(name: &str) -> Result<Self, LinkError> {
        if name.is_empty() || name.len() >= NAME_SIZE || name.contains('/') {
            return Err(LinkError::BadPath { path: name.into(), why: "interface names have 1 to 15 characters" });
        }
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("open flags fit an int"))
            .open("/dev/net/tun")
            .map_err(LinkError::tap("open /dev/net/tun"))?;
        let mut request = InterfaceRequest { name: [0; NAME_SIZE], value: [0; 24] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        request = request.with((IFF_TAP | IFF_NO_PI).to_ne_bytes());
        interface_ioctl::<TUNSETIFF>(&file, &mut request)
            .map_err(LinkError::tap(format!("make the TAP device {name}")))?;

        Ok(Self { file, name: request.name, stats: LinkStats::default() })
    }

    fn bring_up(&mut self) -> Result<(), LinkError> {
        let flags = self.ioctl::<SIOCGIFFLAGS, _>("read the flags", [])?.flags() | IFF_UP;
        self.ioctl::<SIOCSIFFLAGS, _>("set the flags", flags.to_ne_bytes())?;
        Ok(())
    }

    /// Says how long packets of the kernel may be.
    ///
    /// # Errors
    /// [`LinkError::Tap`] if the kernel refuses.
    pub fn set_mtu(&mut self, mtu: u16) -> Result<(), LinkError> {
        self.ioctl::<SIOCSIFMTU, _>("set the MTU", i32::from(mtu).to_ne_bytes())?;
        Ok(())
    }

    /// An ioctl about the interface, by any socket: its request as the kernel leaves it.
    fn ioctl<const OPCODE: Opcode, const N: usize>(
        &self,
        what: &str,
        value: [u8; N],
    ) -> Result<InterfaceRequest, LinkError> {
        let mut request = InterfaceRequest { name: self.name, value: [0; 24] }.with(value);
        std::net::UdpSocket::bind("0.0.0.0:0")
            .and_then(|socket| interface_ioctl::<OPCODE>(&socket, &mut request))
            .map_err(LinkError::tap(format!("{what} of the TAP device")))?;
        Ok(request)
    }
}

#[allow(unsafe_code)]
fn interface_ioctl<const OPCODE: Opcode>(fd: impl AsFd, request: &mut InterfaceRequest) -> io::Result<()> {
    // SAFETY: every OPCODE used here takes a pointer to one `struct ifreq`, which InterfaceRequest lays out in full
    // (40 bytes), and neither keeps the pointer nor writes beyond it.
    unsafe { ioctl(fd, Updater::<OPCODE, InterfaceRequest>::new(request)) }.map_err(Into::into)
}

impl Link for Tap {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        check_length(frame)?;
        match send_patiently(|| rustix::io::write(&self.file, frame).map_err(Into::into)) {
            Ok(_) => {
                self.stats.sent(frame.len());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.stats.tx_dropped += 1,
            // The interface was taken down (EIO), or its MTU is smaller than this frame (EINVAL).
            Err(error) if matches!(error.raw_os_error(), Some(5 | 22)) => self.stats.tx_no_carrier += 1,
            Err(error) => return Err(LinkError::io("send a frame on the TAP device")(error)),
        }
        Ok(())
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        let length = recv_until(&self.file, deadline, |file| match rustix::io::read(file, &mut *buffer) {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::IO) => Ok(None),
            Err(errno) => Err(LinkError::io("receive a frame from the TAP device")(errno.into())),
        })?;
        if let Some(length) = length {
            self.stats.received(length);
        }
        Ok(length)
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn stats(&self) -> LinkStats {
        self.stats
    }
}
