// SPDX-License-Identifier: Apache-2.0
//! Reads the captured frames.
#![allow(dead_code, unreachable_pub)] // each test takes what it needs

use std::{fs, path::PathBuf};

/// Frames of a classic little-endian pcap file.
pub fn read_pcap(path: &PathBuf) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    assert_eq!(bytes[..4], [0xd4, 0xc3, 0xb2, 0xa1], "{path:?} is not a little-endian pcap file");
    let mut rest = &bytes[24..];
    let mut frames = Vec::new();
    while let Some((header, body)) = rest.split_first_chunk::<16>() {
        let len = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        frames.push(body[..len].to_vec());
        rest = &body[len..];
    }
    frames
}

/// All captures: those checked in, and those in the directory `NACELLE_CAPTURES`, if it is set.
pub fn captures() -> Vec<(String, Vec<Vec<u8>>)> {
    let mut dirs = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"))];
    dirs.extend(std::env::var_os("NACELLE_CAPTURES").map(PathBuf::from));
    let mut all = Vec::new();
    for dir in dirs {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "pcap") {
                all.push((path.file_stem().unwrap().to_str().unwrap().to_owned(), read_pcap(&path)));
            }
        }
    }
    all.sort();
    all
}

/// Frames of one capture.
pub fn capture(name: &str) -> Vec<Vec<u8>> {
    captures().into_iter().find(|(n, _)| n == name).unwrap().1
}

/// Whether a frame claims to be RoCEv2.
pub fn is_roce(frame: &[u8]) -> bool {
    frame.len() > 42 && frame[12..14] == [8, 0] && frame[23] == 17 && frame[36..38] == 4791u16.to_be_bytes()
}
