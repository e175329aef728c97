// SPDX-License-Identifier: Apache-2.0
//! Memory of a region: zeros at first, from an address on that suits every element and every vector register.

#![allow(unsafe_code)]

use std::ptr::NonNull;

use nacelle_roce::memory::StableBytes;

/// The first byte's address is a multiple of this (`NACELLE_KERNEL_ALIGNMENT`).
const ALIGNMENT: usize = 64;

/// So many bytes. They are reached through the transport while they are registered, else by [`Buffer::bytes_mut`].
#[derive(Debug)]
pub(super) struct Buffer {
    start: NonNull<u8>,
    length: usize,
    /// Owns the bytes. Zeros that nobody has touched cost the system nothing, which they would if they were allocated aligned.
    _memory: Vec<u8>,
}

// SAFETY: the bytes belong to this value alone.
unsafe impl Send for Buffer {}

impl Buffer {
    /// `length` zeros.
    pub(super) fn zeroed(length: usize) -> Self {
        let mut memory = vec![0; length + ALIGNMENT - 1];
        let first = memory.as_ptr().align_offset(ALIGNMENT);
        let start = NonNull::from(&mut memory[first..][..length]).cast();
        Self { start, length, _memory: memory }
    }

    /// Bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// All of it.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes of the vector, which is neither used nor freed as long as this value is borrowed.
        unsafe { NonNull::slice_from_raw_parts(self.start, self.length).as_mut() }
    }
}

// SAFETY: a vector's allocation stays where it is, and this one is neither used nor freed before this value is dropped. The
// bytes are reached in other ways only through `&mut self`, which nobody has while the transport has the value.
unsafe impl StableBytes for Buffer {
    fn bytes(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.start, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacelle_roce::memory::Memory;

    #[test]
    fn it_is_aligned_zero_and_comes_back_from_a_registration() {
        for length in [0, 1, 63, 64, 4096, 1 << 20] {
            let mut memory = Memory::new(Buffer::zeroed(length));
            assert!(memory.to_vec().unwrap() == vec![0; length]);
            assert!(memory.write(0, &vec![7; length + 1]).is_err());
            memory.write(0, &vec![7; length]).unwrap();
            let mut buffer = memory.into_owner::<Buffer>().unwrap();
            assert!(buffer.bytes_mut() == vec![7; length]);
            assert_eq!(buffer.bytes_mut().as_ptr().addr() % ALIGNMENT, 0);
        }
    }
}
