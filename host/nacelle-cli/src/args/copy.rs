// SPDX-License-Identifier: Apache-2.0
//! The arguments of `nacelle copy`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use super::parse::{parse_number, parse_seconds};

/// What stands before a place in the device's memory.
const DEVICE: &str = "device:";

/// Where bytes come from or go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Device memory, by the offset in the part that is the host's.
    Device(u64),
    /// Standard input or output.
    Standard,
    File(PathBuf),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(DEVICE) {
            Some(offset) => parse_number(offset).map(Self::Device),
            None if text == "-" => Ok(Self::Standard),
            None if text.is_empty() => Err("it must be a file, '-', or device: and an offset".into()),
            None => Ok(Self::File(text.into())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(offset) => write!(f, "{DEVICE}{offset:#x}"),
            Self::Standard => f.write_str("-"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// What is copied: a file, '-' for standard input, or device:OFFSET, in the part of the device's memory that is the host's
    pub(crate) from: Place,
    /// Where to: device:OFFSET, a file, or '-' for standard output. One of the two is in the device, or both
    pub(crate) to: Place,
    /// The device: the socket of its slot, or the PCI address of a board
    #[arg(long, value_name = "SOCKET")]
    pub(crate) slot: PathBuf,
    /// How many bytes; all of a file or of standard input if it is not given
    #[arg(long, value_name = "BYTES", value_parser = parse_number)]
    pub(crate) length: Option<u64>,
    /// Begin so many bytes behind the begin of the file or of standard input
    #[arg(long, value_name = "BYTES", value_parser = parse_number, default_value = "0")]
    pub(crate) skip: u64,
    /// Read the device's memory once more, and compare
    #[arg(long)]
    pub(crate) verify: bool,
    /// Give up when 256 KiB take longer
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "60")]
    pub(crate) timeout: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        for (text, place) in [
            ("device:0x1000", Place::Device(0x1000)),
            ("device:12", Place::Device(12)),
            ("-", Place::Standard),
            ("./device:1", Place::File("./device:1".into())),
        ] {
            assert_eq!(text.parse(), Ok(place.clone()));
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for wrong in ["device:", "device:x", "device:-1", "device:0x1_0000_0000_0000_0000", ""] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
