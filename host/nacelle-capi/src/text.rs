// SPDX-License-Identifier: Apache-2.0
//! Text from and for C programs, and places for results.

use std::ffi::{CStr, c_char};

use crate::edge::{EdgeCode, Failure};

/// A string of the program; None if it is null.
///
/// # Safety
/// `text` is null, or ends with a zero byte and is not changed meanwhile.
pub(crate) unsafe fn read<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller promises a zero at the end.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Failure::invalid(format!("{name} is not UTF-8")))
}

/// Copies `text` and a zero byte to a buffer of the program, and tells its length without the zero. A null buffer, of size 0,
/// gets the length alone.
///
/// # Safety
/// `to` is null or has `size` bytes that may be written; `length` is null or may be written.
pub(crate) unsafe fn write(text: &str, to: *mut c_char, size: usize, length: *mut usize) -> Result<(), Failure> {
    if to.is_null() && (size != 0 || length.is_null()) {
        return Err(Failure::invalid(
            "the buffer is NULL, with a size that is not 0 or without a place for the length",
        ));
    }
    if !length.is_null() {
        // SAFETY: the caller promises that it may be written.
        unsafe { length.write_unaligned(text.len()) };
    }
    if to.is_null() {
        return Ok(());
    }
    if size <= text.len() {
        let what = format!("the text has {} bytes with its zero, the buffer {size}", text.len() + 1);
        return Err(Failure::edge(EdgeCode::BufferTooSmall, what, "ask for the length first, with a NULL buffer"));
    }
    // SAFETY: the buffer has room for the text and a zero, and is not part of a Rust string.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Refuses a null place for a result.
pub(crate) fn place<T>(to: *mut T, name: &str) -> Result<(), Failure> {
    if to.is_null() { Err(Failure::invalid(format!("{name} is NULL"))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_copied_if_it_fits() {
        let mut buffer = [1 as c_char; 6];
        let mut length = 0;
        // SAFETY: the buffer has as many bytes as is said.
        let mut copy = |size| unsafe { write("four", buffer.as_mut_ptr(), size, &raw mut length) };
        assert_eq!(copy(4).unwrap_err().code, EdgeCode::BufferTooSmall as u32);
        copy(5).unwrap();
        assert_eq!((buffer[4], buffer[5], length), (0, 1, 4));
        // SAFETY: null is allowed.
        unsafe { write("five!", std::ptr::null_mut(), 0, &raw mut length) }.unwrap();
        assert_eq!(length, 5);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { write("x", std::ptr::null_mut(), 9, &raw mut length) }.unwrap_err().code, 1);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read(std::ptr::null(), "it") }, Ok(None));
        // SAFETY: it ends with a zero.
        assert_eq!(unsafe { read(c"\xff".as_ptr(), "it") }.unwrap_err().text, "it is not UTF-8");
    }
}
