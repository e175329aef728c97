// SPDX-License-Identifier: Apache-2.0
//! The edge to C: results are numbers, the text of an error is kept for its thread, and no panic passes.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nacelle::{Error, ErrorCode};
use nacelle_device::DeviceError;

/// Success.
pub(crate) const OK: u32 = 0;

/// What can be wrong at the edge only. The numbers are beyond those of [`ErrorCode`] and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum EdgeCode {
    /// A defect of this library.
    Internal = 1000,
    /// Not a handle.
    BadHandle = 1001,
    /// A handle of something else.
    WrongHandle = 1002,
    /// The handle was closed.
    Closed = 1003,
    /// Another thread uses it.
    Busy = 1004,
    /// The handle is of the process that forked this one.
    Forked = 1005,
    /// The call still runs.
    Pending = 1006,
    /// The text does not fit.
    BufferTooSmall = 1007,
}

/// Why a function of the interface failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The number that it returns.
    pub(crate) code: u32,
    /// What has happened.
    pub(crate) text: String,
    /// What to try.
    pub(crate) hint: String,
}

impl Failure {
    /// An argument that cannot be.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self { code: ErrorCode::InvalidArgument as u32, text: text.into(), hint: "correct the argument".into() }
    }

    /// Something that is wrong at the edge only.
    pub(crate) fn edge(code: EdgeCode, text: impl Into<String>, hint: &str) -> Self {
        Self { code: code as u32, text: text.into(), hint: hint.into() }
    }

    /// A panic was caught.
    fn panicked(payload: &(dyn std::any::Any + Send)) -> Self {
        let said = payload.downcast_ref::<&str>().copied().map(str::to_owned);
        let said = said.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        Self::edge(
            EdgeCode::Internal,
            format!("a defect of this library: {said}"),
            "report it with this text, close the handles and begin anew",
        )
    }

    /// Both lines in one.
    pub(crate) fn whole(&self) -> String {
        format!("{}; try: {}", self.text, self.hint)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { code: error.code() as u32, text: error.to_string(), hint: error.hint().to_owned() }
    }
}

impl From<nacelle_copy::Error> for Failure {
    fn from(error: nacelle_copy::Error) -> Self {
        Self { code: error.code() as u32, text: error.to_string(), hint: error.hint().to_owned() }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Self { code: error.code() as u32, text: error.to_string(), hint: error.hint().to_owned() }
    }
}

/// The last error of a thread, as C strings.
#[derive(Default)]
struct Last {
    whole: CString,
    hint: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// A C string; what is behind a zero byte is cut off.
fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// Keeps the error for its thread.
fn keep(failure: &Failure) {
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|last| {
        *last.borrow_mut() = Last { whole: c_string(&failure.whole()), hint: c_string(&failure.hint) };
    });
}

/// Runs the body of an exported function. Returns its number; the text of an error is kept for this thread.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> u32 {
    // What a panic may have left half done is behind a lock that it has poisoned, or owned by `body`.
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let outcome = outcome.unwrap_or_else(|payload| {
        let failure = Failure::panicked(&*payload);
        // Dropping what was thrown may itself panic.
        std::mem::forget(payload);
        Err(failure)
    });
    match outcome {
        Ok(()) => OK,
        Err(failure) => {
            keep(&failure);
            failure.code
        }
    }
}

/// What a number means, in a few words.
fn describe(result: u32) -> &'static CStr {
    match result {
        0 => c"success",
        1 => c"an argument is not valid",
        2 => c"the wire cannot be used",
        3 => c"the address or the name is used by another",
        4 => c"no address is free",
        5 => c"no host answers at the address",
        6 => c"the device refused the connection",
        7 => c"the device refused the regions",
        8 => c"nothing moved for too long",
        9 => c"the device was lost",
        10 => c"the device refused a request of the transport",
        11 => c"the device broke the protocol",
        12 => c"no kernel is free for the function",
        13 => c"the kernel took longer than the device allows",
        14 => c"the device does not have the function",
        15 => c"the kernel failed",
        16 => c"no such device on the wire",
        17 => c"the device could not be managed",
        18 => c"the call was cancelled",
        19 => c"the call did not end by its deadline",
        20 => c"all contexts of the connection are in use",
        21 => c"the device has not agreed to this",
        22 => c"this side has ended the connection",
        23 => c"none of the devices can be reached",
        24 => c"the window is open already",
        25 => c"the software device does not take the kernel",
        26 => c"the simulated device cannot be made",
        27 => c"the device does not admit this caller",
        28 => c"the device admits this caller no longer",
        29 => c"the device in the slot cannot be used, or has gone",
        30 => c"so much device memory is not free",
        31 => c"a copy failed",
        32 => c"there is no room for more copies",
        1000 => c"a defect of the library",
        1001 => c"not a handle of this library",
        1002 => c"a handle of another kind",
        1003 => c"the handle was closed",
        1004 => c"another thread uses the handle",
        1005 => c"the handle belongs to the process that forked this one",
        1006 => c"the call or transfer still runs",
        1007 => c"the buffer is too small",
        _ => c"a result that this version of the library does not have",
    }
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_result_string(result: u32) -> *const c_char {
    describe(result).as_ptr()
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().whole.as_ptr()).unwrap_or(c"".as_ptr())
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_last_hint() -> *const c_char {
    LAST.try_with(|last| last.borrow().hint.as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> (String, String) {
        LAST.with(|last| {
            let last = last.borrow();
            (last.whole.to_str().unwrap().to_owned(), last.hint.to_str().unwrap().to_owned())
        })
    }

    #[test]
    fn no_panic_crosses_the_edge() {
        for panic in [|| panic!("boom"), || panic!("{}", String::from("boom"))] {
            assert_eq!(guard(panic), EdgeCode::Internal as u32);
            assert!(last().0.contains("boom"), "{:?}", last());
        }
    }

    #[test]
    fn an_error_has_its_number_its_text_and_its_hint() {
        assert_eq!(guard(|| Err(Failure::invalid("no"))), 1);
        assert_eq!(last(), ("no; try: correct the argument".into(), "correct the argument".into()));
        assert_eq!(guard(|| Ok(())), 0);
        assert!(!last().0.is_empty(), "a success leaves the last error");
        let elsewhere = std::thread::spawn(|| last().0).join().unwrap();
        assert_eq!(elsewhere, "", "errors are those of a thread");
    }

    #[test]
    fn text_behind_a_zero_is_cut_off() {
        guard(|| Err(Failure::invalid("a\0b")));
        assert_eq!(last().0, "a");
    }

    #[test]
    fn every_number_has_words() {
        let none = describe(u32::MAX);
        for code in (0..=32).chain(1000..=1007) {
            assert_ne!(describe(code), none, "{code}");
        }
        assert_eq!(describe(33), none);
    }
}
