// SPDX-License-Identifier: Apache-2.0
//! What Nacelle endpoints agree on beyond the standard: a record in the last 8 bytes of the private data of REQ and REP.
//!
//! docs/reference/extensions.md has its bytes.

use core::ops::{BitAnd, BitOr};

use crate::BuildError;

/// A set of extensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions(pub u8);

impl Extensions {
    /// None.
    pub const NONE: Self = Self(0);
    /// Only lost packets are sent again.
    pub const SELECTIVE_REPEAT: Self = Self(1);
    /// Several contexts on a connection (docs/reference/calls.md).
    pub const CONTEXTS: Self = Self(2);
    /// Set-up messages with 64-bit sizes, a deadline and a chain. Needs contexts.
    pub const LONG_SET_UP: Self = Self(4);

    /// The peer has windows (docs/reference/transfers.md).
    pub const WINDOWS: Self = Self(16);

    /// In a REQ: the last 16 bytes before the record are a token (docs/reference/admission.md).
    pub const TOKEN: Self = Self(32);

    /// An acknowledgement of what consumes a receive may follow the application's answer to it.
    pub const LATE_ACKNOWLEDGEMENT: Self = Self(8);

    /// Whether all of `other` are among these.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Extensions {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Extensions {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// What one side offers, or both have agreed on.
///
/// Record: magic `NACL`, version 1, extensions, contexts, a reserved byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The extensions.
    pub extensions: Extensions,
    /// How many contexts; 0 without [`Extensions::CONTEXTS`].
    pub contexts: u8,
}

impl Agreement {
    /// Bytes that the record takes of the private data.
    pub const LEN: usize = 8;

    const HEAD: [u8; 5] = *b"NACL\x01";

    /// These extensions, with this number of contexts if they are among them. What does not go together is left out: contexts
    /// without a number, long set-up without contexts.
    pub const fn new(extensions: Extensions, contexts: u8) -> Self {
        if extensions.contains(Extensions::CONTEXTS) && contexts != 0 {
            Self { extensions, contexts }
        } else {
            let extensions = extensions.without(Extensions::CONTEXTS).without(Extensions::LONG_SET_UP);
            Self { extensions, contexts: 0 }
        }
    }

    /// What both sides offer: the extensions of both, and the smaller number of contexts.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self::new(self.extensions & other.extensions, self.contexts.min(other.contexts))
    }

    /// What the private data of a REQ or REP offers; `None` without a record of this version.
    pub fn find(private_data: &[u8]) -> Option<Self> {
        let record = private_data.last_chunk::<{ Self::LEN }>()?;
        let &[extensions, contexts, _] = record.strip_prefix(&Self::HEAD)? else { return None };
        Some(Self { extensions: Extensions(extensions), contexts })
    }

    /// Puts the record at the end of a private data field.
    pub fn put(self, private_data: &mut [u8]) -> Result<(), BuildError> {
        let record = private_data.last_chunk_mut::<{ Self::LEN }>().ok_or(BuildError::TooLong)?;
        let (head, fields) = record.split_at_mut(Self::HEAD.len());
        head.copy_from_slice(&Self::HEAD);
        fields.copy_from_slice(&[self.extensions.0, self.contexts, 0]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Extensions = Extensions(7);

    #[test]
    fn what_does_not_go_together_is_not_agreed() {
        let offer = |extensions, contexts| Agreement { extensions: Extensions(extensions), contexts };
        for (a, b, agreed) in [
            (offer(7, 8), offer(7, 3), offer(7, 3)),
            (offer(7, 2), offer(7, 8), offer(7, 2)),
            (offer(7, 0), offer(7, 8), offer(1, 0)),
            (offer(5, 4), offer(7, 8), offer(1, 0)),
            (offer(3, 4), offer(7, 8), offer(3, 4)),
            (offer(0xff, 255), offer(7, 8), offer(7, 8)),
            (offer(1, 9), offer(7, 8), offer(1, 0)),
        ] {
            assert_eq!(a.common(b), agreed, "{a:?} {b:?}");
            assert_eq!(b.common(a), agreed, "{b:?} {a:?}");
        }
    }

    #[test]
    fn a_record_of_another_version_is_none() {
        let mut private_data = [0; 56];
        assert_eq!(Agreement::find(&private_data), None);
        Agreement::new(ALL, 8).put(&mut private_data).unwrap();
        assert_eq!(private_data[..48], [0; 48]);
        assert_eq!(private_data[48..], *b"NACL\x01\x07\x08\x00");
        assert_eq!(Agreement::find(&private_data), Some(Agreement::new(ALL, 8)));
        private_data[52] = 2;
        assert_eq!(Agreement::find(&private_data), None);
        assert_eq!(Agreement::default().put(&mut [0; 7]), Err(BuildError::TooLong));
    }
}
