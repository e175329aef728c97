// SPDX-License-Identifier: Apache-2.0
//! What a call works on: regions of memory, each with a role.

use nacelle_wire::mrsp::RegionFlags;

/// What a region is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Goes to the device with each call.
    Input,
    /// Goes to the device with the first call only, and stays there.
    InputOnce,
    /// Comes back with each call.
    Output,
    /// Both.
    InOut,
    /// Is device memory only: room for the kernel to work in.
    Internal,
}

impl Role {
    /// Whether it goes to the device, now that `calls` calls have been made.
    pub(crate) const fn is_sent(self, calls: u64) -> bool {
        match self {
            Self::Input | Self::InOut => true,
            Self::InputOnce => calls == 0,
            Self::Output | Self::Internal => false,
        }
    }

    /// Whether the device writes it.
    pub(crate) const fn comes_back(self) -> bool {
        matches!(self, Self::Output | Self::InOut)
    }

    pub(crate) fn flags(self) -> RegionFlags {
        match self {
            Self::Input => RegionFlags::INPUT,
            Self::InputOnce => RegionFlags::INPUT | RegionFlags::SINGLE_SEND,
            Self::Output => RegionFlags::OUTPUT,
            Self::InOut => RegionFlags::INPUT | RegionFlags::OUTPUT,
            Self::Internal => RegionFlags::INTERNAL,
        }
    }
}

/// A region of a call, and the caller's copy of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub(crate) role: Role,
    /// Empty for internal regions.
    pub(crate) bytes: Vec<u8>,
    pub(crate) size: usize,
}

impl Region {
    /// Bytes that the device gets with each call.
    #[must_use]
    pub fn input(bytes: Vec<u8>) -> Self {
        Self { role: Role::Input, size: bytes.len(), bytes }
    }

    /// Bytes that the device gets with the first call.
    #[must_use]
    pub fn input_once(bytes: Vec<u8>) -> Self {
        Self { role: Role::InputOnce, size: bytes.len(), bytes }
    }

    /// `size` bytes that the device gives back.
    #[must_use]
    pub fn output(size: usize) -> Self {
        Self { role: Role::Output, bytes: vec![0; size], size }
    }

    /// Bytes that the device gets, and gives back changed.
    #[must_use]
    pub fn inout(bytes: Vec<u8>) -> Self {
        Self { role: Role::InOut, size: bytes.len(), bytes }
    }

    /// `size` bytes of device memory without a copy here.
    #[must_use]
    pub fn internal(size: usize) -> Self {
        Self { role: Role::Internal, bytes: Vec::new(), size }
    }

    /// What it is for.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its size, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }
}
