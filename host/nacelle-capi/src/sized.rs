// SPDX-License-Identifier: Apache-2.0
//! Structures of a C program that begin with their own size, so that later versions can add fields.

use std::mem::MaybeUninit;

use crate::edge::Failure;

/// The largest structure that is taken for one, in bytes.
const MOST: usize = 4096;

/// A structure of numbers and pointers whose first field is its size, and of which all zeros is a value.
///
/// # Safety
/// The type is `repr(C)`, its first field is a `usize`, every bit pattern of zeros is a value, and it has no padding that a
/// program could not have set.
pub(crate) unsafe trait Growing: Copy {}

/// Reads a structure: fields that the program's version does not have are zero. None if the pointer is null.
///
/// # Safety
/// `from` is null, or points to a structure whose first field says how many bytes may be read.
pub(crate) unsafe fn read<T: Growing>(from: *const T, name: &str) -> Result<Option<T>, Failure> {
    if from.is_null() {
        return Ok(None);
    }
    let bytes: *const u8 = from.cast();
    // SAFETY: the first field is a `usize`, which the caller promises to be readable; it may lie anywhere.
    let size = unsafe { bytes.cast::<usize>().read_unaligned() };
    if size < size_of::<usize>() || size > MOST {
        return Err(Failure::invalid(format!(
            "the field 'size' of {name} is {size}: begin with the initializer of nacelle.h"
        )));
    }
    let mut value = MaybeUninit::<T>::zeroed();
    let known = size.min(size_of::<T>());
    // SAFETY: `size` bytes may be read, and `value` has room for `known`; the two are different memory.
    unsafe { bytes.copy_to_nonoverlapping(value.as_mut_ptr().cast(), known) };
    let beyond = (known..size).any(|at| {
        // SAFETY: `at` is less than `size`.
        unsafe { bytes.add(at).read() != 0 }
    });
    if beyond {
        return Err(Failure::invalid(format!("{name} uses a field that this version of the library does not have")));
    }
    // SAFETY: zeros are a value of `T`, and so is what a program has put there: numbers and pointers.
    Ok(Some(unsafe { value.assume_init() }))
}

/// Writes a structure as far as the program's version has it, but for the field that says its size.
///
/// # Safety
/// As [`read`]; the structure may be written.
pub(crate) unsafe fn write<T: Growing>(to: *mut T, value: T, name: &str) -> Result<(), Failure> {
    // SAFETY: as this function.
    if unsafe { read(to, name) }?.is_none() {
        return Err(Failure::invalid(format!("{name} is NULL")));
    }
    // SAFETY: `read` has found a size.
    let size = unsafe { to.cast::<usize>().read_unaligned() };
    let first = size_of::<usize>();
    let known = size.min(size_of::<T>()).saturating_sub(first);
    let from: *const u8 = (&raw const value).cast();
    // SAFETY: `known` bytes behind the first field are in both structures.
    unsafe { from.add(first).copy_to_nonoverlapping(to.cast::<u8>().add(first), known) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Two {
        size: usize,
        one: u64,
        two: u64,
    }
    // SAFETY: numbers only, without padding.
    unsafe impl Growing for Two {}

    fn look(words: &[u64]) -> Result<Option<Two>, Failure> {
        // SAFETY: the first word says how many bytes there are.
        unsafe { read(words.as_ptr().cast(), "it") }
    }

    #[test]
    fn older_and_newer_structures_are_read() {
        assert_eq!(look(&[24, 1, 2]).unwrap().unwrap(), Two { size: 24, one: 1, two: 2 });
        assert_eq!(look(&[16, 1]).unwrap().unwrap(), Two { size: 16, one: 1, two: 0 });
        assert_eq!(look(&[32, 1, 2, 0]).unwrap().unwrap().two, 2);
        assert!(look(&[32, 1, 2, 3]).unwrap_err().text.contains("version"));
        for size in [0, 7, 4097, u64::MAX] {
            assert!(look(&[size, 1, 2]).unwrap_err().text.contains("'size'"), "{size}");
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read::<Two>(std::ptr::null(), "it") }, Ok(None));
    }

    #[test]
    fn a_structure_is_written_as_far_as_it_goes() {
        let value = Two { size: 0, one: 5, two: 6 };
        for (size, after) in [(24, [24, 5, 6]), (16, [16, 5, 9]), (8, [8, 9, 9])] {
            let mut words: [u64; 3] = [size, 9, 9];
            // SAFETY: the first word says how many bytes there are.
            unsafe { write(words.as_mut_ptr().cast(), value, "it") }.unwrap();
            assert_eq!(words, after);
        }
    }
}
