// SPDX-License-Identifier: Apache-2.0
//! The network card of the simulated device for a guest, by vhost-user: its PCI function is in a slot, whose client is the back end in a
//! thread of its own. So a front end that stalls holds up neither the device nor its network.

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nacelle_pci::{UserConfig, UserDevice};
use nacelle_vhost::{Backend, BackendConfig, BackendError, Counters, Listener};
use nacelle_wire::MacAddr;

use super::slot::{NETWORK_CARD, Slot};
use crate::{DeviceError, Sim};

/// How long the back end may take to end with its device. One that a front end holds up is left.
const END_WITHIN: Duration = Duration::from_secs(1);

/// The card, with its back end.
pub(super) struct VhostCard {
    /// `None` only while this is dropped.
    slot: Option<Slot>,
    counters: Arc<Mutex<Counters>>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl VhostCard {
    /// A back end at `path` for the card of this device.
    ///
    /// # Errors
    /// [`DeviceError::Without`] if it was built without one; [`DeviceError::Slot`] or [`DeviceError::Io`] if the socket cannot be made.
    pub(super) fn new(sim: &mut Sim, path: &Path, mac: MacAddr, tell: fn(&str)) -> Result<Self, DeviceError> {
        let system = |what: &str| DeviceError::io(format!("serve the network card at {}: {what}", path.display()));
        let (here, there) = UnixStream::pair().map_err(system("a socket"))?;
        let slot = Slot::connected(sim, NETWORK_CARD, there, mac)?;
        let listener = Listener::bind(path)?;
        let (counters, stop) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (Arc::clone(&counters), Arc::clone(&stop));
        let serve = move || {
            let ended = run(listener, here, tell, &stopped, &counted);
            // What the card answers while its device ends is no matter.
            if let Err(error) = ended
                && !stopped.load(Ordering::Relaxed)
            {
                tell(&format!("the network card is no longer served: {error}"));
            }
        };
        let thread = std::thread::Builder::new().name("vhost".into()).spawn(serve).map_err(system("a thread"))?;
        Ok(Self { slot: Some(slot), counters, stop, thread })
    }

    /// As [`Slot::poll`].
    pub(super) fn poll(&mut self, sim: &mut Sim, now: Instant) {
        if let Some(slot) = &mut self.slot {
            slot.poll(sim, now);
        }
    }

    /// What to wait for while the device is idle.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.slot.iter().flat_map(Slot::fds)
    }

    /// As [`Slot::is_sending`].
    pub(super) fn is_sending(&self) -> bool {
        self.slot.as_ref().is_some_and(Slot::is_sending)
    }

    /// What the back end has counted.
    pub(super) fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let counted = *self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        [
            ("vhost.front_ends", counted.front_ends),
            ("vhost.front_ends_turned_away", counted.turned_away),
            ("vhost.front_ends_thrown_out", counted.thrown_out),
            ("vhost.requests", counted.requests),
            ("vhost.requests_refused", counted.refused),
            ("vhost.starts", counted.starts),
            ("vhost.kicks", counted.kicks),
            ("vhost.calls", counted.calls),
            ("vhost.rings_lost", counted.rings_lost),
        ]
        .into_iter()
    }
}

/// Serves front ends until `stop` is set.
fn run(
    listener: Listener,
    slot: UnixStream,
    tell: fn(&str),
    stop: &AtomicBool,
    counters: &Mutex<Counters>,
) -> Result<(), BackendError> {
    let device = UserDevice::over(slot, UserConfig::default())?;
    let mut backend = Backend::new(listener, device, BackendConfig { tell, ..BackendConfig::default() })?;
    backend.run(stop, |counted| *counters.lock().unwrap_or_else(PoisonError::into_inner) = counted)
}

impl Drop for VhostCard {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The back end finds its card gone.
        self.slot = None;
        let deadline = Instant::now() + END_WITHIN;
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
