// SPDX-License-Identifier: Apache-2.0
//! Messages of vhost-user, as QEMU's `docs/interop/vhost-user.rst` has them. Numbers are in the byte order of the machine.
//!
//! A message is a [`Header`], then what its request says. Sizes are those of the payload, without the header.

use nacelle_slot::channel::Head;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a payload at most. The longest that is served here has 268.
pub const MAX_PAYLOAD: usize = 4096;
/// Regions of a memory table at most.
pub const MAX_REGIONS: usize = 8;
/// Bytes of device configuration that a message carries at most.
pub const MAX_CONFIG: usize = 256;

/// Requests of the front end.
#[expect(missing_docs, reason = "they have the names of the specification")]
pub mod request {
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const RESET_OWNER: u32 = 4;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_LOG_BASE: u32 = 6;
    pub const SET_LOG_FD: u32 = 7;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_VRING_BASE: u32 = 11;
    pub const SET_VRING_KICK: u32 = 12;
    pub const SET_VRING_CALL: u32 = 13;
    pub const SET_VRING_ERR: u32 = 14;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const GET_QUEUE_NUM: u32 = 17;
    pub const SET_VRING_ENABLE: u32 = 18;
    pub const SET_BACKEND_REQ_FD: u32 = 21;
    pub const GET_CONFIG: u32 = 24;
    pub const SET_CONFIG: u32 = 25;
    pub const RESET_DEVICE: u32 = 34;
    pub const VRING_KICK: u32 = 35;
}

/// Requests of the back end.
pub mod backend_request {
    /// The device configuration has changed.
    pub const CONFIG_CHANGE: u32 = 2;
    /// A ring has something for the driver.
    pub const VRING_CALL: u32 = 4;
}

/// Bits of [`Header::flags`].
pub mod flag {
    /// Where the version is.
    pub const VERSION_MASK: u32 = 3;
    /// The version that is spoken here.
    pub const VERSION: u32 = 1;
    /// It is a reply.
    pub const REPLY: u32 = 1 << 2;
    /// A reply is wanted, if [`protocol_feature::REPLY_ACK`](super::protocol_feature::REPLY_ACK) is agreed on.
    pub const NEED_REPLY: u32 = 1 << 3;
}

/// Bits of the features that are of the protocol itself.
pub mod feature {
    /// Dirty pages are logged.
    pub const LOG_ALL: u64 = 1 << 26;
    /// There are protocol features.
    pub const PROTOCOL_FEATURES: u64 = 1 << 30;
}

/// Protocol features.
pub mod protocol_feature {
    /// There can be more than one pair of rings.
    pub const MQ: u64 = 1;
    /// Requests without a reply of their own are answered, if that is wanted.
    pub const REPLY_ACK: u64 = 1 << 3;
    /// The back end sends requests, too.
    pub const BACKEND_REQ: u64 = 1 << 5;
    /// The device configuration is read by messages.
    pub const CONFIG: u64 = 1 << 9;
    /// The device is reset by a message.
    pub const RESET_DEVICE: u64 = 1 << 13;
    /// Kicks and calls are messages.
    pub const INBAND_NOTIFICATIONS: u64 = 1 << 14;
}

/// What a message begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    /// One of [`request`].
    pub request: u32,
    /// Bits of [`flag`].
    pub flags: u32,
    /// Bytes that follow.
    pub size: u32,
}

impl Head for Header {
    fn payload(&self) -> Option<usize> {
        let understood = self.flags & flag::VERSION_MASK == flag::VERSION;
        Some(self.size as usize).filter(|size| understood && *size <= MAX_PAYLOAD)
    }

    fn with_payload(self, len: usize) -> Self {
        Self { size: len as u32, ..self }
    }
}

/// A ring and a number: `SET_VRING_NUM`, `BASE`, `ENABLE`, `VRING_KICK`, `VRING_CALL`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RingState {
    /// The ring.
    pub index: u32,
    /// What the request says of it.
    pub number: u32,
}

/// Where the parts of a ring are, as the front end's own addresses: `SET_VRING_ADDR`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RingAddress {
    /// The ring.
    pub index: u32,
    /// 1: what is written to the used ring is logged.
    pub flags: u32,
    /// The descriptors.
    pub descriptors: u64,
    /// The used ring.
    pub used: u64,
    /// The available ring.
    pub available: u64,
    /// Where it is logged.
    pub log: u64,
}

/// Whether what is written to the used ring is logged, in [`RingAddress::flags`].
pub const RING_LOG: u32 = 1;

/// A ring, and whether a descriptor comes along: `SET_VRING_KICK`, `CALL`, `ERR`.
pub mod descriptor {
    /// Where the ring is.
    pub const RING: u64 = 0xff;
    /// None comes along.
    pub const NONE: u64 = 1 << 8;
}

/// The begin of a memory table: so many regions follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MemoryTable {
    /// How many.
    pub regions: u32,
    /// Nothing.
    pub padding: u32,
}

/// A region of memory, whose file comes along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MemoryRegion {
    /// Where the guest finds it, and so the device.
    pub guest: u64,
    /// Bytes.
    pub size: u64,
    /// Where the front end finds it.
    pub user: u64,
    /// Where it begins in the file.
    pub offset: u64,
}

/// A part of the device configuration, whose bytes follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Config {
    /// The first byte.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Nothing.
    pub flags: u32,
}
