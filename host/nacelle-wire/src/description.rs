// SPDX-License-Identifier: Apache-2.0
//! Where a caller reads the description of a device: a record in the private data of a REP. And how busy the device is: a record in
//! memory before the description.
//!
//! docs/reference/device-description.md has their fields, and the text that is to be read there.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian};

use crate::{BuildError, RemoteAddr, Rkey};

/// The place of the description, in memory of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptionLocation {
    /// Its first byte.
    pub addr: RemoteAddr,
    /// The key for RDMA READ.
    pub rkey: Rkey,
    /// Bytes.
    pub length: u32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Record {
    magic: [u8; 4],
    version: u8,
    reserved: [u8; 3],
    addr: big_endian::U64,
    rkey: big_endian::U32,
    length: big_endian::U32,
}

impl DescriptionLocation {
    /// Bytes that the record takes, at the beginning of the private data.
    pub const LEN: usize = size_of::<Record>();

    const MAGIC: [u8; 4] = *b"NACD";
    const VERSION: u8 = 1;

    /// Parses the private data of a REP; `None` without a record of this version, or if the description is empty.
    pub fn find(private_data: &[u8]) -> Option<Self> {
        let (record, _) = Record::read_from_prefix(private_data).ok()?;
        let known = record.magic == Self::MAGIC && record.version == Self::VERSION && record.length.get() != 0;
        known.then(|| Self {
            addr: RemoteAddr(record.addr.get()),
            rkey: Rkey(record.rkey.get()),
            length: record.length.get(),
        })
    }

    /// The record.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let record = Record {
            magic: Self::MAGIC,
            version: Self::VERSION,
            reserved: [0; 3],
            addr: self.addr.0.into(),
            rkey: self.rkey.0.into(),
            length: self.length.into(),
        };
        zerocopy::transmute!(record)
    }

    /// Puts the record at the beginning of a private data field.
    pub fn put(self, private_data: &mut [u8]) -> Result<(), BuildError> {
        let place = private_data.first_chunk_mut::<{ Self::LEN }>().ok_or(BuildError::TooLong)?;
        *place = self.to_bytes();
        Ok(())
    }
}

/// How busy a device is, as it writes it into its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadRecord {
    /// Connections of callers.
    pub connections: u32,
    /// Functions that run.
    pub running: u32,
    /// Calls that wait for a socket, or for a thread.
    pub waiting: u32,
    /// How often the description has begun to change and has changed: odd while it is being written.
    pub changes: u32,
    /// Bytes of device memory that callers have.
    pub memory_held: u64,
    /// Calls since the device's start.
    pub calls: u64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct LoadFields {
    connections: big_endian::U32,
    running: big_endian::U32,
    waiting: big_endian::U32,
    changes: big_endian::U32,
    memory_held: big_endian::U64,
    calls: big_endian::U64,
    room: [u8; 32],
}

impl LoadRecord {
    /// Bytes of the record.
    pub const LEN: usize = size_of::<LoadFields>();

    /// What a caller has read.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let fields: LoadFields = zerocopy::transmute!(bytes);
        Self {
            connections: fields.connections.get(),
            running: fields.running.get(),
            waiting: fields.waiting.get(),
            changes: fields.changes.get(),
            memory_held: fields.memory_held.get(),
            calls: fields.calls.get(),
        }
    }

    /// The record.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let fields = LoadFields {
            connections: self.connections.into(),
            running: self.running.into(),
            waiting: self.waiting.into(),
            changes: self.changes.into(),
            memory_held: self.memory_held.into(),
            calls: self.calls.into(),
            room: [0; 32],
        };
        zerocopy::transmute!(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_read_as_it_is_written() {
        let memory_held = 0x0102_0304_0506_0708;
        let load = LoadRecord { connections: 1, running: 2, waiting: 3, changes: 4, memory_held, calls: 9 };
        let bytes = load.to_bytes();
        assert_eq!(
            bytes[..32],
            *b"\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\x09"
        );
        assert_eq!((&bytes[32..], LoadRecord::from_bytes(bytes)), (&[0; 32][..], load));
    }

    const GOLDEN: [u8; 24] = *b"NACD\x01\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08\x0a\x0b\x0c\x0d\0\0\x04\0";

    fn location() -> DescriptionLocation {
        DescriptionLocation { addr: RemoteAddr(0x0102_0304_0506_0708), rkey: Rkey(0x0a0b_0c0d), length: 1024 }
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let mut private_data = [0xee; 48];
        location().put(&mut private_data).unwrap();
        assert_eq!(private_data[..24], GOLDEN);
        assert_eq!(private_data[24..], [0xee; 24]);
        assert_eq!(DescriptionLocation::find(&private_data), Some(location()));
    }

    #[test]
    fn other_private_data_has_no_description() {
        assert_eq!(DescriptionLocation::find(&GOLDEN[..23]), None);
        for (at, byte) in [(0, b'M'), (4, 2), (22, 0)] {
            let mut other = GOLDEN;
            other[at] = byte;
            assert_eq!(DescriptionLocation::find(&other), None, "byte {at}");
        }
        assert_eq!(location().put(&mut [0; 23]), Err(BuildError::TooLong));
    }
}
