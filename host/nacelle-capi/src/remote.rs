// SPDX-License-Identifier: Apache-2.0
//! Memory of a peer, and what begins transfers to and from it.

use std::ffi::c_void;

use nacelle::memory::Shared;
use nacelle::{Connection, Error, Memory, Remote, Transfer};

use crate::edge::{Failure, guard};
use crate::handle::{ConnectionHandle, Exclusive, RemoteHandle, TransferHandle, registry};
use crate::memory;
use crate::text;
use crate::transfer::Moving;

/// What a program says of a transfer to the owner of a window.
fn label(label: u32) -> Result<u16, Failure> {
    label.try_into().map_err(|_| Failure::invalid(format!("the label {label:#x} has more than 16 bits")))
}

/// See `nacelle.h`.
///
/// # Safety
/// `data` has `size` bytes that may be read until this returns.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_write(
    connection: ConnectionHandle,
    window: u32,
    data: *const c_void,
    size: usize,
    label: u32,
) -> u32 {
    guard(|| {
        let (connection, label) = (registry().connections.get(connection.id)?, self::label(label)?);
        // SAFETY: as this function; the value is dropped before it returns.
        let bytes = unsafe { memory::shared(data.cast_mut(), size, false) }?;
        connection.write(window, memory::all(&bytes, false)?, label)?;
        Ok(())
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `data` has `size` bytes that may be read and written until this returns.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_read(
    connection: ConnectionHandle,
    window: u32,
    data: *mut c_void,
    size: usize,
) -> u32 {
    guard(|| {
        let connection = registry().connections.get(connection.id)?;
        // SAFETY: as this function; the value is dropped before it returns.
        let bytes = unsafe { memory::shared(data, size, true) }?;
        connection.read(window, memory::all(&bytes, true)?)?;
        Ok(())
    })
}

/// Makes a handle for memory of the peer.
///
/// # Safety
/// `remote` may be written.
unsafe fn open(
    connection: ConnectionHandle,
    remote: *mut RemoteHandle,
    open: impl FnOnce(&Connection) -> Result<Remote, Error>,
) -> u32 {
    guard(|| {
        text::place(remote, "remote")?;
        // SAFETY: as this function.
        unsafe { remote.write(RemoteHandle { id: 0 }) };
        let opened = open(&*registry().connections.get(connection.id)?)?;
        let id = registry().remotes.insert(opened)?;
        // SAFETY: as this function.
        unsafe { remote.write(RemoteHandle { id }) };
        Ok(())
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `remote` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_connection_remote(
    connection: ConnectionHandle,
    size: u64,
    remote: *mut RemoteHandle,
) -> u32 {
    // SAFETY: as this function.
    unsafe { open(connection, remote, |connection| connection.remote(size)) }
}

/// See `nacelle.h`.
///
/// # Safety
/// `remote` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_connection_window_to_write(
    connection: ConnectionHandle,
    window: u32,
    size: u64,
    remote: *mut RemoteHandle,
) -> u32 {
    // SAFETY: as this function.
    unsafe { open(connection, remote, |connection| connection.window_to_write(window, size)) }
}

/// See `nacelle.h`.
///
/// # Safety
/// `remote` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_connection_window_to_read(
    connection: ConnectionHandle,
    window: u32,
    size: u64,
    remote: *mut RemoteHandle,
) -> u32 {
    // SAFETY: as this function.
    unsafe { open(connection, remote, |connection| connection.window_to_read(window, size)) }
}

/// Begins a transfer of these bytes, and makes a handle for it.
///
/// # Safety
/// `transfer` may be written.
unsafe fn begin(
    remote: RemoteHandle,
    bytes: Result<Shared, Failure>,
    writable: bool,
    transfer: *mut TransferHandle,
    begin: impl FnOnce(&Remote, Memory) -> Result<Transfer, Error>,
) -> Result<(), Failure> {
    // SAFETY: as this function.
    unsafe { clear(transfer) }?;
    let remote = registry().remotes.get(remote.id)?;
    let bytes = bytes?;
    let begun = begin(&remote, memory::all(&bytes, writable)?)?;
    // SAFETY: as this function.
    unsafe { give(transfer, Moving::new(begun, Some(bytes))) }
}

/// # Safety
/// `transfer` may be written.
unsafe fn clear(transfer: *mut TransferHandle) -> Result<(), Failure> {
    text::place(transfer, "transfer")?;
    // SAFETY: as this function.
    unsafe { transfer.write(TransferHandle { id: 0 }) };
    Ok(())
}

/// # Safety
/// `transfer` may be written.
unsafe fn give(transfer: *mut TransferHandle, moving: Moving) -> Result<(), Failure> {
    let id = registry().transfers.insert(Exclusive::new(moving, ()))?;
    // SAFETY: as this function.
    unsafe { transfer.write(TransferHandle { id }) };
    Ok(())
}

/// See `nacelle.h`.
///
/// # Safety
/// `data` has `size` bytes that may be read until the transfer was closed; `transfer` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_remote_write(
    remote: RemoteHandle,
    offset: u64,
    data: *const c_void,
    size: usize,
    transfer: *mut TransferHandle,
) -> u32 {
    // SAFETY: as this function.
    guard(|| unsafe {
        let bytes = memory::shared(data.cast_mut(), size, false);
        begin(remote, bytes, false, transfer, |remote, memory| remote.write(offset, memory))
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// As [`nacelle_remote_write`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_remote_write_and_notify(
    remote: RemoteHandle,
    offset: u64,
    data: *const c_void,
    size: usize,
    label: u32,
    transfer: *mut TransferHandle,
) -> u32 {
    // SAFETY: as this function.
    guard(|| unsafe {
        clear(transfer)?;
        let (label, bytes) = (self::label(label)?, memory::shared(data.cast_mut(), size, false));
        begin(remote, bytes, false, transfer, |remote, memory| remote.write_and_notify(offset, memory, label))
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `data` has `size` bytes that may be read and written until the transfer was closed; `transfer` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_remote_read(
    remote: RemoteHandle,
    offset: u64,
    data: *mut c_void,
    size: usize,
    transfer: *mut TransferHandle,
) -> u32 {
    // SAFETY: as this function.
    guard(|| unsafe {
        let bytes = memory::shared(data, size, true);
        begin(remote, bytes, true, transfer, |remote, memory| remote.read(offset, memory))
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `transfer` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_remote_notify(
    remote: RemoteHandle,
    label: u32,
    transfer: *mut TransferHandle,
) -> u32 {
    guard(|| {
        // SAFETY: as this function.
        unsafe { clear(transfer) }?;
        let begun = registry().remotes.get(remote.id)?.notify(self::label(label)?)?;
        // SAFETY: as this function.
        unsafe { give(transfer, Moving::new(begun, None)) }
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_remote_close(remote: RemoteHandle) -> u32 {
    guard(|| registry().remotes.remove(remote.id).map(drop))
}
