// SPDX-License-Identifier: Apache-2.0
//! Connection management MADs (IBTA volume 1, 12.6) and the RDMA IP-CM service (annex A11).
//!
//! A CM message is a 256-byte MAD, the payload of a UD SEND_ONLY from QP1 to QP1 with the well-known Q_Key.
//! Offsets in the documents count from byte 24, behind the MAD header, and so do the structs here: 232 bytes each.

use crate::{BuildError, ParseError, Psn, Qpn, U24};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zerocopy::{
    FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned,
    network_endian::{U16, U32, U64},
};

/// Length of a MAD in bytes.
pub const MAD_LEN: usize = 256;
/// Queue key of QP1.
pub const GSI_Q_KEY: u32 = 0x8001_0000;
/// Service ID prefix of the RDMA_PS_TCP port space; the port is in the low 16 bits.
pub const RDMA_PS_TCP: u64 = 0x0106 << 16;

const BODY: usize = MAD_LEN - size_of::<MadHeader>();

/// The service ID of a TCP-space port.
pub const fn service_id(port: u16) -> u64 {
    RDMA_PS_TCP | port as u64
}

/// The TCP-space port of a service ID, if it is one.
pub const fn service_port(id: u64) -> Option<u16> {
    if id & !0xffff == RDMA_PS_TCP { Some(id as u16) } else { None }
}

/// Header of every MAD, 24 bytes (IBTA 13.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct MadHeader {
    base_version: u8,
    mgmt_class: u8,
    class_version: u8,
    method: u8,
    status: U16,
    class_specific: U16,
    transaction_id: U64,
    attribute_id: U16,
    reserved: U16,
    attribute_modifier: U32,
}

impl MadHeader {
    fn new(transaction_id: u64, attribute_id: u16) -> Self {
        Self {
            base_version: 1,
            mgmt_class: 7,
            class_version: 2,
            method: 3,
            status: U16::ZERO,
            class_specific: U16::ZERO,
            transaction_id: U64::new(transaction_id),
            attribute_id: U16::new(attribute_id),
            reserved: U16::ZERO,
            attribute_modifier: U32::ZERO,
        }
    }

    fn is_cm(&self) -> bool {
        (self.base_version, self.mgmt_class, self.class_version, self.method) == (1, 7, 2, 3)
    }
}

/// Path MTU, as the CM and verbs code it (1 = 256 bytes to 5 = 4096 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the documentation
pub enum PathMtu {
    Mtu256 = 1,
    Mtu512 = 2,
    Mtu1024 = 3,
    Mtu2048 = 4,
    Mtu4096 = 5,
}

impl PathMtu {
    /// Every value, smallest first.
    pub const ALL: [Self; 5] = [Self::Mtu256, Self::Mtu512, Self::Mtu1024, Self::Mtu2048, Self::Mtu4096];

    /// The MTU with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&m| m as u8 == code)
    }

    /// The code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Payload bytes of a full packet.
    pub const fn bytes(self) -> usize {
        128 << self as u8
    }

    /// The largest that fits an IP MTU of `ip_mtu` bytes, with the 80 bytes for headers that Linux sets aside.
    pub fn for_ip_mtu(ip_mtu: usize) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|m| m.bytes() + 80 <= ip_mtu)
    }
}

/// A time of 4.096 µs x 2^code, the CM's 5-bit code (IBTA 12.7).
pub const fn timeout_nanos(code: u8) -> u64 {
    4096 << (code & 0x1f)
}

/// The smallest code whose time is at least `nanos`.
pub const fn timeout_code(nanos: u64) -> u8 {
    let mut code = 0;
    while code < 31 && timeout_nanos(code) < nanos {
        code += 1;
    }
    code
}

/// A GID of RoCEv2: an IPv6 address, or an IPv4 address as `::ffff:a.b.c.d` (annex A17.4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(transparent)]
pub struct Gid(pub [u8; 16]);

impl From<IpAddr> for Gid {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self(ip.to_ipv6_mapped().octets()),
            IpAddr::V6(ip) => Self(ip.octets()),
        }
    }
}

impl From<Gid> for IpAddr {
    fn from(gid: Gid) -> Self {
        Ipv6Addr::from(gid.0).to_canonical()
    }
}

macro_rules! mad_struct {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $vis:vis $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$fdoc])* $vis $field: $ty,)* }

        const _: () = assert!(size_of::<$name>() == BODY);
    };
}

/// Bit field inside one byte: getter and setter.
macro_rules! bits {
    ($(#[$doc:meta])* $byte:ident[$shift:literal; $width:literal] $get:ident, $set:ident) => {
        $(#[$doc])*
        pub const fn $get(&self) -> u8 {
            (self.$byte >> $shift) & ((1 << $width) - 1)
        }

        #[doc = concat!("Sets [`Self::", stringify!($get), "`].")]
        pub fn $set(&mut self, value: u8) {
            let mask = ((1 << $width) - 1) << $shift;
            self.$byte = self.$byte & !mask | (value << $shift) & mask;
        }
    };
}

/// The queue pair and the PSN that a message offers for the connection.
macro_rules! queue_pair {
    ($($name:ident),*) => {$(
        impl $name {
            /// The sender's queue pair.
            pub fn local_qpn(&self) -> Qpn {
                self.local_qpn.into()
            }

            /// First PSN that the *receiver* of this message sends.
            pub fn starting_psn(&self) -> Psn {
                self.starting_psn.into()
            }
        }
    )*};
}
queue_pair!(Req, Rep);

mad_struct! {
    /// Request for communication (IBTA 12.6.5).
    Req {
        /// Identifies the connection at the sender.
        pub local_comm_id: U32,
        reserved0: U32,
        /// The requested service; see [`service_id`].
        pub service_id: U64,
        /// GUID of the sender's channel adapter.
        pub local_ca_guid: U64,
        reserved1: U32,
        /// Datagram services only.
        pub local_q_key: U32,
        local_qpn: U24,
        /// READs and atomics that the sender can serve at once.
        pub responder_resources: u8,
        local_eecn: U24,
        /// READs and atomics that the sender may have outstanding.
        pub initiator_depth: u8,
        remote_eecn: U24,
        remote_timeout: u8,
        starting_psn: U24,
        local_timeout: u8,
        /// Partition key.
        pub p_key: U16,
        mtu: u8,
        max_cm_retries: u8,
        primary_lids: [U16; 2],
        /// Address of the sender.
        pub primary_sgid: Gid,
        /// Address of the receiver.
        pub primary_dgid: Gid,
        flow_label_rate: U32,
        traffic_class: u8,
        hop_limit: u8,
        sl: u8,
        ack_timeout: u8,
        alternate_path: [u8; 44],
        /// RDMA IP-CM header.
        pub ip_cm: IpCm,
        /// For the consumer.
        pub private_data: [u8; 56],
    }
}

impl Req {
    /// A request for an RC connection between two addresses with what Linux puts into the fields that have only
    /// one sensible value for RoCE (P_Key, LIDs, hop limit).
    pub fn new(local_comm_id: u32, port: u16, qpn: Qpn, starting_psn: Psn, ip_cm: IpCm) -> Self {
        Self {
            local_comm_id: U32::new(local_comm_id),
            service_id: U64::new(service_id(port)),
            local_qpn: qpn.into(),
            starting_psn: starting_psn.into(),
            p_key: U16::new(crate::bth::DEFAULT_P_KEY),
            primary_lids: [U16::new(0xffff); 2],
            primary_sgid: ip_cm.src().into(),
            primary_dgid: ip_cm.dst().into(),
            hop_limit: 0x40,
            ip_cm,
            ..Self::new_zeroed()
        }
    }

    bits! {
        /// Time that the receiver has for its answer, as a code.
        remote_timeout[3; 5] remote_cm_timeout, set_remote_cm_timeout
    }
    bits! {
        /// Transport service: 0 RC, 1 UC, 2 RD.
        remote_timeout[1; 2] transport, set_transport
    }
    bits! {
        /// Timeout of the sender for the response, as a code.
        local_timeout[3; 5] local_cm_timeout, set_local_cm_timeout
    }
    bits! {
        /// Retries on timeout or sequence error, before a request of the connection fails.
        local_timeout[0; 3] retry_count, set_retry_count
    }
    bits! {
        /// Code of the path MTU; see [`PathMtu`].
        mtu[4; 4] path_mtu, set_path_mtu
    }
    bits! {
        /// Retries on receiver-not-ready; 7 is without limit.
        mtu[0; 3] rnr_retry_count, set_rnr_retry_count
    }
    bits! {
        /// Times that the sender repeats a CM message.
        max_cm_retries[4; 4] max_cm_retries, set_max_cm_retries
    }
    bits! {
        /// Local ACK timeout of the sender's queue pair, as a code.
        ack_timeout[3; 5] local_ack_timeout, set_local_ack_timeout
    }

    /// Flow label of the path, 20 bits; see [`flow_label`].
    pub const fn flow_label(&self) -> u32 {
        self.flow_label_rate.get() >> 12
    }

    /// Sets [`Self::flow_label`] to its 20 low bits.
    pub fn set_flow_label(&mut self, label: u32) {
        self.flow_label_rate.set(label << 12 | self.flow_label_rate.get() & 0xfff);
    }
}

/// The flow label that Linux gives a connection, made of its two ports.
pub const fn flow_label(src_port: u16, dst_port: u16) -> u32 {
    (src_port as u32 * 31 + dst_port as u32) & 0xf_ffff
}

/// RDMA IP-CM header in the first 36 bytes of a REQ's private data (IBTA annex A11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IpCm {
    version: u8,
    /// IP version in the top four bits.
    ip_version: u8,
    /// Source port.
    pub src_port: U16,
    src: [u8; 16],
    dst: [u8; 16],
}

impl IpCm {
    /// From `src` to `dst`, which are of one family.
    pub fn new(src_port: u16, src: impl Into<IpAddr>, dst: impl Into<IpAddr>) -> Self {
        let (src, dst) = (src.into(), dst.into());
        let field = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => {
                let mut bytes = [0; 16];
                bytes[12..].copy_from_slice(&ip.octets());
                bytes
            }
            IpAddr::V6(ip) => ip.octets(),
        };
        let ip_version = if dst.is_ipv4() { 4 } else { 6 };
        Self { version: 0, ip_version: ip_version << 4, src_port: U16::new(src_port), src: field(src), dst: field(dst) }
    }

    /// Checks version and IP version.
    pub const fn check(&self) -> Result<(), ParseError> {
        if self.version == 0 && matches!(self.ip_version >> 4, 4 | 6) { Ok(()) } else { Err(ParseError::IpCm) }
    }

    /// Source address.
    pub const fn src(&self) -> IpAddr {
        self.address(self.src)
    }

    /// Destination address.
    pub const fn dst(&self) -> IpAddr {
        self.address(self.dst)
    }

    const fn address(&self, field: [u8; 16]) -> IpAddr {
        let [.., a, b, c, d] = field;
        if self.ip_version >> 4 == 6 {
            IpAddr::V6(Ipv6Addr::from_octets(field))
        } else {
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
    }
}

mad_struct! {
    /// Message receipt acknowledgement: the answer takes longer (IBTA 12.6.6).
    Mra {
        /// Identifies the connection at the sender.
        pub local_comm_id: U32,
        /// Identifies the connection at the receiver.
        pub remote_comm_id: U32,
        message: u8,
        timeout: u8,
        /// For the consumer.
        pub private_data: [u8; 222],
    }
}

impl Mra {
    /// Extends the timeout of the sender of `message` (0 REQ, 1 REP, 2 LAP) to a service timeout, given as a code.
    pub fn new(local_comm_id: u32, remote_comm_id: u32, message: u8, service_timeout: u8) -> Self {
        let mut mra = Self::with_ids(local_comm_id, remote_comm_id);
        mra.set_message_mraed(message);
        mra.set_service_timeout(service_timeout);
        mra
    }

    bits! {
        /// What was received: 0 REQ, 1 REP, 2 LAP.
        message[6; 2] message_mraed, set_message_mraed
    }
    bits! {
        /// Time that the answer may take, as a code.
        timeout[3; 5] service_timeout, set_service_timeout
    }
}

/// Reason of a REJ (IBTA 12.6.7.2, table 106).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RejReason(pub u16);

#[allow(missing_docs)] // the names are the standard's
impl RejReason {
    pub const NO_QP: Self = Self(1);
    pub const NO_EEC: Self = Self(2);
    pub const NO_RESOURCES: Self = Self(3);
    /// The sender's CA GUID is in the additional information.
    pub const TIMEOUT: Self = Self(4);
    pub const UNSUPPORTED_REQUEST: Self = Self(5);
    pub const INVALID_COMM_ID: Self = Self(6);
    pub const INVALID_COMM_INSTANCE: Self = Self(7);
    /// No service listens on the port.
    pub const INVALID_SERVICE_ID: Self = Self(8);
    pub const INVALID_TRANSPORT_TYPE: Self = Self(9);
    pub const STALE_CONNECTION: Self = Self(10);
    pub const NO_RDC: Self = Self(11);
    /// An acceptable GID is in the additional information.
    pub const INVALID_GID: Self = Self(12);
    pub const INVALID_LID: Self = Self(13);
    pub const INVALID_SL: Self = Self(14);
    pub const INVALID_TRAFFIC_CLASS: Self = Self(15);
    pub const INVALID_HOP_LIMIT: Self = Self(16);
    pub const INVALID_PACKET_RATE: Self = Self(17);
    pub const INVALID_ALT_GID: Self = Self(18);
    pub const INVALID_ALT_LID: Self = Self(19);
    pub const INVALID_ALT_SL: Self = Self(20);
    pub const INVALID_ALT_TRAFFIC_CLASS: Self = Self(21);
    pub const INVALID_ALT_HOP_LIMIT: Self = Self(22);
    pub const INVALID_ALT_PACKET_RATE: Self = Self(23);
    pub const PORT_CM_REDIRECT: Self = Self(24);
    pub const PORT_REDIRECT: Self = Self(25);
    /// The acceptable MTU is in the additional information.
    pub const INVALID_PATH_MTU: Self = Self(26);
    pub const INSUFFICIENT_RESPONDER_RESOURCES: Self = Self(27);
    pub const CONSUMER: Self = Self(28);
    pub const RNR_RETRY_COUNT: Self = Self(29);
    pub const DUPLICATE_COMM_ID: Self = Self(30);
    pub const INVALID_CLASS_VERSION: Self = Self(31);
    pub const INVALID_FLOW_LABEL: Self = Self(32);
    pub const INVALID_ALT_FLOW_LABEL: Self = Self(33);

    /// The reason in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NO_QP => "no queue pair available",
            Self::NO_EEC => "no end-to-end context available",
            Self::NO_RESOURCES => "no resources available",
            Self::TIMEOUT => "the peer gave up waiting",
            Self::UNSUPPORTED_REQUEST => "unsupported request",
            Self::INVALID_COMM_ID => "unknown connection",
            Self::INVALID_COMM_INSTANCE => "unknown connection instance",
            Self::INVALID_SERVICE_ID => "no service listens on this port",
            Self::INVALID_TRANSPORT_TYPE => "unsupported transport type",
            Self::STALE_CONNECTION => "the peer still held an older connection of this queue pair",
            Self::NO_RDC => "no such reliable datagram channel",
            Self::INVALID_GID => "wrong address in the request",
            Self::INVALID_LID => "wrong LID in the request",
            Self::INVALID_SL => "service level not supported",
            Self::INVALID_TRAFFIC_CLASS => "traffic class not supported",
            Self::INVALID_HOP_LIMIT => "hop limit not supported",
            Self::INVALID_PACKET_RATE => "packet rate not supported",
            Self::INVALID_ALT_GID => "wrong address of the alternate path",
            Self::INVALID_ALT_LID => "wrong LID of the alternate path",
            Self::INVALID_ALT_SL => "service level of the alternate path not supported",
            Self::INVALID_ALT_TRAFFIC_CLASS => "traffic class of the alternate path not supported",
            Self::INVALID_ALT_HOP_LIMIT => "hop limit of the alternate path not supported",
            Self::INVALID_ALT_PACKET_RATE => "packet rate of the alternate path not supported",
            Self::PORT_CM_REDIRECT => "redirected to another port and connection manager",
            Self::PORT_REDIRECT => "redirected to another port",
            Self::INVALID_PATH_MTU => "path MTU not supported",
            Self::INSUFFICIENT_RESPONDER_RESOURCES => "too few responder resources",
            Self::CONSUMER => "refused by the application",
            Self::RNR_RETRY_COUNT => "RNR retry count not supported",
            Self::DUPLICATE_COMM_ID => "duplicate connection identifier",
            Self::INVALID_CLASS_VERSION => "class version not supported",
            Self::INVALID_FLOW_LABEL => "flow label not supported",
            Self::INVALID_ALT_FLOW_LABEL => "flow label of the alternate path not supported",
            _ => "refused",
        }
    }
}

mad_struct! {
    /// Reject (IBTA 12.6.7).
    Rej {
        /// Identifies the connection at the sender; 0 in answer to a REQ.
        pub local_comm_id: U32,
        /// Identifies the connection at the receiver.
        pub remote_comm_id: U32,
        message: u8,
        info_length: u8,
        reason: U16,
        info: [u8; 72],
        /// For the consumer.
        pub private_data: [u8; 148],
    }
}

impl Rej {
    /// Refuses a message: 0 REQ, 1 REP, 2 none of them (an unknown or timed-out connection).
    pub fn new(local_comm_id: u32, remote_comm_id: u32, message_rejected: u8, reason: RejReason) -> Self {
        let mut rej = Self {
            local_comm_id: U32::new(local_comm_id),
            remote_comm_id: U32::new(remote_comm_id),
            reason: U16::new(reason.0),
            ..Self::new_zeroed()
        };
        rej.set_message_rejected(message_rejected);
        rej
    }

    /// Sets the additional information, at most 72 bytes; more is cut off.
    pub fn set_information(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.info.len());
        self.info[..len].copy_from_slice(&bytes[..len]);
        self.info[len..].fill(0);
        self.set_info_length(len as u8);
    }

    /// The additional information.
    pub fn information(&self) -> &[u8] {
        &self.info[..usize::from(self.info_length()).min(self.info.len())]
    }

    /// Why.
    pub const fn reason(&self) -> RejReason {
        RejReason(self.reason.get())
    }

    bits! {
        /// What was refused: 0 REQ, 1 REP, 2 other.
        message[6; 2] message_rejected, set_message_rejected
    }
    bits! {
        /// Bytes of additional information.
        info_length[1; 7] info_length, set_info_length
    }
}

mad_struct! {
    /// Reply to a request: accepted (IBTA 12.6.8).
    Rep {
        /// Identifies the connection at the sender.
        pub local_comm_id: U32,
        /// Identifies the connection at the receiver.
        pub remote_comm_id: U32,
        /// Datagram services only.
        pub local_q_key: U32,
        local_qpn: U24,
        reserved0: u8,
        local_eecn: U24,
        reserved1: u8,
        starting_psn: U24,
        reserved2: u8,
        /// READs and atomics that the sender can serve at once.
        pub responder_resources: u8,
        /// READs and atomics that the sender may have outstanding.
        pub initiator_depth: u8,
        ack_delay: u8,
        rnr: u8,
        /// GUID of the sender's channel adapter.
        pub local_ca_guid: U64,
        /// For the consumer.
        pub private_data: [u8; 196],
    }
}

impl Rep {
    /// Accepts a request with the queue pair `qpn`.
    pub fn new(local_comm_id: u32, remote_comm_id: u32, qpn: Qpn, starting_psn: Psn) -> Self {
        Self {
            local_comm_id: U32::new(local_comm_id),
            remote_comm_id: U32::new(remote_comm_id),
            local_qpn: qpn.into(),
            starting_psn: starting_psn.into(),
            ..Self::new_zeroed()
        }
    }

    bits! {
        /// Longest time from a request to its acknowledgement, as a code.
        ack_delay[3; 5] target_ack_delay, set_target_ack_delay
    }
    bits! {
        /// Retries on receiver-not-ready; 7 is without limit.
        rnr[5; 3] rnr_retry_count, set_rnr_retry_count
    }
}

mad_struct! {
    /// Ready to use (IBTA 12.6.9).
    Rtu {
        /// Identifies the connection at the sender.
        pub local_comm_id: U32,
        /// Identifies the connection at the receiver.
        pub remote_comm_id: U32,
        /// For the consumer.
        pub private_data: [u8; 224],
    }
}

mad_struct! {
    /// Request for communication release (IBTA 12.6.10).
    Dreq {
        /// Identifies the connection at the sender.
        pub local_comm_id: U32,
        /// Identifies the connection at the receiver.
        pub remote_comm_id: U32,
        remote_qpn: U24,
        reserved0: u8,
        /// For the consumer.
        pub private_data: [u8; 220],
    }
}

impl Dreq {
    /// Ends a connection; `remote_qpn` is the receiver's queue pair.
    pub fn new(local_comm_id: u32, remote_comm_id: u32, remote_qpn: Qpn) -> Self {
        Self {
            local_comm_id: U32::new(local_comm_id),
            remote_comm_id: U32::new(remote_comm_id),
            remote_qpn: remote_qpn.into(),
            ..Self::new_zeroed()
        }
    }

    /// The receiver's queue pair.
    pub fn remote_qpn(&self) -> Qpn {
        self.remote_qpn.into()
    }
}

mad_struct! {
    /// Reply to a request for communication release (IBTA 12.6.11).
    Drep {
        /// Identifies the connection at the sender.
        pub local_comm_id: U32,
        /// Identifies the connection at the receiver.
        pub remote_comm_id: U32,
        /// For the consumer.
        pub private_data: [u8; 224],
    }
}

macro_rules! ids_only {
    ($($vis:vis $name:ident::$new:ident),*) => {$(
        impl $name {
            /// With nothing but the two identifiers.
            $vis fn $new(local_comm_id: u32, remote_comm_id: u32) -> Self {
                Self {
                    local_comm_id: U32::new(local_comm_id),
                    remote_comm_id: U32::new(remote_comm_id),
                    ..Self::new_zeroed()
                }
            }
        }
    )*};
}
ids_only!(pub Rtu::new, pub Drep::new, Mra::with_ids);

/// A CM message, lying over the bytes of its MAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the message that it names
pub enum Message<'a> {
    Req(&'a Req),
    Mra(&'a Mra),
    Rej(&'a Rej),
    Rep(&'a Rep),
    Rtu(&'a Rtu),
    Dreq(&'a Dreq),
    Drep(&'a Drep),
}

impl<'a> Message<'a> {
    /// Reads a MAD and returns its transaction ID, which answers repeat, and its message.
    pub fn parse(mad: &'a [u8]) -> Result<(u64, Self), ParseError> {
        fn body<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> Result<&T, ParseError> {
            T::ref_from_bytes(bytes).map_err(|_| ParseError::Mad)
        }
        let (header, bytes) = MadHeader::read_from_prefix(mad).map_err(|_| ParseError::Truncated)?;
        if !header.is_cm() || bytes.len() != BODY {
            return Err(ParseError::Mad);
        }
        let message = match header.attribute_id.get() {
            0x10 => Self::Req(body(bytes)?),
            0x11 => Self::Mra(body(bytes)?),
            0x12 => Self::Rej(body(bytes)?),
            0x13 => Self::Rep(body(bytes)?),
            0x14 => Self::Rtu(body(bytes)?),
            0x15 => Self::Dreq(body(bytes)?),
            0x16 => Self::Drep(body(bytes)?),
            _ => return Err(ParseError::CmAttribute),
        };
        Ok((header.transaction_id.get(), message))
    }

    /// The MAD of this message.
    pub fn to_mad(&self, transaction_id: u64) -> [u8; MAD_LEN] {
        let (attribute, body) = match self {
            Self::Req(m) => (0x10, m.as_bytes()),
            Self::Mra(m) => (0x11, m.as_bytes()),
            Self::Rej(m) => (0x12, m.as_bytes()),
            Self::Rep(m) => (0x13, m.as_bytes()),
            Self::Rtu(m) => (0x14, m.as_bytes()),
            Self::Dreq(m) => (0x15, m.as_bytes()),
            Self::Drep(m) => (0x16, m.as_bytes()),
        };
        let mut mad = [0; MAD_LEN];
        mad[..size_of::<MadHeader>()].copy_from_slice(MadHeader::new(transaction_id, attribute).as_bytes());
        mad[size_of::<MadHeader>()..].copy_from_slice(body);
        mad
    }
}

/// Puts `data` at the start of a private data field and zeros behind it.
pub fn set_private_data(field: &mut [u8], data: &[u8]) -> Result<(), BuildError> {
    let (used, unused) = field.split_at_mut_checked(data.len()).ok_or(BuildError::TooLong)?;
    used.copy_from_slice(data);
    unused.fill(0);
    Ok(())
}
