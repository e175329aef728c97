// SPDX-License-Identifier: Apache-2.0
//! Datagrams by shared memory, between a device and callers of the same user on the same machine.
//!
//! A device listens at a socket in the wire's directory ([`ShmHub`]). A caller that connects there ([`ShmLink`]) gets an address, and
//! descriptors of memory with a ring in each direction and of two counters by which each end wakes the other. The packets are those
//! of the UDP link, from BTH to ICRC, in batches of one peer. The ICRC is left out unless one end wants it
//! ([`Icrc`](crate::Icrc)): nothing on the way can damage them. Either end polls first; before it sleeps it says so in its ring.
//!
//! Neither end trusts the other with more than the packets: see `ring` and `mapping`. An end that vanishes is noticed by its socket.

mod caller;
mod channel;
mod greeting;
mod hub;
mod mapping;
mod ring;

pub use caller::ShmLink;
pub use hub::ShmHub;

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use nacelle_memory::Bytes;

use crate::{Incoming, LinkError, LinkStats, WireDir};
use ring::Header;

/// The tokens of the descriptors of a set that are readable now.
fn readable<'a>(
    set: &OwnedFd,
    events: &'a mut [MaybeUninit<epoll::Event>],
) -> Result<impl Iterator<Item = u64> + use<'a>, LinkError> {
    let found: &[epoll::Event] = match epoll::wait(set, events, Some(&Timespec::default())) {
        Ok((found, _)) => found,
        Err(Errno::INTR) => &[],
        Err(errno) => return Err(LinkError::io("look at the descriptors of shared memory")(errno.into())),
    };
    Ok(found.iter().map(|event| event.data.u64()))
}

impl LinkStats {
    /// Counts a record, and describes it.
    fn shared<'a>(&mut self, from: SocketAddr, header: Header, bytes: Bytes<'a>) -> Incoming<'a> {
        let Header { len, stride, ecn } = header;
        self.rx_frames += len.div_ceil(stride) as u64;
        self.rx_bytes += len as u64;
        Incoming { from, ecn, bytes, stride }
    }
}

/// Where the device of this name listens for callers that want to share memory.
fn socket_path(wire: &WireDir, name: &str) -> PathBuf {
    wire.file(&format!("{name}.shm"))
}

/// Whether the device of this name offers shared memory, as far as its socket says.
#[must_use]
pub fn offers_shm(wire: &WireDir, name: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    !name.contains('/')
        && fs::symlink_metadata(socket_path(wire, name)).is_ok_and(|found| found.file_type().is_socket())
}

/// Removes the offer that a killed device of this name left. The caller has claimed the name.
///
/// # Errors
/// [`LinkError::Io`] if there is one that cannot be removed.
pub fn withdraw_shm(wire: &WireDir, name: &str) -> Result<(), LinkError> {
    let path = socket_path(wire, name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LinkError::io(format!("remove {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}
