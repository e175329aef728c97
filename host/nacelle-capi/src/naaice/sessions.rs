// SPDX-License-Identifier: Apache-2.0
//! What a handle of NAAICE's interface names, and what the sessions of a process share.

use std::net::ToSocketAddrs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nacelle::{Device, ErrorCode, Options};

use super::spec::Entry;
use crate::device::{CLOSE_WITHIN, Wanted, reach};
use crate::edge::Failure;
use crate::session::Session;

/// A session with a device.
pub(crate) struct NaaSession {
    pub(super) session: Session,
    /// What the kernel gets with each call (`naaice_set_immediate`).
    pub(super) user: [u8; 3],
    pub(super) device: Arc<Device>,
    /// Given back when the session ends.
    pub(super) lease: Lease,
}

impl NaaSession {
    /// Ends the session; waits for a while until the device has confirmed that.
    pub(super) fn close(self) -> Result<(), Failure> {
        self.session.close()?;
        let _it_detects_the_end_by_itself = self.device.settle(CLOSE_WITHIN)?;
        drop(self.lease);
        Ok(())
    }
}

/// What the sessions of a process share.
#[derive(Default)]
pub(crate) struct Shared {
    /// The entries of `NAA_SPEC` that have a session.
    held: Vec<Entry>,
    /// Sessions with the same device have one network address.
    devices: Vec<(Way, Weak<Device>)>,
}

/// How a device is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Way {
    address: String,
    port: Option<u16>,
    source: Option<String>,
}

/// An entry of `NAA_SPEC` in use by one session.
pub(super) struct Lease {
    entry: Entry,
    shared: Arc<Mutex<Shared>>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // Each change is one push or one removal.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lease {
    /// The first of `entries` with this function that no session has. An entry that is listed twice is good for two.
    pub(super) fn take(shared: &Arc<Mutex<Shared>>, entries: &[Entry], function: u32) -> Option<Self> {
        let mut inside = lock(shared);
        let count = |list: &[Entry], entry: &Entry| list.iter().filter(|other| *other == entry).count();
        let free = |entry: &&Entry| entry.function == function && count(&inside.held, entry) < count(entries, entry);
        let entry = entries.iter().find(free)?.clone();
        inside.held.push(entry.clone());
        Some(Self { entry, shared: Arc::clone(shared) })
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The device of the entry, reached from the address `source`.
    pub(super) fn device(&self, source: Option<String>) -> Result<Arc<Device>, Failure> {
        let Entry { address, port, .. } = &self.entry;
        let way = Way { address: address.clone(), port: *port, source: source.clone() };
        // Held while the device is reached: another session with it waits, and uses the same.
        let mut shared = lock(&self.shared);
        shared.devices.retain(|(_, device)| device.strong_count() > 0);
        let known = shared.devices.iter().find(|(other, _)| *other == way);
        if let Some(device) = known.and_then(|(_, device)| device.upgrade()) {
            return Ok(device);
        }
        let wanted = || Wanted { options: Options { port: *port, ..Options::default() }, source: source.clone() };
        let device = match reach(address, wanted()) {
            Err(failure) if failure.code == ErrorCode::NoSuchDevice as u32 => {
                reach(&looked_up(address).ok_or(failure)?, wanted())?
            }
            outcome => outcome?,
        };
        let device = Arc::new(device);
        shared.devices.push((way, Arc::downgrade(&device)));
        Ok(device)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        if let Some(at) = shared.held.iter().position(|entry| *entry == self.entry) {
            shared.held.swap_remove(at);
        }
    }
}

/// The first address of a host name.
fn looked_up(name: &str) -> Option<String> {
    let mut addresses = (name, 0).to_socket_addrs().ok()?;
    addresses.next().map(|address| address.ip().to_string())
}

#[cfg(test)]
mod tests {
    use super::super::spec::parse;
    use super::*;

    #[test]
    fn each_entry_is_good_for_one_session_until_that_ends() {
        let shared = Arc::default();
        let entries = parse("a::1:1,b::1:1,b::1:1,c::2:1").unwrap();
        let mut taken: Vec<Lease> = (0..3).filter_map(|_| Lease::take(&shared, &entries, 1)).collect();
        let addresses: Vec<_> = taken.iter().map(|lease| lease.entry().address.as_str()).collect();
        assert_eq!(addresses, ["a", "b", "b"]);
        assert!(Lease::take(&shared, &entries, 1).is_none());
        assert!(Lease::take(&shared, &entries, 9).is_none());
        drop(taken.remove(0));
        assert_eq!(Lease::take(&shared, &entries, 1).unwrap().entry().address, "a");
    }
}
