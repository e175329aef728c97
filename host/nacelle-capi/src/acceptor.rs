// SPDX-License-Identifier: Apache-2.0
//! Acceptors: hosts that peers write to and read from.

use std::ffi::c_char;
use std::mem;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use nacelle_device::{self as device, Acceptor, AcceptorOptions, SoftPlace};

use crate::edge::{Failure, guard};
use crate::handle::{AcceptorHandle, registry};
use crate::sized::{self, Growing};
use crate::text;
use crate::window::Window;

/// `nacelle_acceptor_options`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HostOptions {
    size: usize,
    wire: *const c_char,
    name: *const c_char,
    memory_bytes: u64,
    memory_per_peer: u64,
    connections: u32,
    connections_per_peer: u32,
    contexts: u32,
    callbacks: u32,
    callback_time_ms: u32,
    reserved: u32,
}
// SAFETY: numbers and pointers, without padding.
unsafe impl Growing for HostOptions {}

impl HostOptions {
    /// # Safety
    /// Its strings are null or end with a zero byte.
    unsafe fn read(&self, place: SoftPlace) -> Result<AcceptorOptions, Failure> {
        if self.reserved != 0 {
            return Err(Failure::invalid("'reserved' of nacelle_acceptor_options is not 0"));
        }
        let mut options = AcceptorOptions::at(place);
        // SAFETY: as this function.
        let (wire, name) = unsafe { (text::read(self.wire, "wire")?, text::read(self.name, "name")?) };
        (options.wire, options.name) = (wire.map(Into::into), name.map(Into::into));
        let config = &mut options.config;
        let count = |given: u32, default: usize| if given == 0 { default } else { given as usize };
        if self.memory_bytes != 0 {
            config.memory_bytes = self.memory_bytes;
        }
        config.memory_per_caller = self.memory_per_peer;
        config.connections = count(self.connections, config.connections);
        config.connections_per_caller = count(self.connections_per_peer, config.connections_per_caller);
        let contexts = u8::try_from(self.contexts).ok().filter(|contexts| *contexts <= MOST_CONTEXTS);
        let contexts = contexts.ok_or_else(|| Failure::invalid(format!("'contexts' is 0 to {MOST_CONTEXTS}")))?;
        config.contexts = if contexts == 0 { config.contexts } else { contexts };
        config.workers = count(self.callbacks, config.workers);
        if config.connections > MOST_CONNECTIONS || config.workers > MOST_CALLBACKS {
            let what = format!("'connections' is 0 to {MOST_CONNECTIONS}, 'callbacks' 0 to {MOST_CALLBACKS}");
            return Err(Failure::invalid(what));
        }
        if self.callback_time_ms != 0 {
            config.kernel_time = Some(Duration::from_millis(self.callback_time_ms.into()));
        }
        Ok(options)
    }
}

/// Bounds of an acceptor's options.
const MOST_CONTEXTS: u8 = 32;
const MOST_CONNECTIONS: usize = 4096;
const MOST_CALLBACKS: usize = 1024;

/// Where an acceptor is reached: "ADDRESS" is one of this machine, "ADDRESS/PREFIX" one on the wire.
fn place(address: Option<&str>) -> Result<SoftPlace, Failure> {
    let Some(text) = address else { return Ok(SoftPlace::Wire(None)) };
    let bad = || Failure::invalid(format!("{text} is neither an address of this machine nor IPV4/PREFIX for the wire"));
    match text.split_once('/') {
        None => Ok(SoftPlace::Udp(text.parse::<IpAddr>().map_err(|_| bad())?.to_canonical())),
        Some((ip, length)) => {
            let ip = ip.parse::<Ipv4Addr>().map_err(|_| bad())?;
            let length = length.parse().ok().filter(|length| (1..=32).contains(length)).ok_or_else(bad)?;
            Ok(SoftPlace::Wire(Some((ip, length))))
        }
    }
}

/// An acceptor, and its windows, which end with it.
pub(crate) struct Host {
    state: Mutex<State>,
    windows: device::Windows,
}

struct State {
    stage: Stage,
    opened: Vec<Weak<Window>>,
}

/// How far an acceptor is.
enum Stage {
    /// Peers cannot connect yet.
    Made(Box<AcceptorOptions>),
    Listens(Acceptor),
    Closed,
}

impl Host {
    fn new(options: &AcceptorOptions) -> Self {
        let windows = device::Windows::new();
        let stage = Stage::Made(Box::new(options.clone().with_windows(&windows)));
        Self { state: Mutex::new(State { stage, opened: Vec::new() }), windows }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of the program runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self) -> Result<(), Failure> {
        let mut state = self.lock();
        state.stage = match &state.stage {
            Stage::Made(options) => Stage::Listens(Acceptor::start(options)?),
            Stage::Listens(_) => return Err(Failure::invalid("the acceptor listens already")),
            Stage::Closed => return Err(registry().acceptors.closed()),
        };
        Ok(())
    }

    /// What `tell` says of an acceptor that listens.
    fn listening<R>(&self, tell: impl FnOnce(&Acceptor) -> R) -> Result<R, Failure> {
        match &self.lock().stage {
            Stage::Made(_) => Err(Failure::invalid("the acceptor has no address and no name before it listens")),
            Stage::Listens(acceptor) => Ok(tell(acceptor)),
            Stage::Closed => Err(registry().acceptors.closed()),
        }
    }

    /// Opens a window.
    pub(crate) fn open(
        &self,
        open: impl FnOnce(&device::Windows) -> Result<Arc<Window>, Failure>,
    ) -> Result<Arc<Window>, Failure> {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Closed) {
            return Err(registry().acceptors.closed());
        }
        let window = open(&self.windows)?;
        state.opened.retain(|window| window.strong_count() > 0);
        state.opened.push(Arc::downgrade(&window));
        Ok(window)
    }

    fn close(&self) -> Result<(), Failure> {
        let (stage, opened) = {
            let mut state = self.lock();
            (mem::replace(&mut state.stage, Stage::Closed), mem::take(&mut state.opened))
        };
        // Without the lock: it waits for callbacks of the program.
        opened.iter().filter_map(Weak::upgrade).for_each(|window| window.close());
        if let Stage::Listens(acceptor) = stage {
            acceptor.close()?;
        }
        Ok(())
    }
}

/// Makes an acceptor, and a handle for it when `begin` has done its part.
///
/// # Safety
/// As [`nacelle_acceptor_open`].
unsafe fn make(
    address: *const c_char,
    options: *const HostOptions,
    acceptor: *mut AcceptorHandle,
    begin: impl FnOnce(&Host) -> Result<(), Failure>,
) -> Result<(), Failure> {
    text::place(acceptor, "acceptor")?;
    // SAFETY: as this function.
    let (address, given) = unsafe {
        acceptor.write(AcceptorHandle { id: 0 });
        (text::read(address, "address")?, sized::read(options, "nacelle_acceptor_options")?)
    };
    let place = place(address)?;
    // SAFETY: as this function, for the strings in the options.
    let options = given.map_or(Ok(AcceptorOptions::at(place)), |given| unsafe { given.read(place) })?;
    let host = Host::new(&options);
    begin(&host)?;
    let id = registry().acceptors.insert(host)?;
    // SAFETY: as this function.
    unsafe { acceptor.write(AcceptorHandle { id }) };
    Ok(())
}

/// See `nacelle.h`.
///
/// # Safety
/// `address` is null or ends with a zero byte; `options` is null or begins with its size; `acceptor` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_acceptor_open(
    address: *const c_char,
    options: *const HostOptions,
    acceptor: *mut AcceptorHandle,
) -> u32 {
    // SAFETY: as this function.
    guard(|| unsafe { make(address, options, acceptor, Host::listen) })
}

/// See `nacelle.h`.
///
/// # Safety
/// As [`nacelle_acceptor_open`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_acceptor_create(
    address: *const c_char,
    options: *const HostOptions,
    acceptor: *mut AcceptorHandle,
) -> u32 {
    // SAFETY: as this function.
    guard(|| unsafe { make(address, options, acceptor, |_| Ok(())) })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_acceptor_listen(acceptor: AcceptorHandle) -> u32 {
    guard(|| registry().acceptors.get(acceptor.id)?.listen())
}

/// See `nacelle.h`.
///
/// # Safety
/// `text` is null or has `size` bytes that may be written; `length` is null or may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_acceptor_address(
    acceptor: AcceptorHandle,
    text: *mut c_char,
    size: usize,
    length: *mut usize,
) -> u32 {
    guard(|| {
        let address = registry().acceptors.get(acceptor.id)?.listening(|host| host.address().to_string())?;
        // SAFETY: as this function.
        unsafe { text::write(&address, text, size, length) }
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// As [`nacelle_acceptor_address`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_acceptor_name(
    acceptor: AcceptorHandle,
    text: *mut c_char,
    size: usize,
    length: *mut usize,
) -> u32 {
    guard(|| {
        let name = registry().acceptors.get(acceptor.id)?.listening(|host| host.name().to_owned())?;
        // SAFETY: as this function.
        unsafe { text::write(&name, text, size, length) }
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_acceptor_close(acceptor: AcceptorHandle) -> u32 {
    guard(|| registry().acceptors.remove(acceptor.id)?.close())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_prefix_is_on_the_wire() {
        assert_eq!(place(None).unwrap(), SoftPlace::Wire(None));
        assert_eq!(place(Some("127.0.0.7")).unwrap(), SoftPlace::Udp("127.0.0.7".parse().unwrap()));
        assert_eq!(place(Some("fd00::7")).unwrap(), SoftPlace::Udp("fd00::7".parse().unwrap()));
        assert_eq!(place(Some("10.77.0.7/16")).unwrap(), SoftPlace::Wire(Some(([10, 77, 0, 7].into(), 16))));
        for wrong in ["", "here", "10.77.0.7/", "10.77.0.7/0", "10.77.0.7/33", "fd00::7/64", "10.77.0.7/16/2"] {
            assert_eq!(place(Some(wrong)).unwrap_err().code, 1, "{wrong}");
        }
    }
}
