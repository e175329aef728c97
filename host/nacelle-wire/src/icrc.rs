// SPDX-License-Identifier: Apache-2.0
//! Invariant CRC of RoCEv2 (annex A17.3.3), over IPv4 and IPv6.
//!
//! CRC-32 of Ethernet over 8 bytes of ones (the place of InfiniBand's LRH), then the packet from its IP header to the
//! padding, with every field that a router may change set to ones: type of service, time to live and header checksum of
//! IPv4; traffic class, flow label and hop limit of IPv6; UDP checksum; the byte of the BTH that holds FECN and BECN. Stored
//! least significant byte first.
//!
//! A program that sends and receives by a UDP socket does not see the IP header. Over IPv6 it needs nothing of it but the
//! addresses ([`of_datagram`]). Over IPv4 the identification is covered as well: it is what the kernel writes into it, which
//! for Linux is known of what is sent (0 from an unconnected socket that forbids fragmentation, then 1, 2 and so on in the
//! segments of one send with UDP_SEGMENT), but not reported of what is received: [`Identifications`] finds it.

mod identification;

pub use identification::Identifications;

use crate::{
    ParseError,
    bth::Bth,
    ipv4::{Ipv4Header, PROTOCOL_UDP},
    udp::UdpHeader,
};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use zerocopy::{IntoBytes, network_endian::U16};

/// Length of the ICRC in bytes.
pub const LEN: usize = 4;

const IP: usize = 8;
const IPV6_LEN: usize = 40;

/// The ICRC of a packet under these headers; `transport` is all from the BTH to the padding.
///
/// # Panics
///
/// If `transport` is shorter than a BTH.
pub fn over_ipv4(ip: &Ipv4Header, udp: &UdpHeader, transport: &[u8]) -> [u8; LEN] {
    const UDP: usize = IP + Ipv4Header::LEN;
    let mut masked = [0xff; UDP + UdpHeader::LEN + Bth::LEN];
    masked[IP..UDP].copy_from_slice(ip.as_bytes());
    masked[IP + 1] = 0xff; // type of service
    masked[IP + 8] = 0xff; // time to live
    masked[IP + 10..UDP - 8].fill(0xff); // header checksum
    finish(&mut masked, UDP, udp, transport)
}

/// The ICRC of a packet between these addresses, without extension headers of IPv6; `transport` is all from the BTH to the
/// padding.
///
/// # Panics
///
/// If `transport` is shorter than a BTH.
pub fn over_ipv6(src: Ipv6Addr, dst: Ipv6Addr, udp: &UdpHeader, transport: &[u8]) -> [u8; LEN] {
    const UDP: usize = IP + IPV6_LEN;
    let mut masked = [0xff; UDP + UdpHeader::LEN + Bth::LEN];
    masked[IP] = 0x6f; // version 6; traffic class and flow label are ones
    masked[IP + 4..IP + 6].copy_from_slice(udp.length.as_bytes());
    masked[IP + 6] = PROTOCOL_UDP; // next header; the hop limit is ones
    masked[IP + 8..IP + 24].copy_from_slice(&src.octets());
    masked[IP + 24..UDP].copy_from_slice(&dst.octets());
    finish(&mut masked, UDP, udp, transport)
}

/// The ICRC of a UDP datagram that an IP stack sends: without IP options or extension headers, and over IPv4 with don't
/// fragment set and this identification. `transport` is all from the BTH to the padding. `None` if the two addresses are not
/// of one family.
///
/// # Panics
///
/// If `transport` is shorter than a BTH, or longer than a datagram can be.
pub fn of_datagram(src: SocketAddr, dst: SocketAddr, identification: u16, transport: &[u8]) -> Option<[u8; LEN]> {
    let len = UdpHeader::LEN + transport.len() + LEN;
    let udp = UdpHeader {
        src_port: U16::new(src.port()),
        dst_port: U16::new(dst.port()),
        length: U16::new(u16::try_from(len).expect("no datagram is longer")),
        checksum: U16::ZERO,
    };
    match (src.ip(), dst.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut ip = Ipv4Header::new(src, dst, PROTOCOL_UDP);
            ip.identification.set(identification);
            ip.finish(len);
            Some(over_ipv4(&ip, &udp, transport))
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => Some(over_ipv6(src, dst, &udp, transport)),
        _ => None,
    }
}

/// Checks the last 4 bytes of a datagram.
pub fn check_ipv4(ip: &Ipv4Header, udp: &UdpHeader, datagram: &[u8]) -> Result<(), ParseError> {
    let (transport, icrc) = split(datagram)?;
    if over_ipv4(ip, udp, transport) == *icrc { Ok(()) } else { Err(ParseError::Icrc) }
}

/// A datagram's transport packet and its ICRC.
pub fn split(datagram: &[u8]) -> Result<(&[u8], &[u8; LEN]), ParseError> {
    datagram.split_last_chunk().filter(|(transport, _)| transport.len() >= Bth::LEN).ok_or(ParseError::Truncated)
}

/// Puts UDP header and BTH into `masked` from `at` on, and sums up.
fn finish(masked: &mut [u8], at: usize, udp: &UdpHeader, transport: &[u8]) -> [u8; LEN] {
    let (udp_out, bth_out) = masked[at..].split_at_mut(UdpHeader::LEN);
    let (bth, rest) = transport.split_at(Bth::LEN);
    udp_out.copy_from_slice(udp.as_bytes());
    udp_out[6..8].fill(0xff); // checksum
    bth_out.copy_from_slice(bth);
    bth_out[4] = 0xff; // FECN, BECN, reserved
    let mut crc = crc32fast::Hasher::new();
    crc.update(masked);
    crc.update(rest);
    crc.finalize().to_le_bytes()
}
