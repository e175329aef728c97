// SPDX-License-Identifier: Apache-2.0
//! What keeps from AF_XDP.

use std::io;

use crate::interface::{NO_SUCH_INTERFACE, NOT_ETHERNET, PRIVILEGE};

/// Why an interface cannot be used by an AF_XDP socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum XdpFault {
    /// There is no such interface.
    #[error("there is no such interface")]
    NoSuchInterface,
    /// It has no Ethernet frames.
    #[error("it is no Ethernet interface")]
    NotEthernet,
    /// It is down.
    #[error("it is down")]
    Down,
    /// It has more queues than the link has sockets.
    #[error("it has {count} receive queues, and {most} are the most for a link")]
    Queues {
        /// How many it has.
        count: u32,
        /// The link's bound.
        most: u32,
    },
    /// Frames could be longer than a socket takes.
    #[error("its MTU is {mtu} bytes, and an AF_XDP socket takes IP packets of {longest} bytes at most")]
    Mtu {
        /// The interface's.
        mtu: usize,
        /// The link's.
        longest: usize,
    },
    /// This user may not.
    #[error("permission denied (it needs root, or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF)")]
    Privilege,
    /// The kernel was built without it, or is too old.
    #[error("the kernel has no AF_XDP sockets")]
    NoSockets,
    /// Another XDP program is at the interface.
    #[error("another XDP program is attached to it")]
    ProgramTaken,
    /// Another socket has the queue.
    #[error("another AF_XDP socket has its queue {queue}")]
    QueueTaken {
        /// The queue.
        queue: u32,
    },
    /// The driver does not take the program.
    #[error("its driver takes no XDP program: {source}")]
    Refused {
        /// What the driver said.
        source: io::Error,
    },
    /// This user may not lock so much memory.
    #[error("{bytes} bytes of memory must be locked, which is more than the limit")]
    LockedMemory {
        /// How many.
        bytes: u64,
    },
    /// The operating system refused.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
}

impl XdpFault {
    /// What to do about it, in one line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSuchInterface => NO_SUCH_INTERFACE,
            Self::NotEthernet => NOT_ETHERNET,
            Self::Down => "bring it up: ip link set dev INTERFACE up",
            Self::Queues { .. } => {
                "give it fewer queues: ethtool -L INTERFACE combined 8 (or rx 8), or use packet:INTERFACE (--packet)"
            }
            Self::Mtu { .. } => "set a smaller MTU: ip link set dev INTERFACE mtu 1500, or use --packet",
            Self::Privilege => PRIVILEGE,
            Self::NoSockets => {
                "use packet:INTERFACE (--packet), or a kernel from 5.9 on with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL"
            }
            Self::ProgramTaken => {
                "end the process that has attached it (bpftool net shows it); one without a process goes by \
                 'ip link set dev INTERFACE xdp off'"
            }
            Self::QueueTaken { .. } => "end the other program: one at a time can use AF_XDP on an interface",
            Self::Refused { .. } => {
                "give it, and the other end of a veth pair, an MTU of 1500 and no LRO (ethtool -K INTERFACE lro off), or use \
                 packet:INTERFACE (--packet); no kernel before 5.9 takes one"
            }
            Self::LockedMemory { .. } => "raise the limit (ulimit -l), or give the program CAP_IPC_LOCK",
            Self::System { .. } => "use packet:INTERFACE (--packet), which asks less of the kernel",
        }
    }
}
