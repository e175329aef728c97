// SPDX-License-Identifier: Apache-2.0
//! Interfaces that the kernel of this machine gets (TAP): one on the wire, or one whose card is the simulated device's.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nacelle_link::{LinkError, Tap, VirtualWire, WireDir, bridge};
use nacelle_pci::{UserConfig, UserDevice};
use nacelle_virtio::{LinkConfig, VirtioError, VirtioLink};
use nacelle_wire::MacAddr;

use crate::failure::Failure;

/// A card goes with its device, which is no failure if the command ends within this time.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(10);
/// What other stations take, whatever the card could send: more is the administrator's to choose.
const ETHERNET_MTU: u16 = 1500;

/// A TAP device, and what its frames go to, as long as this value lives.
pub(crate) struct Joined {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Joined {
    /// Joins the kernel's network to the wire by an interface of this name.
    pub(crate) fn to_wire(wire: &WireDir, name: &str) -> Result<Self, Failure> {
        let mut tap = Tap::open(name)?;
        let mut link = VirtualWire::join(wire, &format!("tap-{name}"))?;
        eprintln!("the kernel's network is on the wire by {name}; to reach it: ip address add 10.77.0.1/16 dev {name}");
        Ok(Self::carry("the kernel's network has left the wire", move |stop| Ok(bridge(&mut tap, &mut link, stop)?)))
    }

    /// Gives the kernel an interface of this name, whose card is in a slot, with this MAC address. The driver begins when the device
    /// answers, which it need not yet do.
    pub(crate) fn to_card(name: &str, slot: PathBuf, mac: MacAddr) -> Result<Self, Failure> {
        // From another address the card does not send.
        let mut tap = Tap::open_with_mac(name, mac.0)?;
        Ok(Self::carry("the kernel has lost its network card", move |stop| {
            let mut link = drive(&slot)?;
            tap.set_mtu(link.mtu().min(ETHERNET_MTU))?;
            Ok(bridge(&mut tap, &mut link, stop)?)
        }))
    }

    /// Carries frames in a thread of its own, which says so if it ends before it is to.
    fn carry(lost: &'static str, frames: impl FnOnce(&AtomicBool) -> Result<(), CarryError> + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            if let Err(error) = frames(&seen) {
                let deadline = Instant::now() + ENDS_WITHIN;
                while !seen.load(Ordering::Relaxed) && Instant::now() < deadline {
                    std::thread::sleep(TICK);
                }
                if !seen.load(Ordering::Relaxed) {
                    eprintln!("{lost}: {error}");
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _a_panic_there_was_reported_there = thread.join();
        }
    }
}

/// The driver of a card in a slot.
fn drive(slot: &Path) -> Result<VirtioLink<UserDevice>, VirtioError> {
    let device = UserDevice::connect(slot, UserConfig { posted_writes: true, ..UserConfig::default() })?;
    VirtioLink::new(device, LinkConfig::default())
}

/// Why frames are not carried any more.
#[derive(Debug, thiserror::Error)]
enum CarryError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Card(#[from] VirtioError),
    #[error(transparent)]
    System(#[from] io::Error),
}
