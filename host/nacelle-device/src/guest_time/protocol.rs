// SPDX-License-Identifier: Apache-2.0
//! Messages between User-mode Linux and its calendar, as `include/uapi/linux/um_timetravel.h` of Linux 6.1 has them: 16 bytes in the byte order of
//! the machine. Each but an acknowledgement is acknowledged, with its own number.

/// Bytes of a message.
pub(crate) const BYTES: usize = 16;

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// The answer to another one.
    Ack,
    /// A guest begins; its number is in the time's place.
    Start,
    /// It wants to run at a time, which replaces the one that it wanted before.
    Request,
    /// It waits until it is to run.
    Wait,
    /// It asks for the time.
    Get,
    /// It has a later time, and is about to notify a device.
    Update,
    /// It is to run, at a time.
    Run,
    /// It asks for the time of day.
    GetTimeOfDay,
}

/// Operations by their numbers. 7 would let a guest run by itself until a time, which is not used here.
const OPS: [(u32, Op); 8] = [
    (0, Op::Ack),
    (1, Op::Start),
    (2, Op::Request),
    (3, Op::Wait),
    (4, Op::Get),
    (5, Op::Update),
    (6, Op::Run),
    (8, Op::GetTimeOfDay),
];

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) op: Op,
    /// Its number, which the answer repeats.
    pub(crate) number: u32,
    /// In nanoseconds of simulated time.
    pub(crate) time: u64,
}

impl Message {
    /// That of some bytes. `None`: there is no such operation.
    pub(crate) fn of(bytes: &[u8; BYTES]) -> Option<Self> {
        let [o0, o1, o2, o3, n0, n1, n2, n3, time @ ..] = *bytes;
        let code = u32::from_ne_bytes([o0, o1, o2, o3]);
        let (_, op) = OPS.iter().find(|(number, _)| *number == code)?;
        Some(Self { op: *op, number: u32::from_ne_bytes([n0, n1, n2, n3]), time: u64::from_ne_bytes(time) })
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> [u8; BYTES] {
        let code = OPS.iter().find(|(_, op)| *op == self.op).map_or(0, |(number, _)| *number);
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&code.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.number.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }

    /// The answer to it.
    pub(crate) fn answered(&self, time: u64) -> Self {
        Self { op: Op::Ack, number: self.number, time }
    }
}
