// SPDX-License-Identifier: Apache-2.0
//! The identification of an IPv4 packet whose header is not seen, from its ICRC.

use super::LEN;

/// Lengths whose vectors are kept.
const KEPT: usize = 32;
/// Bytes of IPv4 header, UDP header and BTH behind the identification; all of them are covered.
const COVERED_BEHIND: usize = 14 + 8 + 12;
const BTH: usize = 12;

/// How each bit of the identification changes the ICRC of packets of one length, in echelon form: each vector alone has its
/// highest bit.
type Vectors = [(u32, u16); 16];

/// Finds the identification that makes an ICRC right.
///
/// A CRC is linear: the ICRC under some identification and that under 0 differ by a sum of 16 vectors, one for each bit that is
/// set, which depend on the packet's length alone. Of the 2^32 differences 2^16 are such sums, each of another
/// identification: so a damaged packet has a chance of 2^-16 to look like one with another identification.
#[derive(Debug)]
pub struct Identifications {
    kept: [Option<(usize, Vectors)>; KEPT],
}

impl Default for Identifications {
    fn default() -> Self {
        Self { kept: [None; KEPT] }
    }
}

impl Identifications {
    /// The identification under which a packet has the ICRC `got`, that has `zero` under identification 0; `transport_len` is
    /// its length from the BTH to the padding. `None` if there is none: then something else of the packet differs.
    pub fn find(&mut self, transport_len: usize, zero: [u8; LEN], got: [u8; LEN]) -> Option<u16> {
        let mut left = u32::from_le_bytes(zero) ^ u32::from_le_bytes(got);
        if left == 0 {
            return Some(0);
        }
        let place = &mut self.kept[transport_len / 4 % KEPT];
        if place.as_ref().is_none_or(|(len, _)| *len != transport_len) {
            *place = Some((transport_len, vectors(transport_len)));
        }
        let (_, vectors) = place.as_ref()?;
        let mut identification = 0;
        for (vector, bits) in vectors {
            if left & highest(*vector) != 0 {
                left ^= vector;
                identification ^= bits;
            }
        }
        (left == 0).then_some(identification)
    }
}

fn highest(vector: u32) -> u32 {
    1 << (31 - vector.leading_zeros())
}

fn vectors(transport_len: usize) -> Vectors {
    let behind = (COVERED_BEHIND + transport_len.saturating_sub(BTH)) as u64;
    let zero = crc32fast::hash(&[0, 0]);
    let mut all: Vectors = core::array::from_fn(|bit| {
        let bits = 1u16 << bit;
        // What this bit changes, moved on over what is behind it.
        let mut change = crc32fast::Hasher::new_with_initial_len(crc32fast::hash(&bits.to_be_bytes()) ^ zero, 2);
        change.combine(&crc32fast::Hasher::new_with_initial_len(0, behind));
        (change.finalize(), bits)
    });
    // A burst of up to 32 bits always changes the CRC, so no sum of them is 0 and each has a highest bit.
    for at in 0..all.len() {
        let (vector, bits) = all[at];
        let top = highest(vector);
        for (other, other_bits) in
            all.iter_mut().enumerate().filter(|(i, _)| *i != at).map(|(_, v)| (&mut v.0, &mut v.1))
        {
            if *other & top != 0 {
                *other ^= vector;
                *other_bits ^= bits;
            }
        }
    }
    all
}
