// SPDX-License-Identifier: Apache-2.0
//! Regions as people name them: a file to send, or a size.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches, value_parser};
use nacelle::Region;

use crate::failure::Failure;

/// The largest region, in bytes.
const MAX_REGION: u64 = u32::MAX as u64;

/// Makes a region of the bytes of a file.
type OfBytes = fn(Vec<u8>) -> Region;
/// Makes a region of so many bytes.
type OfSize = fn(usize) -> Region;

/// The options that name a file, and what they say of themselves.
const OF_FILES: [(&str, OfBytes, &str); 3] = [
    ("input", Region::input, "A region that the device gets: the bytes of a file"),
    ("single-send", Region::input_once, "The same, marked as one that is sent with the first call only"),
    ("inout", Region::inout, "A region that the device reads and writes"),
];
/// The options that name a size.
const OF_SIZES: [(&str, OfSize, &str); 2] = [
    ("output", Region::output, "A region that the device writes"),
    (
        "internal",
        Region::internal,
        "Device memory for the kernel to work in; kernels see such regions after all others",
    ),
];

/// A region that is asked for.
#[derive(Debug, Clone)]
pub(crate) enum RegionArg {
    /// The bytes of a file.
    File(PathBuf, OfBytes),
    /// So many bytes.
    Size(u32, OfSize),
}

impl RegionArg {
    /// The region itself, with what is in its file.
    pub(crate) fn read(&self) -> Result<Region, Failure> {
        match self {
            Self::File(path, region) => read(path).map(region),
            Self::Size(bytes, region) => Ok(region(*bytes as usize)),
        }
    }
}

/// Whether the device writes it.
pub(crate) fn comes_back(region: &Region) -> bool {
    region.role().comes_back()
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable =
        |why: &str| Failure::usage(format!("cannot read {}: {why}", path.display()), "name a file of 1 byte to 4 GiB");
    let length = std::fs::metadata(path).map_err(|error| unreadable(&error.to_string()))?.len();
    if length == 0 || length > MAX_REGION {
        return Err(unreadable(&format!("it has {length} bytes")));
    }
    std::fs::read(path).map_err(|error| unreadable(&error.to_string()))
}

/// The regions of a call in the order of the command line, whatever their options. A derived parser keeps that order within
/// one option only.
#[derive(Debug)]
pub(crate) struct RegionArgs(pub(crate) Vec<RegionArg>);

impl Args for RegionArgs {
    fn augment_args(command: Command) -> Command {
        let heading = "Regions, in the order in which the kernel sees them";
        let option = |name, help| Arg::new(name).long(name).help(help).help_heading(heading).action(ArgAction::Append);
        let files =
            OF_FILES.map(|(name, _, help)| option(name, help).value_name("FILE").value_parser(value_parser!(PathBuf)));
        let sizes = OF_SIZES.map(|(name, _, help)| option(name, help).value_name("BYTES").value_parser(parse_size));
        // MRSP starts a call by a write to a region of the caller's, and internal ones are not.
        let needed = ArgGroup::new("regions").args(["input", "single-send", "inout", "output"]);
        command.args(files).args(sizes).group(needed.multiple(true).required(true))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RegionArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found: Vec<(usize, RegionArg)> = Vec::new();
        for (name, region, _) in OF_FILES {
            let values = matches.get_many(name).unwrap_or_default().cloned().map(|path| RegionArg::File(path, region));
            found.extend(matches.indices_of(name).unwrap_or_default().zip(values));
        }
        for (name, region, _) in OF_SIZES {
            let values = matches.get_many(name).unwrap_or_default().map(|bytes| RegionArg::Size(*bytes, region));
            found.extend(matches.indices_of(name).unwrap_or_default().zip(values));
        }
        found.sort_by_key(|(index, _)| *index);
        Ok(Self(found.into_iter().map(|(_, region)| region).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn parse_size(text: &str) -> Result<u32, String> {
    let wrong = || format!("a size is 1 to {MAX_REGION} bytes; the file that is written is named with -o");
    text.parse().ok().filter(|bytes| *bytes > 0).ok_or_else(wrong)
}
