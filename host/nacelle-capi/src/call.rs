// SPDX-License-Identifier: Apache-2.0
//! Calls: created, started, looked at, waited for, closed.

use std::ffi::{c_char, c_void};
use std::time::Duration;

use nacelle::{Error, Region, Role};

use crate::edge::{Failure, guard};
use crate::handle::{CallHandle, DeviceHandle, Exclusive, registry};
use crate::memory::{self, Buffer};
use crate::notifier::Data;
use crate::outcome::Outcome;
use crate::session::{self, Session};
use crate::sized::{self, Growing};
use crate::text;

/// More regions than this are a mistake; devices have far fewer.
const MOST_REGIONS: usize = 4096;

/// `nacelle_region`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CRegion {
    role: u32,
    reserved: u32,
    data: *mut c_void,
    size: usize,
}

impl CRegion {
    /// # Safety
    /// As [`Buffer::new`].
    unsafe fn buffer(&self, index: usize) -> Result<Buffer, Failure> {
        let role = match (self.role, self.reserved) {
            (1, 0) => Role::Input,
            (2, 0) => Role::InputOnce,
            (3, 0) => Role::Output,
            (4, 0) => Role::InOut,
            (5, 0) => Role::InOutOnce,
            (6, 0) => Role::Internal,
            (role, 0) => return Err(Failure::invalid(format!("region {index} has the role {role}, which is none"))),
            _ => return Err(Failure::invalid(format!("'reserved' of region {index} is not 0"))),
        };
        // SAFETY: as this function.
        Ok(unsafe { Buffer::new(role, self.data, self.size) })
    }
}

/// `nacelle_call_status`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CallStatus {
    size: usize,
    state: u32,
    device_result: u32,
    bytes_received: u64,
}
// SAFETY: numbers only, without padding.
unsafe impl Growing for CallStatus {}

/// `nacelle_call_options`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CallOptions {
    size: usize,
    deadline_ms: u32,
    reserved: u32,
}
// SAFETY: numbers only, without padding.
unsafe impl Growing for CallOptions {}

/// What a call is created from.
pub(crate) struct Given {
    buffers: Vec<Buffer>,
    pub(crate) options: nacelle::CallOptions,
}

impl Given {
    /// # Safety
    /// `options` is null or begins with its size; `regions` has `count` elements, and their memory is as [`Buffer::new`] says.
    pub(crate) unsafe fn read(
        regions: *const CRegion,
        count: usize,
        options: *const CallOptions,
    ) -> Result<Self, Failure> {
        if regions.is_null() || count == 0 || count > MOST_REGIONS {
            return Err(Failure::invalid(format!("a call needs 1 to {MOST_REGIONS} regions")));
        }
        // SAFETY: as this function.
        let buffers = (0..count).map(|index| unsafe { regions.add(index).read().buffer(index) });
        let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
        // SAFETY: as this function.
        let options = unsafe { sized::read(options, "nacelle_call_options") }?;
        if options.is_some_and(|options| options.reserved != 0) {
            return Err(Failure::invalid("'reserved' of nacelle_call_options is not 0"));
        }
        let deadline = options.map(|options| options.deadline_ms).filter(|deadline_ms| *deadline_ms != 0);
        let options = nacelle::CallOptions { deadline: deadline.map(|ms| Duration::from_millis(ms.into())) };
        Ok(Self { buffers, options })
    }

    /// Creates the call. Returns its handle.
    pub(crate) fn create(
        self,
        create: impl FnOnce(Vec<Region>, &nacelle::CallOptions) -> Result<nacelle::Call, Error>,
    ) -> Result<u64, Failure> {
        let call = create(memory::regions(&self.buffers)?, &self.options)?;
        let session = Session::new(call, memory::output_bytes(&self.buffers));
        let canceller = session.canceller();
        registry().calls.insert(Exclusive::new(session, canceller))
    }
}

/// See `nacelle.h`.
///
/// # Safety
/// As [`Given::read`]; `call` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_call_create(
    device: DeviceHandle,
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
        let (device, function) = (registry().devices.get(device.id)?, session::function(function)?);
        let id = given.create(|regions, options| device.create_with(function, regions, options))?;
        // SAFETY: as this function.
        unsafe { call.write(CallHandle { id }) };
        Ok(())
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_call_invoke(call: CallHandle) -> u32 {
    nacelle_call_invoke_with(call, 0)
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_call_invoke_with(call: CallHandle, user: u32) -> u32 {
    guard(|| {
        let [first, second, third, 0] = user.to_le_bytes() else {
            return Err(Failure::invalid(format!("the user argument {user:#x} has more than 24 bits")));
        };
        registry().calls.with(call.id, |session| session.invoke([first, second, third]))
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `done` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_call_test(call: CallHandle, done: *mut bool) -> u32 {
    guard(|| {
        text::place(done, "done")?;
        let tested = registry().calls.with(call.id, Session::test);
        // SAFETY: as this function. A loop that looks at it alone ends after an error, too.
        unsafe { done.write(!matches!(tested, Ok(false))) };
        tested.map(|_| ())
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_call_wait(call: CallHandle, timeout_ms: i64) -> u32 {
    let patience = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    guard(|| registry().calls.with(call.id, |session| session.wait(patience)))
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_call_cancel(call: CallHandle) -> u32 {
    // Another thread may be waiting for the call.
    guard(|| Ok(registry().calls.get(call.id)?.beside.cancel()?))
}

/// See `nacelle.h`.
///
/// # Safety
/// `callback` may be called with `data` by any thread until the call was closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_call_on_finish(
    call: CallHandle,
    callback: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> u32 {
    guard(|| {
        let callback = callback.ok_or_else(|| Failure::invalid("callback is NULL"))?;
        let data = Data(data);
        registry().calls.with(call.id, |session| {
            // SAFETY: as this function.
            session.on_finish(move || unsafe { callback(data.get()) });
            Ok(())
        })
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `status` begins with its size and may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_call_get_status(call: CallHandle, status: *mut CallStatus) -> u32 {
    guard(|| {
        let now = registry().calls.with(call.id, |session| {
            let Outcome { state, result } = &session.outcome;
            let (state, device_result, bytes_received) = (state.number(), *result, session.received());
            Ok(CallStatus { size: 0, state, device_result, bytes_received })
        })?;
        // SAFETY: as this function.
        unsafe { sized::write(status, now, "nacelle_call_status") }
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `text` is null or has `size` bytes that may be written; `length` is null or may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_call_report(
    call: CallHandle,
    text: *mut c_char,
    size: usize,
    length: *mut usize,
) -> u32 {
    guard(|| {
        let report = registry().calls.with(call.id, |session| session.report())?;
        // SAFETY: as this function.
        unsafe { text::write(&report, text, size, length) }
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_call_close(call: CallHandle) -> u32 {
    guard(|| registry().calls.take(call.id)?.close())
}
