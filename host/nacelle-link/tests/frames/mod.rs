// SPDX-License-Identifier: Apache-2.0
//! A wire of its own for each test, and frames on it.

use std::time::{Duration, Instant};

use nacelle_link::{Link, MAX_FRAME, WireDir};

pub(crate) fn wire() -> (tempfile::TempDir, WireDir) {
    let temp = tempfile::tempdir().unwrap();
    let dir = WireDir::open(temp.path().join("wire")).unwrap();
    (temp, dir)
}

pub(crate) fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];

pub(crate) fn frame(to: [u8; 6], from: [u8; 6], payload: &[u8]) -> Vec<u8> {
    [&to[..], &from[..], &[0x88, 0xb5], payload].concat()
}

pub(crate) fn receive(link: &mut impl Link) -> Option<Vec<u8>> {
    receive_within(link, Duration::from_secs(5))
}

pub(crate) fn receive_within(link: &mut impl Link, time: Duration) -> Option<Vec<u8>> {
    let mut buffer = vec![0; MAX_FRAME];
    let length = link.recv(&mut buffer, Instant::now() + time).unwrap()?;
    Some(buffer[..length].to_vec())
}

/// Nothing comes: the frames before have been waited for, so a short wait is enough.
pub(crate) fn silent(link: &mut impl Link) -> bool {
    receive_within(link, Duration::from_millis(50)).is_none()
}
