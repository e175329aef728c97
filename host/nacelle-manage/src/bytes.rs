// SPDX-License-Identifier: Apache-2.0
//! Bytes in JSON.

use serde::{Deserialize, Serialize};

/// Bytes; hexadecimal digits in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Without the zeros at the end: private data has a fixed length.
    #[must_use]
    pub fn trimmed(bytes: &[u8]) -> Self {
        let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        Self(bytes[..length].to_vec())
    }
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("not pairs of hexadecimal digits");
        let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>().ok_or_else(wrong)?;
        if !digits.len().is_multiple_of(2) {
            return Err(wrong());
        }
        Ok(Self(digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Bytes come out as they went in; what is no hexadecimal text is refused.
        #[test]
        fn bytes_survive_json(data in prop::collection::vec(any::<u8>(), 0..100), junk in "[0-9a-z\u{e9}]{0,9}") {
            let text = serde_json::to_string(&Bytes(data.clone())).unwrap();
            prop_assert_eq!(serde_json::from_str::<Bytes>(&text).unwrap().0, data);
            let good = junk.chars().all(|c| c.is_ascii_hexdigit()) && junk.len() % 2 == 0;
            prop_assert_eq!(serde_json::from_str::<Bytes>(&format!("\"{junk}\"")).is_ok(), good);
        }
    }

    #[test]
    fn zeros_at_the_end_are_left_out() {
        assert_eq!(Bytes::trimmed(b"a\0b\0\0").0, b"a\0b");
        assert!(Bytes::trimmed(&[0; 4]).0.is_empty());
    }
}
