// SPDX-License-Identifier: Apache-2.0
//! Frames for captures of datagrams, whose headers the kernel writes and removes.

use nacelle_roce::wire::{
    ethernet::{ETHERTYPE_IPV4, EthernetHeader},
    ipv4::{Ipv4Header, PROTOCOL_UDP, checksum},
    udp::{ROCE_PORT, UdpHeader},
};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const ETHERTYPE_IPV6: u16 = 0x86dd;

/// The frame around a datagram to port 4791, with Ethernet addresses of zeros. What the kernel does not report has the usual
/// value: TTL 64, over IPv4 no UDP checksum.
pub(crate) fn frame(from: SocketAddr, to: IpAddr, identification: u16, ecn: u8, datagram: &[u8]) -> Vec<u8> {
    let udp_len = UdpHeader::LEN + datagram.len();
    let mut udp = Vec::with_capacity(udp_len);
    udp.extend_from_slice(&from.port().to_be_bytes());
    udp.extend_from_slice(&ROCE_PORT.to_be_bytes());
    udp.extend_from_slice(&(udp_len as u16).to_be_bytes());
    udp.extend_from_slice(&[0, 0]);
    udp.extend_from_slice(datagram);
    let mut frame = vec![0; EthernetHeader::LEN];
    match (from.ip(), to) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            frame[12..].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
            let mut ip = Ipv4Header::new(src, dst, PROTOCOL_UDP);
            ip.tos = ecn;
            ip.identification.set(identification);
            ip.finish(udp_len);
            frame.extend_from_slice(&ip.to_bytes());
        }
        (src, dst) => {
            frame[12..].copy_from_slice(&ETHERTYPE_IPV6.to_be_bytes());
            let [src, dst] = [src, dst].map(v6);
            let sum = checksum_over_v6(src, dst, &udp);
            udp[6..8].copy_from_slice(&sum.to_be_bytes());
            frame.extend_from_slice(&(6 << 28 | u32::from(ecn) << 20).to_be_bytes());
            frame.extend_from_slice(&(udp_len as u16).to_be_bytes());
            frame.extend_from_slice(&[PROTOCOL_UDP, 64]);
            frame.extend_from_slice(&src.octets());
            frame.extend_from_slice(&dst.octets());
        }
    }
    frame.extend_from_slice(&udp);
    frame
}

const fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The UDP checksum with the pseudo header of RFC 8200, 8.1. A sum of 0 is sent as ones.
fn checksum_over_v6(src: Ipv6Addr, dst: Ipv6Addr, udp: &[u8]) -> u16 {
    let mut all = Vec::with_capacity(40 + udp.len());
    all.extend_from_slice(&src.octets());
    all.extend_from_slice(&dst.octets());
    all.extend_from_slice(&(udp.len() as u32).to_be_bytes());
    all.extend_from_slice(&[0, 0, 0, PROTOCOL_UDP]);
    all.extend_from_slice(udp);
    match checksum(&all) {
        0 => u16::MAX,
        sum => sum,
    }
}
