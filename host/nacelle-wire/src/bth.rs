// SPDX-License-Identifier: Apache-2.0
//! Base transport header and extension headers (IBTA volume 1, chapter 9.2 and 9.3).

use crate::{ParseError, Psn, Qpn, RemoteAddr, Rkey, U24};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    network_endian::{U16, U32, U64},
};

/// Default partition key, full member: the only one that Nacelle uses.
pub const DEFAULT_P_KEY: u16 = 0xffff;

/// Operation of a packet: service in the top three bits (RC 0, UD 3, congestion notification 4), form in the rest
/// (IBTA 9.2.1, table 38; RoCEv2 annex A17.9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the documentation
pub enum Opcode {
    SendFirst = 0x00,
    SendMiddle = 0x01,
    SendLast = 0x02,
    SendLastImm = 0x03,
    SendOnly = 0x04,
    SendOnlyImm = 0x05,
    WriteFirst = 0x06,
    WriteMiddle = 0x07,
    WriteLast = 0x08,
    WriteLastImm = 0x09,
    WriteOnly = 0x0a,
    WriteOnlyImm = 0x0b,
    ReadRequest = 0x0c,
    ReadResponseFirst = 0x0d,
    ReadResponseMiddle = 0x0e,
    ReadResponseLast = 0x0f,
    ReadResponseOnly = 0x10,
    Acknowledge = 0x11,
    AtomicAcknowledge = 0x12,
    CmpSwap = 0x13,
    FetchAdd = 0x14,
    SendLastInvalidate = 0x16,
    SendOnlyInvalidate = 0x17,
    UdSendOnly = 0x64,
    UdSendOnlyImm = 0x65,
    /// Congestion notification packet (CNP).
    Cnp = 0x81,
}

/// Which extension headers follow the BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtKind {
    /// None.
    None,
    /// ImmDt.
    Imm,
    /// RETH.
    Reth,
    /// RETH, ImmDt.
    RethImm,
    /// AETH.
    Aeth,
    /// AETH, AtomicAckETH.
    AethAtomic,
    /// AtomicETH.
    Atomic,
    /// IETH.
    Ieth,
    /// DETH.
    Deth,
    /// DETH, ImmDt.
    DethImm,
    /// The 16 reserved bytes of a CNP.
    Cnp,
}

impl Opcode {
    /// Every opcode.
    pub const ALL: [Self; 26] = [
        Self::SendFirst,
        Self::SendMiddle,
        Self::SendLast,
        Self::SendLastImm,
        Self::SendOnly,
        Self::SendOnlyImm,
        Self::WriteFirst,
        Self::WriteMiddle,
        Self::WriteLast,
        Self::WriteLastImm,
        Self::WriteOnly,
        Self::WriteOnlyImm,
        Self::ReadRequest,
        Self::ReadResponseFirst,
        Self::ReadResponseMiddle,
        Self::ReadResponseLast,
        Self::ReadResponseOnly,
        Self::Acknowledge,
        Self::AtomicAcknowledge,
        Self::CmpSwap,
        Self::FetchAdd,
        Self::SendLastInvalidate,
        Self::SendOnlyInvalidate,
        Self::UdSendOnly,
        Self::UdSendOnlyImm,
        Self::Cnp,
    ];

    /// The opcode with this value.
    pub fn from_u8(value: u8) -> Result<Self, ParseError> {
        Self::ALL.into_iter().find(|&o| o as u8 == value).ok_or(ParseError::BthOpcode)
    }

    /// The extension headers of this opcode.
    pub const fn ext(self) -> ExtKind {
        match self {
            Self::SendFirst
            | Self::SendMiddle
            | Self::SendLast
            | Self::SendOnly
            | Self::WriteMiddle
            | Self::WriteLast
            | Self::ReadResponseMiddle => ExtKind::None,
            Self::SendLastImm | Self::SendOnlyImm | Self::WriteLastImm => ExtKind::Imm,
            Self::WriteFirst | Self::WriteOnly | Self::ReadRequest => ExtKind::Reth,
            Self::WriteOnlyImm => ExtKind::RethImm,
            Self::ReadResponseFirst | Self::ReadResponseLast | Self::ReadResponseOnly | Self::Acknowledge => {
                ExtKind::Aeth
            }
            Self::AtomicAcknowledge => ExtKind::AethAtomic,
            Self::CmpSwap | Self::FetchAdd => ExtKind::Atomic,
            Self::SendLastInvalidate | Self::SendOnlyInvalidate => ExtKind::Ieth,
            Self::UdSendOnly => ExtKind::Deth,
            Self::UdSendOnlyImm => ExtKind::DethImm,
            Self::Cnp => ExtKind::Cnp,
        }
    }

    /// Whether this goes from responder to requester.
    pub const fn is_response(self) -> bool {
        matches!(
            self,
            Self::ReadResponseFirst
                | Self::ReadResponseMiddle
                | Self::ReadResponseLast
                | Self::ReadResponseOnly
                | Self::Acknowledge
                | Self::AtomicAcknowledge
        )
    }

    /// Whether this is a packet of the unreliable datagram service.
    pub const fn is_ud(self) -> bool {
        matches!(self, Self::UdSendOnly | Self::UdSendOnlyImm)
    }
}

const SOLICITED: u8 = 0x80;
const MIG_REQ: u8 = 0x40;
const ACK_REQ: u8 = 0x80;
const FECN: u8 = 0x80;
const BECN: u8 = 0x40;

/// Base transport header, 12 bytes (IBTA 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Bth {
    opcode: u8,
    /// SE, MigReq, PadCnt (2), TVer (4).
    flags: u8,
    /// Partition key.
    pub p_key: U16,
    /// FECN, BECN, reserved (6): not covered by the ICRC.
    resv8a: u8,
    dest_qp: U24,
    /// AckReq, reserved (7).
    ack: u8,
    psn: U24,
}

impl Bth {
    /// Length in bytes.
    pub const LEN: usize = size_of::<Self>();

    /// A header with MigReq set, the default partition, no solicited event, no acknowledgement request.
    pub fn new(opcode: Opcode, dest_qp: Qpn, psn: Psn) -> Self {
        Self {
            opcode: opcode as u8,
            flags: MIG_REQ,
            p_key: U16::new(DEFAULT_P_KEY),
            resv8a: 0,
            dest_qp: dest_qp.into(),
            ack: 0,
            psn: psn.into(),
        }
    }

    /// The opcode, if it is known.
    pub fn opcode(&self) -> Result<Opcode, ParseError> {
        Opcode::from_u8(self.opcode)
    }

    /// Solicited event: wake the receiver's waiter.
    pub const fn solicited(&self) -> bool {
        self.flags & SOLICITED != 0
    }

    /// Sets [`Self::solicited`].
    pub fn set_solicited(&mut self, on: bool) {
        set(&mut self.flags, SOLICITED, on);
    }

    /// Migration state is "migrated"; either value is accepted.
    pub const fn mig_req(&self) -> bool {
        self.flags & MIG_REQ != 0
    }

    /// Sets [`Self::mig_req`].
    pub fn set_mig_req(&mut self, on: bool) {
        set(&mut self.flags, MIG_REQ, on);
    }

    /// Bytes of padding after the payload, 0 to 3.
    pub const fn pad_count(&self) -> u8 {
        (self.flags >> 4) & 3
    }

    /// Sets [`Self::pad_count`] to its two low bits.
    pub fn set_pad_count(&mut self, pad: u8) {
        self.flags = self.flags & !0x30 | (pad & 3) << 4;
    }

    /// Transport header version; 0 is the only one.
    pub const fn version(&self) -> u8 {
        self.flags & 0xf
    }

    /// Forward explicit congestion notification.
    pub const fn fecn(&self) -> bool {
        self.resv8a & FECN != 0
    }

    /// Sets [`Self::fecn`].
    pub fn set_fecn(&mut self, on: bool) {
        set(&mut self.resv8a, FECN, on);
    }

    /// Backward explicit congestion notification; always set in a CNP.
    pub const fn becn(&self) -> bool {
        self.resv8a & BECN != 0
    }

    /// Sets [`Self::becn`].
    pub fn set_becn(&mut self, on: bool) {
        set(&mut self.resv8a, BECN, on);
    }

    /// Destination queue pair.
    pub fn dest_qp(&self) -> Qpn {
        self.dest_qp.into()
    }

    /// AckReq: the requester requests an acknowledgement of this packet.
    pub const fn ack_req(&self) -> bool {
        self.ack & ACK_REQ != 0
    }

    /// Sets [`Self::ack_req`].
    pub fn set_ack_req(&mut self, on: bool) {
        set(&mut self.ack, ACK_REQ, on);
    }

    /// Packet sequence number.
    pub fn psn(&self) -> Psn {
        self.psn.into()
    }
}

fn set(field: &mut u8, bit: u8, on: bool) {
    if on {
        *field |= bit;
    } else {
        *field &= !bit;
    }
}

/// RDMA extended transport header, 16 bytes (IBTA 9.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Reth {
    va: U64,
    rkey: U32,
    dma_len: U32,
}

impl Reth {
    /// Access to `dma_len` bytes at `va` under `rkey`.
    pub const fn new(va: RemoteAddr, rkey: Rkey, dma_len: u32) -> Self {
        Self { va: U64::new(va.0), rkey: U32::new(rkey.0), dma_len: U32::new(dma_len) }
    }

    /// Virtual address.
    pub const fn va(&self) -> RemoteAddr {
        RemoteAddr(self.va.get())
    }

    /// Remote key.
    pub const fn rkey(&self) -> Rkey {
        Rkey(self.rkey.get())
    }

    /// Length of the whole message in bytes.
    pub const fn dma_len(&self) -> u32 {
        self.dma_len.get()
    }
}

/// Immediate data, 4 bytes (IBTA 9.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ImmDt(pub U32);

impl ImmDt {
    /// Carries `value`, most significant byte first.
    pub const fn new(value: u32) -> Self {
        Self(U32::new(value))
    }

    /// The value.
    pub const fn get(&self) -> u32 {
        self.0.get()
    }
}

/// Invalidate extended transport header, 4 bytes (IBTA 9.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ieth(U32);

impl Ieth {
    /// Names the key to invalidate.
    pub const fn new(rkey: Rkey) -> Self {
        Self(U32::new(rkey.0))
    }

    /// The key to invalidate.
    pub const fn rkey(&self) -> Rkey {
        Rkey(self.0.get())
    }
}

/// Why a responder refuses a request (IBTA 9.7.5.2.8, table 58).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NakCode {
    /// A packet is missing: go back to the PSN of this NAK.
    PsnSequenceError,
    /// The request cannot be: opcode sequence, length, unsupported operation.
    InvalidRequest,
    /// Key, bounds, rights.
    RemoteAccessError,
    /// The responder could not complete it.
    RemoteOperationalError,
    /// Reliable datagram only.
    InvalidRdRequest,
}

/// Decoded syndrome of an AETH (IBTA 9.7.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All up to this PSN arrived. Credit count, 31 = no end-to-end flow control.
    Ack(u8),
    /// Receiver not ready; the 5-bit code of the time to wait.
    RnrNak(RnrTimer),
    /// Negative acknowledgement.
    Nak(NakCode),
    /// A value that the standard reserves.
    Reserved(u8),
}

impl Syndrome {
    /// An acknowledgement without credits.
    pub const ACK: Self = Self::Ack(31);

    /// The syndrome byte.
    pub const fn to_u8(self) -> u8 {
        match self {
            Self::Ack(credits) => credits & 0x1f,
            Self::RnrNak(timer) => 0x20 | timer.0,
            Self::Nak(code) => {
                0x60 | match code {
                    NakCode::PsnSequenceError => 0,
                    NakCode::InvalidRequest => 1,
                    NakCode::RemoteAccessError => 2,
                    NakCode::RemoteOperationalError => 3,
                    NakCode::InvalidRdRequest => 4,
                }
            }
            Self::Reserved(byte) => byte,
        }
    }

    /// What a syndrome byte means.
    pub const fn from_u8(byte: u8) -> Self {
        match (byte >> 5, byte & 0x1f) {
            (0, credits) => Self::Ack(credits),
            (1, timer) => Self::RnrNak(RnrTimer(timer)),
            (3, 0) => Self::Nak(NakCode::PsnSequenceError),
            (3, 1) => Self::Nak(NakCode::InvalidRequest),
            (3, 2) => Self::Nak(NakCode::RemoteAccessError),
            (3, 3) => Self::Nak(NakCode::RemoteOperationalError),
            (3, 4) => Self::Nak(NakCode::InvalidRdRequest),
            _ => Self::Reserved(byte),
        }
    }
}

/// Code of the wait time in an RNR NAK, 5 bits (IBTA 9.7.5.2.8, table 57).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RnrTimer(u8);

impl RnrTimer {
    /// Time for each code, in units of 10 µs.
    const TENS_OF_MICROS: [u32; 32] = [
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
        4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    ];

    /// The low five bits of `code`.
    pub const fn new(code: u8) -> Self {
        Self(code & 0x1f)
    }

    /// The code.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The time in microseconds: 10 to 655 360.
    pub const fn micros(self) -> u32 {
        Self::TENS_OF_MICROS[self.0 as usize] * 10
    }
}

/// ACK extended transport header, 4 bytes (IBTA 9.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Aeth {
    syndrome: u8,
    msn: U24,
}

impl Aeth {
    /// An acknowledgement with message sequence number `msn` (24 bits: messages completed so far).
    pub const fn new(syndrome: Syndrome, msn: u32) -> Self {
        Self { syndrome: syndrome.to_u8(), msn: U24::new(msn) }
    }

    /// What it says.
    pub const fn syndrome(&self) -> Syndrome {
        Syndrome::from_u8(self.syndrome)
    }

    /// Message sequence number.
    pub const fn msn(&self) -> u32 {
        self.msn.get()
    }
}

/// Atomic extended transport header, 28 bytes (IBTA 9.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AtomicEth {
    va: U64,
    rkey: U32,
    swap_add: U64,
    compare: U64,
}

impl AtomicEth {
    /// An operation on the 8 bytes at `va` under `rkey`. `compare` counts for CMP-SWAP only.
    pub const fn new(va: RemoteAddr, rkey: Rkey, swap_add: u64, compare: u64) -> Self {
        Self { va: U64::new(va.0), rkey: U32::new(rkey.0), swap_add: U64::new(swap_add), compare: U64::new(compare) }
    }

    /// Virtual address; a multiple of 8, or the responder refuses.
    pub const fn va(&self) -> RemoteAddr {
        RemoteAddr(self.va.get())
    }

    /// Remote key.
    pub const fn rkey(&self) -> Rkey {
        Rkey(self.rkey.get())
    }

    /// Value to swap in, or to add.
    pub const fn swap_add(&self) -> u64 {
        self.swap_add.get()
    }

    /// Value to compare with.
    pub const fn compare(&self) -> u64 {
        self.compare.get()
    }
}

/// Atomic ACK extended transport header, 8 bytes (IBTA 9.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AtomicAckEth(U64);

impl AtomicAckEth {
    /// Carries the value from before the operation.
    pub const fn new(original: u64) -> Self {
        Self(U64::new(original))
    }

    /// The value from before the operation.
    pub const fn original(&self) -> u64 {
        self.0.get()
    }
}

/// What follows the BTH of a CNP: 16 reserved bytes (RoCEv2 annex A17.9.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CnpReserved([u8; 16]);

/// Datagram extended transport header, 8 bytes (IBTA 9.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Deth {
    /// Queue key.
    pub q_key: U32,
    resv: u8,
    src_qp: U24,
}

impl Deth {
    /// From `src_qp` with `q_key`.
    pub fn new(q_key: u32, src_qp: Qpn) -> Self {
        Self { q_key: U32::new(q_key), resv: 0, src_qp: src_qp.into() }
    }

    /// Source queue pair.
    pub fn src_qp(&self) -> Qpn {
        self.src_qp.into()
    }
}
