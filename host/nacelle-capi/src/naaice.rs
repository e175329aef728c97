// SPDX-License-Identifier: Apache-2.0
//! The middleware interface of NAAICE: `naa_create`, `naa_invoke`, `naa_test`, `naa_wait`, `naa_finalize`.

mod create;
mod sessions;
mod spec;

use std::ffi::c_void;
use std::ptr;
use std::time::Duration;

use crate::edge::{Failure, guard};
use crate::handle::registry;
use crate::outcome::State;
use crate::text;

pub(crate) use sessions::{NaaSession, Shared};

/// How long a call may take: the default of the upstream library, `DEFAULT_TIMEOUT` of `naaice.h`.
const CALL_WITHIN: Duration = Duration::from_secs(3600);

/// `naa_param_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct NaaParam {
    addr: *mut c_void,
    size: usize,
    /// A C `bool`, of which a program may not have set every byte.
    single_send: u8,
}

/// `naa_handle`. The second field is a handle of this library in the place of a pointer, which is never followed.
#[repr(C)]
pub(crate) struct NaaHandle {
    function_code: u32,
    comm_ctx: *mut c_void,
}

/// `naa_status`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct NaaStatus {
    state: u32,
    naa_error: u32,
    bytes_received: u64,
}

/// The states of `naaice_communication_state` that a program sees here.
#[derive(Clone, Copy)]
#[repr(u32)]
enum CommunicationState {
    MrspDone = 12,
    Calculating = 21,
    Finished = 30,
    Error = 40,
}

const _: () = assert!(size_of::<*const c_void>() == size_of::<u64>(), "a handle is as large as a pointer");

/// 0 or -1, as the interface has it. The error is told on stderr, because programs of this interface have no other way to it,
/// unless `NACELLE_LOG` is `off`.
fn outcome(function: &str, body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let mut said = None;
    let result = guard(|| body().inspect_err(|failure| said = Some(failure.whole())));
    if let Some(said) = said
        && std::env::var_os("NACELLE_LOG").is_none_or(|value| value != "off")
    {
        eprintln!("{function}: {said}");
    }
    if result == 0 { 0 } else { -1 }
}

/// The session of a handle.
///
/// # Safety
/// `handle` is null or may be read.
unsafe fn session_of(handle: *const NaaHandle) -> Result<u64, Failure> {
    if handle.is_null() {
        return Err(Failure::invalid("the handle is NULL"));
    }
    // SAFETY: as this function.
    Ok(unsafe { (&raw const (*handle).comm_ctx).read() }.addr() as u64)
}

impl NaaSession {
    /// What a program is told of the session.
    fn status(&self) -> NaaStatus {
        let state = match &self.session.outcome.state {
            State::Ready => CommunicationState::MrspDone,
            State::Running => CommunicationState::Calculating,
            State::Done => CommunicationState::Finished,
            // The device has answered: the call is over, with the code that the answer has.
            State::Failed(_) if self.session.outcome.result != 0 => CommunicationState::Finished,
            State::Failed(_) => CommunicationState::Error,
        };
        NaaStatus {
            state: state as u32,
            naa_error: self.session.outcome.result,
            bytes_received: self.session.received(),
        }
    }

    /// Whether the call has ended. A result code of the device is no error here: the status has it.
    fn test(&mut self) -> Result<bool, Failure> {
        match self.session.test() {
            Err(_) if self.session.outcome.result != 0 => Ok(true),
            other => other,
        }
    }

    /// Waits for the end of the call, as [`NaaSession::test`] has it.
    fn wait(&mut self) -> Result<(), Failure> {
        match self.session.wait(None) {
            Err(_) if self.session.outcome.result != 0 => Ok(()),
            outcome => outcome,
        }
    }
}

/// See `naaice_ap2.h`.
///
/// # Safety
/// `input_params` and `output_params` have as many elements as is said, whose memory stays until `naa_finalize`; `handle` may be
/// written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn naa_create(
    function_code: u32,
    input_params: *const NaaParam,
    input_amount: u32,
    output_params: *const NaaParam,
    output_amount: u32,
    handle: *mut NaaHandle,
) -> i32 {
    outcome("naa_create", || {
        text::place(handle, "the handle")?;
        // SAFETY: as this function.
        let buffers = unsafe {
            handle.write(NaaHandle { function_code, comm_ctx: ptr::null_mut() });
            let inputs = create::parameters(input_params, input_amount, "input")?;
            let outputs = create::parameters(output_params, output_amount, "output")?;
            create::buffers(&inputs, &outputs)?
        };
        let session = create::session(function_code, input_amount, &buffers)?;
        let comm_ctx = ptr::without_provenance_mut(session as usize);
        // SAFETY: as this function.
        unsafe { handle.write(NaaHandle { function_code, comm_ctx }) };
        Ok(())
    })
}

/// See `naaice.h`.
///
/// # Safety
/// `imm_bytes` has three bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn naaice_set_immediate(comm_ctx: *mut c_void, imm_bytes: *const u8) -> i32 {
    outcome("naaice_set_immediate", || {
        text::place(imm_bytes.cast_mut(), "imm_bytes")?;
        // SAFETY: as this function.
        let user = unsafe { imm_bytes.cast::<[u8; 3]>().read() };
        registry().naaice.with(comm_ctx.addr() as u64, |naa| {
            naa.user = user;
            Ok(())
        })
    })
}

/// See `naaice_ap2.h`.
///
/// # Safety
/// `handle` is null or one that `naa_create` has filled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn naa_invoke(handle: *mut NaaHandle) -> i32 {
    outcome("naa_invoke", || {
        // SAFETY: as this function.
        let session = unsafe { session_of(handle) }?;
        registry().naaice.with(session, |naa| naa.session.invoke(naa.user))
    })
}

/// See `naaice_ap2.h`.
///
/// # Safety
/// As [`naa_invoke`]; `flag` and `status` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn naa_test(handle: *mut NaaHandle, flag: *mut bool, status: *mut NaaStatus) -> i32 {
    outcome("naa_test", || {
        text::place(flag, "flag")?;
        text::place(status, "status")?;
        let failed = NaaStatus { state: CommunicationState::Error as u32, naa_error: 0, bytes_received: 0 };
        // SAFETY: as this function. A loop that looks at the flag alone ends after an error, too.
        let session = unsafe {
            flag.write(true);
            status.write(failed);
            session_of(handle)
        }?;
        let (ended, now) = registry().naaice.with(session, |naa| {
            let ended = match naa.session.outcome.state {
                State::Ready => Ok(false),
                _ => naa.test(),
            };
            Ok((ended, naa.status()))
        })?;
        // SAFETY: as this function.
        unsafe {
            flag.write(!matches!(ended, Ok(false)));
            status.write(now);
        }
        ended.map(|_| ())
    })
}

/// See `naaice_ap2.h`.
///
/// # Safety
/// As [`naa_invoke`]; `status` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn naa_wait(handle: *mut NaaHandle, status: *mut NaaStatus) -> i32 {
    outcome("naa_wait", || {
        text::place(status, "status")?;
        let failed = NaaStatus { state: CommunicationState::Error as u32, naa_error: 0, bytes_received: 0 };
        // SAFETY: as this function.
        let session = unsafe {
            status.write(failed);
            session_of(handle)
        }?;
        let (ended, now) = registry().naaice.with(session, |naa| Ok((naa.wait(), naa.status())))?;
        // SAFETY: as this function.
        unsafe { status.write(now) };
        ended
    })
}

/// See `naaice_ap2.h`.
///
/// # Safety
/// As [`naa_invoke`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn naa_finalize(handle: *mut NaaHandle) -> i32 {
    outcome("naa_finalize", || {
        // SAFETY: as this function.
        let session = unsafe { session_of(handle) }?;
        registry().naaice.take(session)?.close()
    })
}
