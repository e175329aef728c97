// SPDX-License-Identifier: Apache-2.0
//! Errors of parsers and builders.

use thiserror::Error;

/// Why a frame, packet or message was not accepted. One variant per check; each is also a drop counter's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ParseError {
    /// The bytes end before the header or message that they announce.
    #[error("truncated")]
    Truncated,
    /// EtherType is not the expected one.
    #[error("unexpected EtherType")]
    EtherType,
    /// ARP is not about Ethernet and IPv4, or its operation is neither request nor reply.
    #[error("malformed ARP")]
    Arp,
    /// IP version is not 4.
    #[error("IP version is not 4")]
    IpVersion,
    /// IPv4 header length is not 20 bytes: options are not part of RoCEv2 here.
    #[error("IPv4 options are not supported")]
    IpOptions,
    /// IPv4 total length is shorter than the headers or longer than the frame.
    #[error("IPv4 total length does not fit the frame")]
    IpLength,
    /// IPv4 header checksum is wrong.
    #[error("wrong IPv4 header checksum")]
    IpChecksum,
    /// The datagram is a fragment; RoCEv2 forbids fragmentation.
    #[error("IPv4 fragment")]
    IpFragment,
    /// IPv4 protocol is not the expected one.
    #[error("unexpected IP protocol")]
    IpProtocol,
    /// ICMP type or code is not an echo.
    #[error("not an ICMP echo")]
    IcmpType,
    /// ICMP checksum is wrong.
    #[error("wrong ICMP checksum")]
    IcmpChecksum,
    /// UDP length differs from what IPv4 carries.
    #[error("UDP length does not fit the datagram")]
    UdpLength,
    /// There is a UDP checksum, and it is wrong.
    #[error("wrong UDP checksum")]
    UdpChecksum,
    /// UDP destination port is not 4791.
    #[error("UDP destination port is not RoCEv2's")]
    UdpPort,
    /// The first word of a packet is no header of IPbus 2.0.
    #[error("not a packet of IPbus 2.0")]
    IpbusHeader,
    /// BTH transport header version is not 0 (IBTA 9.6.1.1).
    #[error("BTH version is not 0")]
    BthVersion,
    /// BTH opcode is unknown (IBTA 9.2.1).
    #[error("unknown BTH opcode")]
    BthOpcode,
    /// Pad count exceeds the payload, or the payload and pad are not a multiple of 4 bytes (IBTA 9.2.3).
    #[error("BTH pad count does not fit the payload")]
    BthPad,
    /// The invariant CRC is wrong (RoCEv2 annex A17.3.3).
    #[error("wrong ICRC")]
    Icrc,
    /// MAD header is not a CM MAD of the known versions.
    #[error("not a communication-management MAD")]
    Mad,
    /// CM attribute is not one of REQ, MRA, REJ, REP, RTU, DREQ, DREP.
    #[error("unknown CM attribute")]
    CmAttribute,
    /// RDMA IP-CM private header has another version than 0, or another IP version than 4 and 6.
    #[error("unsupported RDMA IP-CM header")]
    IpCm,
    /// MRSP message type is unknown.
    #[error("unknown MRSP message type")]
    MrspType,
    /// MRSP message length does not match its count.
    #[error("MRSP count does not match the length")]
    MrspCount,
    /// A step of a chain names no function, or regions that the message does not have.
    #[error("a step of a chain without a function or without regions")]
    MrspStep,
    /// Immediate value has no meaning in this direction.
    #[error("undefined immediate value")]
    Immediate,
    /// Kernel argument block does not start with its magic number.
    #[error("wrong magic number in an argument block")]
    ArgsMagic,
    /// Kernel argument block has an unknown data type.
    #[error("unknown data type in an argument block")]
    ArgsType,
    /// Kernel argument block has an unknown operation.
    #[error("unknown operation in an argument block")]
    ArgsOperation,
    /// Reserved bytes of a kernel argument block are not zero.
    #[error("reserved bytes of an argument block are not zero")]
    ArgsReserved,
}

/// Why a frame or message could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum BuildError {
    /// The caller's buffer is too short; `needed` bytes would do.
    #[error("the buffer is too short: {needed} bytes needed")]
    BufferTooShort {
        /// Bytes that the result takes.
        needed: usize,
    },
    /// The extension headers given are not those of the opcode (IBTA 9.2.1, table 38).
    #[error("the extension headers do not belong to the opcode")]
    ExtMismatch,
    /// More payload, regions or private data than the format can carry.
    #[error("too long for the format")]
    TooLong,
}
