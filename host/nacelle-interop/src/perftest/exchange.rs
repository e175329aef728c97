// SPDX-License-Identifier: Apache-2.0
//! The exchange of perftest's two sides over a first connection (`-R`): SENDs in turn, the client first.
//!
//! Version (16 bytes), page and cache line size (4 bytes each), path MTU (2), and then, as often as it pleases, where the
//! test's queue pair and memory are (56 bytes): as data, or merely to meet. Programs that measure a bandwidth exchange five
//! numbers of 8 bytes at the end.

use crate::failure::{Failure, Outcome};
use core::net::Ipv4Addr;

/// Version of perftest's protocol.
pub(crate) const VERSION: &[u8; 16] = b"6.06\0\0\0\0\0\0\0\0\0\0\0\0";
/// Bytes of the longest message.
pub(crate) const LONGEST: usize = 56;

/// Where a side's queue pair and memory are (perftest's `struct pingpong_dest`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dest {
    pub(crate) out_reads: u32,
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    pub(crate) rkey: u32,
    pub(crate) vaddr: u64,
    pub(crate) ip: Option<Ipv4Addr>,
}

impl Dest {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LONGEST);
        for word in [0, self.out_reads, self.qpn, self.psn, self.rkey, 0] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(self.vaddr.to_be_bytes());
        bytes.extend(self.ip.map_or([0; 16], |ip| ip.to_ipv6_mapped().octets()));
        bytes.extend([0; 8]);
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Outcome<Self> {
        let bytes: &[u8; LONGEST] =
            bytes.try_into().map_err(|_| Failure::Wrong(format!("a destination of {} bytes", bytes.len())))?;
        let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        Ok(Self {
            out_reads: word(4),
            qpn: word(8),
            psn: word(12),
            rkey: word(16),
            vaddr: u64::from(word(24)) << 32 | u64::from(word(28)),
            ip: (word(44) != 0).then(|| word(44).into()),
        })
    }

    /// Whether it carries parameters, or only synchronises the two sides.
    pub(crate) fn is_known(&self) -> bool {
        *self != Self::default()
    }
}
