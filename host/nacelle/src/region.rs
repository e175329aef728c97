// SPDX-License-Identifier: Apache-2.0
//! Regions of memory of a call, each with a role.

use nacelle_memory::Memory;
use nacelle_wire::mrsp::RegionFlags;

/// Role of a region.
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
    /// Goes to the device with the first call only, stays there, and comes back with each call.
    InOutOnce,
    /// Is device memory only: room for the kernel to work in.
    Internal,
}

impl Role {
    /// Whether it goes to the device, now that `calls` calls have been made.
    pub(crate) const fn is_sent(self, calls: u64) -> bool {
        match self {
            Self::Input | Self::InOut => true,
            Self::InputOnce | Self::InOutOnce => calls == 0,
            Self::Output | Self::Internal => false,
        }
    }

    /// Whether the device writes it.
    #[must_use]
    pub const fn comes_back(self) -> bool {
        matches!(self, Self::Output | Self::InOut | Self::InOutOnce)
    }

    pub(crate) fn flags(self) -> RegionFlags {
        match self {
            Self::Input => RegionFlags::INPUT,
            Self::InputOnce => RegionFlags::INPUT | RegionFlags::SINGLE_SEND,
            Self::Output => RegionFlags::OUTPUT,
            Self::InOut => RegionFlags::INPUT | RegionFlags::OUTPUT,
            Self::InOutOnce => RegionFlags::INPUT | RegionFlags::SINGLE_SEND | RegionFlags::OUTPUT,
            Self::Internal => RegionFlags::INTERNAL,
        }
    }
}

/// A region of a call, and the caller's memory for it.
///
/// The memory stays in its place and is read and written there: a `Vec<u8>`, a slice lent in a
/// [`scope`](fn@nacelle_memory::scope), or any other [`Memory`]. [`Call::close`](crate::Call::close) returns it.
#[derive(Debug)]
pub struct Region {
    pub(crate) role: Role,
    /// Empty for internal regions.
    pub(crate) memory: Memory,
    pub(crate) size: usize,
}

impl Region {
    /// Bytes that the device gets with each call.
    #[must_use]
    pub fn input(memory: impl Into<Memory>) -> Self {
        Self::new(Role::Input, memory.into())
    }

    /// Bytes that the device gets with the first call.
    #[must_use]
    pub fn input_once(memory: impl Into<Memory>) -> Self {
        Self::new(Role::InputOnce, memory.into())
    }

    /// `size` bytes that the device returns, in new memory.
    #[must_use]
    pub fn output(size: usize) -> Self {
        Self::new(Role::Output, Memory::zeroed(size))
    }

    /// Bytes that the device returns into this memory.
    #[must_use]
    pub fn output_to(memory: impl Into<Memory>) -> Self {
        Self::new(Role::Output, memory.into())
    }

    /// Bytes that the device gets, and returns changed.
    #[must_use]
    pub fn inout(memory: impl Into<Memory>) -> Self {
        Self::new(Role::InOut, memory.into())
    }

    /// Bytes that the device gets with the first call, and returns with each.
    #[must_use]
    pub fn inout_once(memory: impl Into<Memory>) -> Self {
        Self::new(Role::InOutOnce, memory.into())
    }

    /// `size` bytes of device memory without a copy here.
    #[must_use]
    pub fn internal(size: usize) -> Self {
        Self { role: Role::Internal, memory: Vec::new().into(), size }
    }

    fn new(role: Role, memory: Memory) -> Self {
        Self { role, size: memory.len(), memory }
    }

    /// Its role.
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
