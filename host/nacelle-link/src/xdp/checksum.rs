// SPDX-License-Identifier: Apache-2.0
//! UDP checksums that the kernel has left to an interface.
//!
//! A host behind a veth pair sends UDP datagrams with the sum of the pseudo header in the place of the checksum, for an interface
//! that finishes it, and there is none. XDP does not say so. A finished checksum has this value once in 65 536 datagrams, too;
//! nothing is lost then, since the ICRC covers what the checksum does.

const ETHERNET: usize = 14;
const UDP: u8 = 17;

/// Leaves a frame without a UDP checksum (0) if its checksum was not finished.
pub(super) fn settle(frame: &mut [u8]) {
    if let Some(at) = unfinished(frame) {
        frame[at..at + 2].fill(0);
    }
}

/// Where the frame has an unfinished UDP checksum.
fn unfinished(frame: &[u8]) -> Option<usize> {
    let packet = frame.get(ETHERNET..)?;
    let half = |at: usize| Some(u32::from(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?])));
    let is_udp = frame[12..14] == [8, 0] && packet.first()? >> 4 == 4 && *packet.get(9)? == UDP;
    // A later fragment has no UDP header.
    if !is_udp || half(6)? & 0x1fff != 0 {
        return None;
    }
    let header = usize::from(packet[0] & 15) * 4;
    let addresses = half(12)? + half(14)? + half(16)? + half(18)?;
    let sum = addresses + u32::from(UDP) + half(header + 4)?;
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    (half(header + 6)? == folded).then_some(ETHERNET + header + 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram of 2 bytes from 10.99.0.1 to 10.99.0.2, with this checksum.
    fn datagram(checksum: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend_from_slice(&[0x45, 0, 0, 30, 0, 7, 0x40, 0, 64, 17, 0, 0, 10, 99, 0, 1, 10, 99, 0, 2]);
        frame.extend_from_slice(&[0x12, 0xb7, 0x12, 0xb7, 0, 10]);
        frame.extend_from_slice(&checksum.to_be_bytes());
        frame.extend_from_slice(&[0xab, 0xcd]);
        frame
    }

    /// 0a63 + 0001 + 0a63 + 0002 + 0011 (UDP) + 000a (its length).
    const PSEUDO_HEADER: u16 = 0x14e4;

    #[test]
    fn an_unfinished_checksum_becomes_none() {
        let mut frame = datagram(PSEUDO_HEADER);
        settle(&mut frame);
        assert_eq!(frame, datagram(0));
    }

    #[test]
    fn all_else_stays() {
        let mut later_fragment = datagram(PSEUDO_HEADER);
        later_fragment[21] = 1;
        let mut tcp = datagram(PSEUDO_HEADER);
        tcp[23] = 6;
        let mut arp = datagram(PSEUDO_HEADER);
        arp[13] = 6;
        for frame in [datagram(0x1234), datagram(0), later_fragment, tcp, arp] {
            let mut settled = frame.clone();
            settle(&mut settled);
            assert_eq!(settled, frame);
        }
    }

    #[test]
    fn no_length_is_too_short() {
        let mut frame = datagram(PSEUDO_HEADER);
        frame[14] = 0x4f; // options that are not there
        for length in 0..frame.len() {
            settle(&mut frame[..length]);
        }
    }
}
