// SPDX-License-Identifier: Apache-2.0
//! Admission of callers (docs/reference/admission.md): the token that a REQ carries, and what a REJ or DREQ says of it.

use core::fmt;

use crate::extensions::{Agreement, Extensions};
use crate::{BuildError, ParseError};

/// A secret of 16 bytes by which a device admits its caller. It is not shown, and compared in constant time.
#[derive(Clone, Copy)]
pub struct Token([u8; Self::LEN]);

impl Token {
    /// Its length in bytes.
    pub const LEN: usize = 16;

    /// These bytes; `None` if all are zero, which stands for no token.
    pub fn new(bytes: [u8; Self::LEN]) -> Option<Self> {
        (bytes != [0; Self::LEN]).then_some(Self(bytes))
    }

    /// From 32 hexadecimal digits.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let digits = digits.as_bytes();
        if digits.len() != 2 * Self::LEN {
            return None;
        }
        let mut bytes = [0; Self::LEN];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Self::new(bytes)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// As four words, the first byte the highest of the first.
    pub fn words(&self) -> [u32; 4] {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(self.0.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        words
    }

    /// Puts it into the private data of a REQ that has a record of extensions, or gets one: the last 16 bytes before the record.
    pub fn put(&self, private_data: &mut [u8]) -> Result<(), BuildError> {
        let mut offer = Agreement::find(private_data).unwrap_or_default();
        offer.extensions = offer.extensions | Extensions::TOKEN;
        offer.put(private_data)?;
        place_mut(private_data).ok_or(BuildError::TooLong)?.copy_from_slice(&self.0);
        Ok(())
    }

    /// Takes the token out of the private data of a REQ: zeros stay in its place. `Some` also for one that is all zero, which no
    /// entry has.
    pub fn take(private_data: &mut [u8]) -> Option<Self> {
        Agreement::find(private_data).filter(|offer| offer.extensions.contains(Extensions::TOKEN))?;
        let place = place_mut(private_data)?;
        let mut bytes = [0; Self::LEN];
        bytes.copy_from_slice(place);
        place.fill(0);
        Some(Self(bytes))
    }
}

/// Where a token is.
fn place_mut(private_data: &mut [u8]) -> Option<&mut [u8]> {
    let end = private_data.len().checked_sub(Agreement::LEN)?;
    private_data.get_mut(end.checked_sub(Token::LEN)?..end)
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        let differs = self.0.iter().zip(&other.0).fold(0, |all, (a, b)| all | core::hint::black_box(a ^ b));
        core::hint::black_box(differs) == 0
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// Why a caller is not admitted, or its connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Why {
    /// The entry that admitted it was revoked.
    Revoked = 1,
    /// Its entry's time is over.
    TimeOver = 2,
    /// It has sent no token, and no entry is for its address.
    NoToken = 3,
    /// No entry is for its token and address.
    Unknown = 4,
    /// Its entry has as many connections as it may have.
    Connections = 5,
}

impl Why {
    /// Every reason.
    pub const ALL: [Self; 5] = [Self::Revoked, Self::TimeOver, Self::NoToken, Self::Unknown, Self::Connections];

    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Revoked => "its admission was revoked",
            Self::TimeOver => "the time of its admission is over",
            Self::NoToken => "it takes a token, and none was sent",
            Self::Unknown => "it does not know this token, or not from this address",
            Self::Connections => "all connections that this token admits are in use",
        }
    }

    /// What the private data of a REJ or DREQ says.
    ///
    /// # Errors
    /// If they say nothing of admission.
    pub fn find(private_data: &[u8]) -> Result<Self, ParseError> {
        let note = private_data.first_chunk::<{ Self::LEN }>().ok_or(ParseError::Truncated)?;
        let [code, _, _] = note.strip_prefix(&Self::HEAD).ok_or(ParseError::Mad)? else { return Err(ParseError::Mad) };
        Self::ALL.into_iter().find(|why| *why as u8 == *code).ok_or(ParseError::Mad)
    }

    /// The note that says it.
    pub const fn note(self) -> [u8; Self::LEN] {
        let [a, b, c, d, version] = Self::HEAD;
        [a, b, c, d, version, self as u8, 0, 0]
    }

    /// Bytes of the note, at the begin of the private data.
    pub const LEN: usize = 8;

    const HEAD: [u8; 5] = *b"NACL\x01";
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::format;

    const DIGITS: &str = "000102030405060708090a0b0c0d0eFf";

    #[test]
    fn tokens_are_read_and_not_shown() {
        let token = Token::from_hex(DIGITS).unwrap();
        assert_eq!(token.words(), [0x0001_0203, 0x0405_0607, 0x0809_0a0b, 0x0c0d_0eff]);
        assert_eq!(format!("{token:?}"), "Token(secret)");
        for wrong in ["", "00", &DIGITS[1..], "00000000000000000000000000000000", "0001020304050607 8090a0b0c0d0eff"] {
            assert!(Token::from_hex(wrong).is_none(), "{wrong}");
        }
        for bit in 0..128 {
            let mut other = *token.bytes();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(token, Token(other));
        }
        assert_eq!(token, Token(*token.bytes()));
    }

    #[test]
    fn a_token_is_put_before_the_record_and_taken_out_of_there() {
        let token = Token::from_hex(DIGITS).unwrap();
        let mut private_data = [7; 56];
        Agreement::new(Extensions(1), 0).put(&mut private_data).unwrap();
        token.put(&mut private_data).unwrap();
        assert_eq!(private_data[..32], [7; 32]);
        assert_eq!(private_data[32..48], *token.bytes());
        assert_eq!(private_data[48..], *b"NACL\x01\x21\x00\x00");
        assert_eq!(Token::take(&mut private_data), Some(token));
        assert_eq!(private_data[32..48], [0; 16]);
        let mut without = [7; 56];
        assert_eq!(Token::take(&mut without), None);
        assert_eq!(without, [7; 56]);
        token.put(&mut without).unwrap();
        assert_eq!(without[48..], *b"NACL\x01\x20\x00\x00");
        for length in 0..24 {
            assert!(token.put(&mut [0; 23][..length]).is_err());
            let mut short = [0; 23];
            assert_eq!(Token::take(&mut short[..length.min(23)]), None);
        }
    }

    #[test]
    fn notes() {
        for why in Why::ALL {
            let mut private_data = [0; 148];
            private_data[..8].copy_from_slice(&why.note());
            assert_eq!(Why::find(&private_data), Ok(why));
            assert!(Why::find(&private_data[..7]).is_err());
            private_data[4] = 2;
            assert!(Why::find(&private_data).is_err());
        }
        assert!(Why::find(b"NACL\x01\x00\x00\x00").is_err() && Why::find(b"NACL\x01\x06\x00\x00").is_err());
    }
}
