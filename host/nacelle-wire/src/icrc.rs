// SPDX-License-Identifier: Apache-2.0
//! Invariant CRC of RoCEv2 over IPv4 (RoCEv2 annex A17.3.3).
//!
//! CRC-32 of Ethernet over 8 bytes of ones (the place of InfiniBand's LRH), then the packet from its IPv4 header to
//! the padding, with every field that a router may change set to ones: IPv4 type of service, time to live, header
//! checksum; UDP checksum; the byte of the BTH that holds FECN and BECN. Stored least significant byte first.

use crate::{bth::Bth, ipv4::Ipv4Header, udp::UdpHeader};
use zerocopy::IntoBytes;

/// Length of the ICRC in bytes.
pub const LEN: usize = 4;

const IP: usize = 8;
const UDP: usize = IP + Ipv4Header::LEN;
const BTH: usize = UDP + UdpHeader::LEN;
const MASKED: usize = BTH + Bth::LEN;

/// The ICRC of a packet with these headers; `rest` is what lies between BTH and ICRC.
pub fn compute(ip: &Ipv4Header, udp: &UdpHeader, bth: &Bth, rest: &[u8]) -> [u8; LEN] {
    let mut masked = [0xff; MASKED];
    masked[IP..UDP].copy_from_slice(ip.as_bytes());
    masked[UDP..BTH].copy_from_slice(udp.as_bytes());
    masked[BTH..].copy_from_slice(bth.as_bytes());
    masked[IP + 1] = 0xff; // type of service
    masked[IP + 8] = 0xff; // time to live
    masked[IP + 10..IP + 12].fill(0xff); // header checksum
    masked[UDP + 6..UDP + 8].fill(0xff); // checksum
    masked[BTH + 4] = 0xff; // FECN, BECN, reserved
    let mut crc = crc32fast::Hasher::new();
    crc.update(&masked);
    crc.update(rest);
    crc.finalize().to_le_bytes()
}
