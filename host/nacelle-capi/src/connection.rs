// SPDX-License-Identifier: Apache-2.0
//! Connections on which several calls run side by side.

use nacelle::{ChainStep, ConnectionOptions};

use crate::call::{CRegion, CallOptions, Given};
use crate::edge::{Failure, guard};
use crate::handle::{CallHandle, ConnectionHandle, DeviceHandle, registry};
use crate::session;
use crate::sized::{self, Growing};
use crate::text;

/// More steps than this are a mistake; devices run far fewer.
const MOST_STEPS: usize = 4096;

/// `nacelle_connection_options`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct COptions {
    size: usize,
    contexts: u32,
    reserved: u32,
}
// SAFETY: numbers only, without padding.
unsafe impl Growing for COptions {}

/// `nacelle_connection_info`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Info {
    size: usize,
    contexts: u32,
    free_contexts: u32,
    can_cancel: u32,
    has_long_set_up: u32,
}
// SAFETY: numbers only, without padding.
unsafe impl Growing for Info {}

/// `nacelle_chain_step`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CStep {
    function: u32,
    user: u32,
    first_region: u32,
    region_count: u32,
}

impl CStep {
    fn read(&self, index: usize) -> Result<ChainStep, Failure> {
        let wrong = |what: &str| Failure::invalid(format!("step {index} of the chain {what}"));
        let [first, second, third, 0] = self.user.to_le_bytes() else {
            return Err(wrong("has a user argument of more than 24 bits"));
        };
        let end = self.first_region.checked_add(self.region_count).ok_or_else(|| wrong("names too many regions"))?;
        let mut step = ChainStep::new(session::function(self.function)?, self.first_region as usize..end as usize);
        step.user = [first, second, third];
        Ok(step)
    }
}

/// See `nacelle.h`.
///
/// # Safety
/// `options` is null or begins with its size; `connection` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_connection_open(
    device: DeviceHandle,
    options: *const COptions,
    connection: *mut ConnectionHandle,
) -> u32 {
    guard(|| {
        text::place(connection, "connection")?;
        // SAFETY: as this function.
        let given = unsafe {
            connection.write(ConnectionHandle { id: 0 });
            sized::read(options, "nacelle_connection_options")?
        };
        let mut options = ConnectionOptions::default();
        if let Some(given) = given {
            let contexts = u8::try_from(given.contexts).ok().filter(|_| given.reserved == 0);
            let contexts = contexts.ok_or_else(|| Failure::invalid("'contexts' is 0 to 255, and 'reserved' 0"))?;
            options.contexts = if contexts == 0 { options.contexts } else { contexts };
        }
        let opened = registry().devices.get(device.id)?.open(&options)?;
        let id = registry().connections.insert(opened)?;
        // SAFETY: as this function.
        unsafe { connection.write(ConnectionHandle { id }) };
        Ok(())
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `info` begins with its size and may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_connection_get_info(connection: ConnectionHandle, info: *mut Info) -> u32 {
    guard(|| {
        let connection = registry().connections.get(connection.id)?;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let now = Info {
            size: 0,
            contexts: count(connection.contexts()),
            free_contexts: count(connection.free_contexts()),
            can_cancel: connection.can_cancel().into(),
            has_long_set_up: connection.has_long_set_up().into(),
        };
        // SAFETY: as this function.
        unsafe { sized::write(info, now, "nacelle_connection_info") }
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// As [`Given::read`]; `call` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_connection_create(
    connection: ConnectionHandle,
    function: u32,
    regions: *const CRegion,
    count: usize,
    options: *const CallOptions,
    call: *mut CallHandle,
) -> u32 {
    guard(|| {
        text::place(call, "call")?;
        // SAFETY: as this function.
        let given = unsafe {
            call.write(CallHandle { id: 0 });
            Given::read(regions, count, options)?
        };
        let (connection, function) = (registry().connections.get(connection.id)?, session::function(function)?);
        let id = given.create(|regions, options| connection.create_with(function, regions, options))?;
        // SAFETY: as this function.
        unsafe { call.write(CallHandle { id }) };
        Ok(())
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// As [`Given::read`]; `steps` has `step_count` elements; `call` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_connection_create_chain(
    connection: ConnectionHandle,
    steps: *const CStep,
    step_count: usize,
    regions: *const CRegion,
    count: usize,
    options: *const CallOptions,
    call: *mut CallHandle,
) -> u32 {
    guard(|| {
        text::place(call, "call")?;
        if steps.is_null() || step_count == 0 || step_count > MOST_STEPS {
            return Err(Failure::invalid(format!("a chain needs 1 to {MOST_STEPS} steps")));
        }
        // SAFETY: as this function.
        let (given, steps) = unsafe {
            call.write(CallHandle { id: 0 });
            let steps = (0..step_count).map(|index| steps.add(index).read().read(index));
            (Given::read(regions, count, options)?, steps.collect::<Result<Vec<_>, _>>()?)
        };
        let connection = registry().connections.get(connection.id)?;
        let id = given.create(|regions, options| connection.create_chain(&steps, regions, options))?;
        // SAFETY: as this function.
        unsafe { call.write(CallHandle { id }) };
        Ok(())
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_connection_close(connection: ConnectionHandle) -> u32 {
    guard(|| registry().connections.remove(connection.id).map(drop))
}
