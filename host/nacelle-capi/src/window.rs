// SPDX-License-Identifier: Apache-2.0
//! Windows of an acceptor, with callbacks and buffers of the program that are left alone once the window was closed.

use std::ffi::{CString, c_char, c_void};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nacelle::memory::Shared;
use nacelle_device as device;

use crate::edge::{Failure, guard};
use crate::handle::{AcceptorHandle, WindowHandle, registry};
use crate::memory;
use crate::notifier::Data;
use crate::text;

/// `nacelle_incoming`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Incoming {
    size: usize,
    peer: *const c_char,
    window: u32,
    label: u32,
    data: *mut c_void,
    data_size: usize,
}

/// `nacelle_incoming_callback`.
type Callback = unsafe extern "C" fn(*const Incoming, *mut c_void) -> u32;

/// A callback of the program for what peers say that they have written or read.
struct Listener {
    callback: Callback,
    data: Data,
}

impl Listener {
    /// # Safety
    /// Until the window was closed, `callback` may be called with `data` by any thread, also by several at a time.
    unsafe fn new(callback: Option<Callback>, data: *mut c_void) -> Result<Self, Failure> {
        let callback = callback.ok_or_else(|| Failure::invalid("callback is NULL"))?;
        Ok(Self { callback, data: Data(data) })
    }

    /// Runs the callback.
    fn tell(&self, peer: IpAddr, window: u32, label: u32, bytes: Option<&mut [u8]>) -> Result<(), device::Failure> {
        let peer = CString::new(peer.to_string()).unwrap_or_default();
        let (data, data_size) =
            bytes.map_or((std::ptr::null_mut(), 0), |bytes| (bytes.as_mut_ptr().cast(), bytes.len()));
        let size = size_of::<Incoming>();
        let incoming = Incoming { size, peer: peer.as_ptr(), window, label, data, data_size };
        // SAFETY: as `Listener::new`: the window runs this only while it is open; what `incoming` points to stays until this returns.
        match unsafe { (self.callback)(&raw const incoming, self.data.get()) } {
            0 => Ok(()),
            code => {
                let code = u8::try_from(code).ok();
                Err(code.and_then(device::Failure::new).unwrap_or(device::Failure::UNAVAILABLE))
            }
        }
    }
}

/// A window.
pub(crate) struct Window {
    window: device::Window,
    /// The program's bytes, of one to be read that is open.
    bytes: Mutex<Option<Arc<Shared>>>,
}

impl Window {
    fn new(window: device::Window, bytes: Option<Arc<Shared>>) -> Arc<Self> {
        Arc::new(Self { window, bytes: Mutex::new(bytes) })
    }

    /// Closes it. After this no callback runs any more, but that which this is called by, and nothing accesses the bytes.
    pub(crate) fn close(&self) {
        // First nobody new gets a part of the bytes, so that they are nobody else's.
        self.window.close(Duration::MAX);
        // Under the lock: another thread that closes it waits, too, for the access that is under way.
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Opens a window of an acceptor.
///
/// # Safety
/// `window` may be written.
unsafe fn accept(
    acceptor: AcceptorHandle,
    window: *mut WindowHandle,
    open: impl FnOnce(&device::Windows) -> Result<Arc<Window>, Failure>,
) -> Result<(), Failure> {
    text::place(window, "window")?;
    // SAFETY: as this function.
    unsafe { window.write(WindowHandle { id: 0 }) };
    let opened = registry().acceptors.get(acceptor.id)?.open(open)?;
    let id = registry().windows.insert(Arc::clone(&opened)).inspect_err(|_| opened.close())?;
    // SAFETY: as this function.
    unsafe { window.write(WindowHandle { id }) };
    Ok(())
}

/// See `nacelle.h`.
///
/// # Safety
/// `callback` may be called with `data` by any thread, also by several at a time, until the window was closed; `window` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_accept_incoming_write(
    acceptor: AcceptorHandle,
    number: u32,
    longest: usize,
    callback: Option<Callback>,
    data: *mut c_void,
    window: *mut WindowHandle,
) -> u32 {
    let open = |windows: &device::Windows| {
        // SAFETY: as this function.
        let listener = unsafe { Listener::new(callback, data) }?;
        let opened = windows.accept_incoming_write(number, longest, move |write| {
            listener.tell(write.peer, write.window, write.label, Some(write.bytes))
        })?;
        Ok(Window::new(opened, None))
    };
    // SAFETY: as this function.
    guard(|| unsafe { accept(acceptor, window, open) })
}

/// See `nacelle.h`.
///
/// # Safety
/// As [`nacelle_accept_incoming_write`], and `buffer` has `size` bytes that may be read by any thread until the window was closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_accept_incoming_read(
    acceptor: AcceptorHandle,
    number: u32,
    buffer: *const c_void,
    size: usize,
    callback: Option<Callback>,
    data: *mut c_void,
    window: *mut WindowHandle,
) -> u32 {
    let open = |windows: &device::Windows| {
        // SAFETY: as this function; the bytes are dropped when the window is closed.
        let bytes = Arc::new(unsafe { memory::shared(buffer.cast_mut(), size, false) }?);
        let opened = match callback {
            None => windows.accept_incoming_read(number, &bytes, |_| Ok(()))?,
            callback => {
                // SAFETY: as this function.
                let listener = unsafe { Listener::new(callback, data) }?;
                let told = move |read: device::IncomingRead| listener.tell(read.peer, read.window, read.label, None);
                windows.accept_incoming_read(number, &bytes, told)?
            }
        };
        Ok(Window::new(opened, Some(bytes)))
    };
    // SAFETY: as this function.
    guard(|| unsafe { accept(acceptor, window, open) })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_window_close(window: WindowHandle) -> u32 {
    guard(|| {
        registry().windows.remove(window.id)?.close();
        Ok(())
    })
}
