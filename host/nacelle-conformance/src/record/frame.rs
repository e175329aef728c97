// SPDX-License-Identifier: Apache-2.0
//! Changes to a frame, below what the suite's own builder of packets can say.

use core::net::Ipv4Addr;
use nacelle_wire::{
    ethernet::EthernetHeader,
    icrc,
    ipv4::{Ipv4Header, checksum},
    udp::UdpHeader,
};
use zerocopy::FromBytes;

/// Offsets in a frame.
const IP: usize = EthernetHeader::LEN;
const UDP: usize = IP + Ipv4Header::LEN;
const BTH: usize = UDP + UdpHeader::LEN;

/// One change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    // The base transport header.
    Opcode(u8),
    PadCount(u8),
    Version(u8),
    Flip { byte: usize, mask: u8 },
    PKey(u16),
    DestQp(u32),
    // Layers below.
    EthernetDestination([u8; 6]),
    EthernetSource(u8),
    EtherType(u16),
    IpByte { at: usize, value: u8 },
    IpLength(i16),
    IpChecksum,
    Source(Ipv4Addr),
    Destination(Ipv4Addr),
    UdpLength(i16),
    UdpPort(u16),
    UdpChecksum { right: bool },
    Icrc(u8),
    // What is there of the frame.
    Cut(usize),
    Trailer(usize),
}

/// Applies the changes. Checksums are made right again, but for those that are changed themselves.
pub(super) fn change(frame: &mut Vec<u8>, changes: &[Change]) {
    let end = frame.len() - icrc::LEN;
    for change in changes {
        match *change {
            Change::Opcode(value) => frame[BTH] = value,
            Change::PadCount(value) => frame[BTH + 1] = frame[BTH + 1] & !0x30 | (value & 3) << 4,
            Change::Version(value) => frame[BTH + 1] = frame[BTH + 1] & 0xf0 | value & 0xf,
            Change::Flip { byte, mask } => frame[BTH + byte] ^= mask,
            Change::PKey(value) => frame[BTH + 2..BTH + 4].copy_from_slice(&value.to_be_bytes()),
            Change::DestQp(value) => frame[BTH + 5..BTH + 8].copy_from_slice(&value.to_be_bytes()[1..]),
            Change::EthernetDestination(mac) => frame[..6].copy_from_slice(&mac),
            Change::EthernetSource(value) => frame[11] = value,
            Change::EtherType(value) => frame[12..14].copy_from_slice(&value.to_be_bytes()),
            Change::IpByte { at, value } => frame[IP + at] = value,
            Change::IpLength(by) => add(&mut frame[IP + 2..IP + 4], by),
            Change::Source(ip) => frame[IP + 12..IP + 16].copy_from_slice(&ip.octets()),
            Change::Destination(ip) => frame[IP + 16..IP + 20].copy_from_slice(&ip.octets()),
            Change::UdpLength(by) => add(&mut frame[UDP + 4..UDP + 6], by),
            Change::UdpPort(value) => frame[UDP + 2..UDP + 4].copy_from_slice(&value.to_be_bytes()),
            Change::IpChecksum | Change::UdpChecksum { .. } | Change::Icrc(_) | Change::Cut(_) | Change::Trailer(_) => {
            }
        }
    }
    frame[IP + 10..IP + 12].fill(0);
    let mut sum = checksum(&frame[IP..UDP]);
    if changes.iter().any(|c| matches!(c, Change::IpChecksum)) {
        sum ^= 0x0100;
    }
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    let ip = Ipv4Header::read_from_bytes(&frame[IP..UDP]).expect("it has the length");
    let udp = UdpHeader::read_from_bytes(&frame[UDP..BTH]).expect("it has the length");
    let crc = icrc::over_ipv4(&ip, &udp, &frame[BTH..end]);
    frame[end..].copy_from_slice(&crc);
    for change in changes {
        match *change {
            Change::Icrc(mask) => frame[end] ^= mask,
            Change::UdpChecksum { right } => {
                let sum = udp_checksum(frame) ^ if right { 0 } else { 0x1000 };
                frame[UDP + 6..UDP + 8].copy_from_slice(&sum.to_be_bytes());
            }
            _ => {}
        }
    }
    for change in changes {
        match *change {
            Change::Cut(len) => frame.truncate(len.max(EthernetHeader::LEN)),
            Change::Trailer(len) => frame.extend(std::iter::repeat_n(0xa5, len)),
            _ => {}
        }
    }
}

fn add(field: &mut [u8], by: i16) {
    let value = u16::from_be_bytes([field[0], field[1]]).wrapping_add_signed(by);
    field.copy_from_slice(&value.to_be_bytes());
}

/// The checksum of RFC 768 over the pseudo header and everything behind the IPv4 header.
fn udp_checksum(frame: &[u8]) -> u16 {
    let datagram = &frame[UDP..];
    let mut bytes = frame[IP + 12..IP + 20].to_vec();
    bytes.extend([0, 17]);
    bytes.extend((datagram.len() as u16).to_be_bytes());
    bytes.extend(datagram);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    match checksum(&bytes) {
        0 => 0xffff,
        sum => sum,
    }
}
