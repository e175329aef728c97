// SPDX-License-Identifier: Apache-2.0
//! Plain frames from what the kernel leaves to an interface: checksums, and the segmentation of UDP datagrams (UDP_SEGMENT).

/// Bytes that the kernel puts before each frame (`struct virtio_net_hdr`).
pub(super) const HEADER: usize = 10;
/// In its first byte: the frame has no checksum yet.
const NEEDS_CHECKSUM: u8 = 1;
/// In its second: what the frame is to be cut into. Nothing, or UDP datagrams.
const ONE_FRAME: u8 = 0;
const UDP_DATAGRAMS: u8 = 5;
/// A mark beside that: the segments have ECN.
const ECN: u8 = 0x80;

const ETHERNET: usize = 14;
const UDP: usize = 8;
/// The longest frame that is to be cut.
const LONGEST: usize = ETHERNET + 65_535;

/// What one receive call has given.
#[derive(Debug)]
pub(super) struct Received {
    bytes: Box<[u8]>,
    /// What is left to give.
    left: Left,
}

#[derive(Debug, Clone, Copy)]
enum Left {
    Nothing,
    /// A frame of this many bytes.
    Frame(usize),
    /// UDP datagrams.
    Datagrams {
        /// Bytes of the headers of each.
        headers: usize,
        /// Bytes of payload of each but the last.
        size: usize,
        /// Where the payload of the next begins, and that of the last ends, in the frame.
        next: usize,
        end: usize,
        /// Its number.
        index: u16,
    },
}

impl Default for Received {
    fn default() -> Self {
        Self { bytes: vec![0; HEADER + LONGEST].into_boxed_slice(), left: Left::Nothing }
    }
}

impl Received {
    /// Where the next receive call writes.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// This many bytes were received.
    pub(super) fn take(&mut self, length: usize) {
        self.left = self.look(length.min(self.bytes.len())).unwrap_or(Left::Nothing);
    }

    /// Whether there is another frame.
    pub(super) fn has_more(&self) -> bool {
        !matches!(self.left, Left::Nothing)
    }

    /// What was received; `None` if it is nothing for a host of RoCE.
    fn look(&mut self, length: usize) -> Option<Left> {
        let (header, frame) = self.bytes[..length].split_at_mut_checked(HEADER)?;
        let number = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        if header[0] & NEEDS_CHECKSUM != 0 {
            // UDP has one if it is not zero, and nothing else is received here that the kernel leaves without.
            let at = number(6) + number(8);
            frame.get_mut(at..at + 2)?.fill(0);
        }
        match header[1] & !ECN {
            ONE_FRAME => Some(Left::Frame(frame.len())),
            UDP_DATAGRAMS => {
                let is_ipv4 = frame.get(12..14)? == [8, 0] && frame.get(ETHERNET)? >> 4 == 4;
                let ip = usize::from(frame.get(ETHERNET)? & 15) * 4;
                let (headers, size, end) = (ETHERNET + ip + UDP, number(4), frame.len());
                let is_whole = is_ipv4 && ip >= 20 && size > 0 && headers < end;
                is_whole.then_some(Left::Datagrams { headers, size, next: headers, end, index: 0 })
            }
            _ => None,
        }
    }

    /// Writes the next frame into `buffer`, and returns its length.
    pub(super) fn next(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let frame = &self.bytes[HEADER..];
        match &mut self.left {
            Left::Nothing => None,
            Left::Frame(length) => {
                let length = (*length).min(buffer.len());
                buffer[..length].copy_from_slice(&frame[..length]);
                self.left = Left::Nothing;
                Some(length)
            }
            Left::Datagrams { headers, size, next, end, index } => {
                let (headers, from, number) = (*headers, *next, *index);
                let to = (from + *size).min(*end);
                (*next, *index) = (to, number.wrapping_add(1));
                if to == *end {
                    self.left = Left::Nothing;
                }
                let length = headers + to - from;
                let segment = buffer.get_mut(..length)?;
                segment[..headers].copy_from_slice(&frame[..headers]);
                segment[headers..].copy_from_slice(&frame[from..to]);
                finish(&mut segment[ETHERNET..], headers - ETHERNET - UDP, number);
                Some(length)
            }
        }
    }
}

/// The lengths of a segment, the number of its packet, and the checksum of its IP header, of `ip` bytes; without a UDP checksum.
fn finish(packet: &mut [u8], ip: usize, number: u16) {
    let length = packet.len();
    let put = |packet: &mut [u8], at: usize, value: u16| packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
    let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(number);
    put(packet, 2, length as u16);
    put(packet, 4, identification);
    put(packet, 10, 0);
    let sum: u32 = packet[..ip].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    put(packet, 10, !((folded & 0xffff) + (folded >> 16)) as u16);
    put(packet, ip + 4, (length - ip) as u16);
    put(packet, ip + 6, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel gives for a send of datagrams of `size` bytes.
    fn received(flags: u8, kind: u8, size: u16, payload: usize) -> Received {
        let mut bytes = vec![flags, kind, 42, 0];
        bytes.extend_from_slice(&size.to_ne_bytes());
        bytes.extend_from_slice(&34u16.to_ne_bytes());
        bytes.extend_from_slice(&6u16.to_ne_bytes());
        bytes.extend_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        bytes.extend_from_slice(&[0x45, 2, 0xff, 0xff, 0, 7, 0x40, 0, 64, 17, 0xaa, 0xaa, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend_from_slice(&[0x12, 0xb7, 0x12, 0xb7, 0xff, 0xff, 0xbb, 0xbb]);
        bytes.extend((0..payload).map(|byte| byte as u8));
        let mut received = Received::default();
        received.room()[..bytes.len()].copy_from_slice(&bytes);
        received.take(bytes.len());
        received
    }

    fn frames(mut received: Received) -> Vec<Vec<u8>> {
        let mut buffer = [0; 9234];
        std::iter::from_fn(|| received.next(&mut buffer).map(|length| buffer[..length].to_vec())).collect()
    }

    /// Ones' complement sum of an IP header: all ones, if its checksum is right.
    fn sum(header: &[u8]) -> u32 {
        let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn datagrams_of_one_send_become_frames() {
        let all = frames(received(NEEDS_CHECKSUM, UDP_DATAGRAMS | ECN, 100, 250));
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [142, 142, 92]);
        for (index, frame) in all.iter().enumerate() {
            assert_eq!(sum(&frame[14..34]), 0xffff, "frame {index}");
            assert_eq!(usize::from(u16::from_be_bytes([frame[16], frame[17]])), frame.len() - 14);
            assert_eq!((frame[18], frame[19]), (0, 7 + index as u8));
            assert_eq!(usize::from(u16::from_be_bytes([frame[38], frame[39]])), frame.len() - 34);
            assert_eq!(frame[40..42], [0, 0]);
            assert!(frame[42..].iter().copied().eq((index * 100..).map(|byte| byte as u8).take(frame.len() - 42)));
        }
    }

    #[test]
    fn a_frame_without_a_checksum_gets_none() {
        let plain = frames(received(0, ONE_FRAME, 0, 30));
        assert_eq!((plain.len(), plain[0].len(), &plain[0][40..42]), (1, 72, &[0xbb; 2][..]));
        assert_eq!(frames(received(NEEDS_CHECKSUM, ONE_FRAME, 0, 30))[0][40..42], [0, 0]);
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        for (kind, size, payload) in [(1, 100, 200), (UDP_DATAGRAMS, 0, 200), (UDP_DATAGRAMS, 100, 0), (9, 1, 1)] {
            assert!(frames(received(0, kind, size, payload)).is_empty(), "{kind} {size} {payload}");
        }
        let mut short = Received::default();
        for length in 0..HEADER {
            short.take(length);
            assert_eq!(short.next(&mut [0; 100]), None);
        }
    }
}
