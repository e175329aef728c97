// SPDX-License-Identifier: Apache-2.0
//! A software device in a thread of this process.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use nacelle_driver::DatagramMedium;
use nacelle_link::{DatagramLink, ShmHub, SwitchHost, UdpLink, VirtualWire, WireDir};
use nacelle_manage::{Descriptor, DeviceKind};

use crate::{DeviceError, Host, Place, Port, SoftConfig, SoftEngine, Windows};

/// Where a software device is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoftPlace {
    /// On the wire, at this address with this length of its prefix; by default at the first free one.
    Wire(Option<(Ipv4Addr, u8)>),
    /// On a UDP socket at this address of the machine, and by shared memory.
    Udp(IpAddr),
}

/// A software device that runs until [`SoftDevice::close`], or until this is dropped.
#[derive(Debug)]
pub struct SoftDevice {
    descriptor: Descriptor,
    windows: Windows,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), DeviceError>>>,
}

impl SoftDevice {
    /// Starts it and publishes it on `wire` under `name`; by default under the first free one. When this returns, it answers.
    ///
    /// # Errors
    /// If the name or address is taken, or the wire cannot be used.
    pub fn start(
        config: SoftConfig,
        wire: &WireDir,
        name: Option<&str>,
        place: SoftPlace,
    ) -> Result<Self, DeviceError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, started) = channel();
        let (wire, name, seen) = (wire.clone(), name.map(str::to_owned), Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name("nacelle-device".into())
            .spawn(move || serve(config, &wire, name.as_deref(), place, &seen, &ready))
            .map_err(DeviceError::io("start a thread"))?;
        match started.recv() {
            Ok((descriptor, windows)) => Ok(Self { descriptor, windows, stop, thread: Some(thread) }),
            // It has ended before it was ready, and says why.
            Err(_) => Err(end(thread).err().unwrap_or_else(ended)),
        }
    }

    /// What it says of itself.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Its windows.
    #[must_use]
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Whether it has ended by itself: at the request of a client, or because its link is broken.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it, and returns how it has ended.
    ///
    /// # Errors
    /// What ended it before, if its link broke.
    pub fn close(mut self) -> Result<(), DeviceError> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), DeviceError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map_or(Ok(()), end)
    }
}

impl Drop for SoftDevice {
    fn drop(&mut self) {
        // Who wants to know calls `close`.
        let _ = self.stop();
    }
}

fn ended() -> DeviceError {
    DeviceError::Defect
}

fn end(thread: JoinHandle<Result<(), DeviceError>>) -> Result<(), DeviceError> {
    thread.join().unwrap_or_else(|_| Err(ended()))
}

type Ready = Sender<(Descriptor, Windows)>;

fn serve(
    config: SoftConfig,
    wire: &WireDir,
    name: Option<&str>,
    place: SoftPlace,
    stop: &AtomicBool,
    ready: &Ready,
) -> Result<(), DeviceError> {
    let engine = SoftEngine::new(config);
    let windows = engine.windows();
    match place {
        SoftPlace::Wire(address) => {
            let place = Place::find(wire, DeviceKind::Soft, name, address)?;
            let _switch = SwitchHost::start(wire)?;
            let link = VirtualWire::join(wire, &place.name)?;
            run(Host::new(engine, &place, Box::new(link), seed()?)?, windows, stop, ready)
        }
        SoftPlace::Udp(address) => {
            let link = UdpLink::bind(address)?;
            let place = Place::by_udp(wire, DeviceKind::Soft, name, link.local().ip())?;
            let medium = DatagramMedium::new(Box::new(ShmHub::new(link, wire, &place.name)?));
            run(Host::by_udp(engine, &place, medium, seed()?)?, windows, stop, ready)
        }
    }
}

fn run<P: Port>(mut host: Host<P>, windows: Windows, stop: &AtomicBool, ready: &Ready) -> Result<(), DeviceError> {
    // Whoever started it waits for this.
    let _ = ready.send((host.descriptor().clone(), windows));
    Ok(host.run(stop)?)
}

fn seed() -> Result<u32, DeviceError> {
    let mut seed = [0; 4];
    let io = |error: getrandom::Error| DeviceError::io("get random numbers")(std::io::Error::other(error));
    getrandom::fill(&mut seed).map_err(io)?;
    Ok(u32::from_ne_bytes(seed))
}
