// SPDX-License-Identifier: Apache-2.0
//! What a frame is, for traces and reports.

use std::fmt;
use std::net::Ipv4Addr;

use nacelle_wire::arp::{ArpPacket, Operation};
use nacelle_wire::cm::Message;
use nacelle_wire::ethernet::EthernetHeader;
use nacelle_wire::icmp::{EchoPacket, Kind};
use nacelle_wire::ipv4::Ipv4Header;
use nacelle_wire::roce::LOWER_LEN;
use nacelle_wire::transport::Ext;
use nacelle_wire::udp::UdpHeader;
use nacelle_wire::{ParseError, Qpn, RocePacket, icrc};
use serde::{Deserialize, Serialize};

/// The protocol and operation of a frame, and what distinguishes it from others of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "protocol", rename_all = "kebab-case")]
pub enum FrameKind {
    /// ARP (RFC 826): who has `target`?
    ArpRequest {
        /// The requested address.
        target: Ipv4Addr,
        /// The sender of the request.
        sender: Ipv4Addr,
    },
    /// ARP: `sender` is here.
    ArpReply {
        /// The address found.
        sender: Ipv4Addr,
    },
    /// ICMP echo (RFC 792).
    Echo {
        /// Whether it is the answer.
        reply: bool,
        /// Identifier.
        id: u16,
        /// Sequence number.
        seq: u16,
    },
    /// Connection management (IBTA 12).
    Cm {
        /// The message's name, as the standard writes it.
        message: String,
    },
    /// Reliable connection (IBTA 9).
    Rc {
        /// The operation, as [`nacelle_wire::bth::Opcode`] names it.
        opcode: String,
        /// Destination queue pair.
        qp: u32,
        /// Packet sequence number.
        psn: u32,
        /// Bytes of payload.
        payload: u32,
        /// Immediate value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        immediate: Option<u32>,
        /// Syndrome of an acknowledgement (IBTA 9.7.5.2).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        syndrome: Option<u8>,
    },
    /// RoCEv2 with a wrong ICRC.
    WrongIcrc,
    /// Anything else.
    Other,
}

impl FrameKind {
    /// What `frame` is, from its Ethernet header on.
    #[must_use]
    pub fn of(frame: &[u8]) -> Self {
        if let Ok(arp) = ArpPacket::parse(frame) {
            return match arp.operation {
                Operation::Request => Self::ArpRequest { target: arp.target_ip, sender: arp.sender_ip },
                Operation::Reply => Self::ArpReply { sender: arp.sender_ip },
            };
        }
        if let Ok(echo) = EchoPacket::parse(frame) {
            return Self::Echo { reply: echo.kind == Kind::Reply, id: echo.identifier, seq: echo.sequence };
        }
        match RocePacket::parse(frame) {
            Ok(packet) => Self::of_roce(&packet),
            Err(ParseError::Icrc) => Self::WrongIcrc,
            Err(_) => Self::Other,
        }
    }

    /// What a frame of this length is of which only the `start` is known. That what follows is as it should be is taken for granted.
    #[must_use]
    pub fn of_start(start: &[u8], length: usize) -> Self {
        if start.len() >= length {
            return Self::of(start);
        }
        let mut whole = start.to_vec();
        whole.resize(length, 0);
        if let Some((at, icrc)) = icrc_of(&whole) {
            whole[at..at + icrc::LEN].copy_from_slice(&icrc);
        }
        Self::of(&whole)
    }

    fn of_roce(packet: &RocePacket<'_>) -> Self {
        let bth = &packet.headers.bth;
        if bth.dest_qp() == Qpn::GSI {
            let name = match Message::parse(packet.payload) {
                Ok((_, Message::Req(_))) => "REQ",
                Ok((_, Message::Mra(_))) => "MRA",
                Ok((_, Message::Rej(_))) => "REJ",
                Ok((_, Message::Rep(_))) => "REP",
                Ok((_, Message::Rtu(_))) => "RTU",
                Ok((_, Message::Dreq(_))) => "DREQ",
                Ok((_, Message::Drep(_))) => "DREP",
                Err(_) => "unknown",
            };
            return Self::Cm { message: name.into() };
        }
        let immediate = match packet.headers.ext {
            Ext::Imm(imm) | Ext::RethImm(_, imm) => Some(imm.get()),
            _ => None,
        };
        let syndrome = match packet.headers.ext {
            Ext::Aeth(aeth) | Ext::AethAtomic(aeth, _) => Some(aeth.syndrome().to_u8()),
            _ => None,
        };
        Self::Rc {
            opcode: format!("{:?}", packet.opcode),
            qp: bth.dest_qp().get(),
            psn: bth.psn().get(),
            payload: packet.payload.len() as u32,
            immediate,
            syndrome,
        }
    }
}

/// The ICRC that a frame must have, and its place.
fn icrc_of(frame: &[u8]) -> Option<(usize, [u8; icrc::LEN])> {
    let (_, datagram) = EthernetHeader::parse(frame).ok()?;
    let (ip, segment) = Ipv4Header::parse(datagram).ok()?;
    let (udp, datagram) = UdpHeader::parse(&ip, segment).ok()?;
    let (transport, _) = icrc::split(datagram).ok()?;
    Some((LOWER_LEN + transport.len(), icrc::over_ipv4(&ip, &udp, transport)))
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArpRequest { target, sender } => write!(f, "ARP who has {target}? {sender} asks"),
            Self::ArpReply { sender } => write!(f, "ARP {sender} is here"),
            Self::Echo { reply, id, seq } => {
                write!(f, "ICMP echo {} id={id} seq={seq}", if *reply { "reply" } else { "request" })
            }
            Self::Cm { message } => write!(f, "CM {message}"),
            Self::Rc { opcode, qp, psn, payload, immediate, syndrome } => {
                write!(f, "RC {opcode} qp={qp:#08x} psn={psn:#08x} payload={payload}")?;
                if let Some(immediate) = immediate {
                    write!(f, " imm={immediate:#010x}")?;
                }
                if let Some(syndrome) = syndrome {
                    write!(f, " syndrome={syndrome:#04x}")?;
                }
                Ok(())
            }
            Self::WrongIcrc => f.write_str("RoCE with a wrong ICRC"),
            Self::Other => f.write_str("other"),
        }
    }
}
