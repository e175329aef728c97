// SPDX-License-Identifier: Apache-2.0
//! IPbus 2.0: access to registers over UDP ("The IPbus Protocol, version 2.0", IPbus project, 2013).
//!
//! A packet is a header and, in a control packet, transactions; everything is words of 32 bits. A client may send its words in either
//! byte order; a device answers in the same. Addresses count words.

use crate::ParseError;

/// The UDP port where devices listen unless told otherwise.
pub const PORT: u16 = 50001;

/// Words of a status packet, in both directions.
pub const STATUS_WORDS: usize = 16;

const VERSION: u32 = 2;
/// Tells the byte order: the low byte of a header has it in its upper half.
const BYTE_ORDER: u32 = 0xf;

/// The order of the bytes of each word of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl ByteOrder {
    /// A word from its bytes.
    #[must_use]
    pub const fn word(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }

    /// The bytes of a word.
    #[must_use]
    pub const fn bytes(self, word: u32) -> [u8; 4] {
        match self {
            Self::Big => word.to_be_bytes(),
            Self::Little => word.to_le_bytes(),
        }
    }
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Transactions.
    Control,
    /// The state of the device's side of the reliability mechanism.
    Status,
    /// A request to send the response with this packet id again.
    Resend,
}

/// The first word of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// What follows.
    pub kind: PacketKind,
    /// Its number: 1 to 65535 count control packets, 0 is for packets that are not repeated.
    pub id: u16,
}

impl PacketHeader {
    /// Reads the first word of a packet, and in which order its bytes are.
    ///
    /// # Errors
    /// [`ParseError::IpbusHeader`] if it is not one of version 2.
    pub fn parse(bytes: [u8; 4]) -> Result<(Self, ByteOrder), ParseError> {
        // The first byte of the word is never that of its last: only one order makes a header.
        let orders = [ByteOrder::Big, ByteOrder::Little];
        let read = |order: ByteOrder| Some((Self::from_word(order.word(bytes))?, order));
        orders.into_iter().find_map(read).ok_or(ParseError::IpbusHeader)
    }

    /// Reads the word.
    #[must_use]
    pub const fn from_word(word: u32) -> Option<Self> {
        if word >> 24 != VERSION << 4 || word >> 4 & 0xf != BYTE_ORDER {
            return None;
        }
        let kind = match word & 0xf {
            0 => PacketKind::Control,
            1 => PacketKind::Status,
            2 => PacketKind::Resend,
            _ => return None,
        };
        Some(Self { kind, id: (word >> 8) as u16 })
    }

    /// The word.
    #[must_use]
    pub const fn to_word(self) -> u32 {
        let kind = match self.kind {
            PacketKind::Control => 0,
            PacketKind::Status => 1,
            PacketKind::Resend => 2,
        };
        VERSION << 28 | (self.id as u32) << 8 | BYTE_ORDER << 4 | kind
    }
}

/// The packet id behind `id`: 0 does not count packets.
#[must_use]
pub const fn next_id(id: u16) -> u16 {
    if id == u16::MAX { 1 } else { id + 1 }
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// Reads words at rising addresses.
    Read,
    /// Writes words at rising addresses.
    Write,
    /// Reads one address many times.
    NonIncrementingRead,
    /// Writes one address many times.
    NonIncrementingWrite,
    /// `x = (x & a) | b`; gives the value before.
    RmwBits,
    /// `x = x + a`; gives the value before.
    RmwSum,
    /// Reads the configuration space.
    ConfigurationRead,
    /// Writes the configuration space.
    ConfigurationWrite,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoCode {
    /// As it should.
    Success,
    /// The device does not know the header.
    BadHeader,
    /// A register answered a read with an error.
    ReadError,
    /// A register answered a write with an error.
    WriteError,
    /// A register did not answer a read.
    ReadTimeout,
    /// A register did not answer a write.
    WriteTimeout,
    /// It has not: the header is that of a request.
    Request,
}

/// The first word of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionHeader {
    /// Its number in the packet, 12 bits.
    pub id: u16,
    /// Words that it moves.
    pub words: u8,
    /// What it does.
    pub kind: TransactionKind,
    /// How it ended, in a response.
    pub info: InfoCode,
}

impl TransactionHeader {
    /// Reads the word. `None` if it is not one of version 2.
    #[must_use]
    pub const fn from_word(word: u32) -> Option<Self> {
        if word >> 28 != VERSION {
            return None;
        }
        let kind = match word >> 4 & 0xf {
            0 => TransactionKind::Read,
            1 => TransactionKind::Write,
            2 => TransactionKind::NonIncrementingRead,
            3 => TransactionKind::NonIncrementingWrite,
            4 => TransactionKind::RmwBits,
            5 => TransactionKind::RmwSum,
            6 => TransactionKind::ConfigurationRead,
            7 => TransactionKind::ConfigurationWrite,
            _ => return None,
        };
        let info = match word & 0xf {
            0 => InfoCode::Success,
            1 => InfoCode::BadHeader,
            4 => InfoCode::ReadError,
            5 => InfoCode::WriteError,
            6 => InfoCode::ReadTimeout,
            7 => InfoCode::WriteTimeout,
            0xf => InfoCode::Request,
            _ => return None,
        };
        Some(Self { id: (word >> 16 & 0xfff) as u16, words: (word >> 8) as u8, kind, info })
    }

    /// The word.
    #[must_use]
    pub const fn to_word(self) -> u32 {
        let kind = match self.kind {
            TransactionKind::Read => 0,
            TransactionKind::Write => 1,
            TransactionKind::NonIncrementingRead => 2,
            TransactionKind::NonIncrementingWrite => 3,
            TransactionKind::RmwBits => 4,
            TransactionKind::RmwSum => 5,
            TransactionKind::ConfigurationRead => 6,
            TransactionKind::ConfigurationWrite => 7,
        };
        let info = match self.info {
            InfoCode::Success => 0,
            InfoCode::BadHeader => 1,
            InfoCode::ReadError => 4,
            InfoCode::WriteError => 5,
            InfoCode::ReadTimeout => 6,
            InfoCode::WriteTimeout => 7,
            InfoCode::Request => 0xf,
        };
        VERSION << 28 | (self.id as u32 & 0xfff) << 16 | (self.words as u32) << 8 | kind << 4 | info
    }

    /// Words behind the header of a request: the address and what follows it.
    #[must_use]
    pub const fn request_words(self) -> usize {
        match self.kind {
            TransactionKind::Read | TransactionKind::NonIncrementingRead | TransactionKind::ConfigurationRead => 1,
            TransactionKind::RmwSum => 2,
            TransactionKind::RmwBits => 3,
            TransactionKind::Write | TransactionKind::NonIncrementingWrite | TransactionKind::ConfigurationWrite => {
                1 + self.words as usize
            }
        }
    }
}

/// What a device tells in a status packet about its side of the reliability mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Longest packet that it takes and sends, in bytes of UDP payload.
    pub mtu: u32,
    /// Responses that it stores for a resend: as many control packets may be under way.
    pub buffers: u32,
    /// Id of the next control packet that it executes.
    pub next: u16,
}

impl Status {
    /// From the words of a status response, its header first. `None` if it is not one.
    #[must_use]
    pub fn from_words(words: &[u32]) -> Option<Self> {
        let [header, mtu, buffers, next, ..] = *words else { return None };
        let header = PacketHeader::from_word(header)?;
        let next = PacketHeader::from_word(next)?;
        (header.kind == PacketKind::Status && next.kind == PacketKind::Control).then_some(Self {
            mtu,
            buffers,
            next: next.id,
        })
    }

    /// The words of the response. The history of packets in its last 12 words is not kept: they are 0.
    #[must_use]
    pub const fn to_words(self) -> [u32; STATUS_WORDS] {
        let mut words = [0; STATUS_WORDS];
        words[0] = PacketHeader { kind: PacketKind::Status, id: 0 }.to_word();
        words[1] = self.mtu;
        words[2] = self.buffers;
        words[3] = PacketHeader { kind: PacketKind::Control, id: self.next }.to_word();
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every word that is a header comes out as it went in.
        #[test]
        fn headers_come_out_the_same(word in any::<u32>(), info in 0_u32..16, kind in 0_u32..16) {
            for word in [word, word & 0x0fff_ff00 | 0x2000_0000 | kind << 4 | info, word & 0x00ff_ff00 | 0x2000_00f0 | info] {
                if let Some(header) = PacketHeader::from_word(word) {
                    prop_assert_eq!(header.to_word(), word);
                    for order in [ByteOrder::Big, ByteOrder::Little] {
                        let bytes = order.bytes(word);
                        prop_assert_eq!(PacketHeader::parse(bytes).unwrap(), (header, order));
                    }
                }
                if let Some(header) = TransactionHeader::from_word(word) {
                    prop_assert_eq!(header.to_word(), word);
                }
            }
        }

        #[test]
        fn a_status_comes_out_the_same(mtu in any::<u32>(), buffers in any::<u32>(), next in any::<u16>()) {
            let status = Status { mtu, buffers, next };
            prop_assert_eq!(Status::from_words(&status.to_words()), Some(status));
        }
    }

    /// Words that the uHAL client and the reference firmware exchange.
    #[test]
    fn words_of_the_reference() {
        let control = PacketHeader { kind: PacketKind::Control, id: 0x1234 };
        assert_eq!(control.to_word(), 0x2012_34f0);
        assert_eq!(PacketHeader::parse([0xf1, 0, 0, 0x20]).unwrap().1, ByteOrder::Little);
        let read = TransactionHeader { id: 0xabc, words: 7, kind: TransactionKind::Read, info: InfoCode::Request };
        assert_eq!(read.to_word(), 0x2abc_070f);
        assert_eq!(PacketHeader::parse([0x10, 0, 0, 0xf0]), Err(ParseError::IpbusHeader));
        assert_eq!(PacketHeader::parse([0x20, 0, 0, 0xf3]), Err(ParseError::IpbusHeader));
        assert_eq!(next_id(0xffff), 1);
    }
}
