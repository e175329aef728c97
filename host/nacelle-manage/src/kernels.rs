// SPDX-License-Identifier: Apache-2.0
//! Kernels of a device that take each other's place at run time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// SHA-256 of an image: of what it is made from for the simulated RTL, of the shared library or the description for the software
/// device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no SHA-256 digest: 64 hexadecimal digits");
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// A kernel that a socket can hold, or a place for one that can be uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelImage {
    /// The kernel's name; nothing in a place that holds no image which was verified.
    pub name: String,
    /// Its version: major, minor.
    pub version: (u16, u16),
    /// The codes of its functions, ascending.
    pub functions: Vec<u8>,
    /// What it is known by; nothing if it is the only one of its socket.
    pub digest: Option<Digest>,
    /// Whether it has come by the network, or can: see [`images`](crate::images).
    #[serde(default)]
    pub uploaded: bool,
}

/// A place for one kernel at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSocket {
    /// The kernels that it can hold.
    pub images: Vec<KernelImage>,
    /// The one that it holds, if it holds any.
    pub active: Option<u8>,
    /// The one that a roll-back puts there.
    pub former: Option<u8>,
    /// Its kernel is being replaced, or the one before has calls that have not ended.
    pub changing: bool,
    /// Why the last change was not made.
    pub error: Option<ChangeError>,
}

/// Why the kernel of a socket was not changed. The one before is still there, unless the socket holds none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ChangeError {
    /// There is no such image.
    #[error("the socket has no such image")]
    BadImage,
    /// The digest that was named is not the image's.
    #[error("the digest is not that of the image")]
    BadDigest,
    /// Nothing was there before.
    #[error("there is no former kernel to go back to")]
    NoFormer,
    /// What loads images reported an error.
    #[error("the image could not be loaded")]
    NotLoaded,
    /// The kernel did not say in time that it is what its record says.
    #[error("the kernel did not say that it is there")]
    NoIdentity,
    /// Of another kind.
    #[error("the device gives a reason that is not known here")]
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_shown() {
        let digest = Digest(std::array::from_fn(|i| (i * 37) as u8));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(serde_json::from_str::<Digest>(&serde_json::to_string(&digest).unwrap()).unwrap(), digest);
        for wrong in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"é".repeat(32), &"+1".repeat(32)] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }
}
