// SPDX-License-Identifier: Apache-2.0
//! Copies past the cache of this processor.

use core::ptr::NonNull;

/// Copies bytes that fill `into` there, by stores that leave no line of it in this processor's cache.
///
/// # Safety
/// So many bytes may be read at `from`, and are no part of `into`. Nothing in this process writes them meanwhile.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) unsafe fn copy(from: NonNull<u8>, into: &mut [u8]) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const LINE: usize = 64;

    // Whole lines leave without having been read.
    let head = into.as_ptr().align_offset(LINE).min(into.len());
    let lines = (into.len() - head) / LINE;
    let (head, rest) = into.split_at_mut(head);
    let (body, tail) = rest.split_at_mut(lines * LINE);
    // SAFETY: the three parts are as long as the bytes at `from`, one behind the other. Every x86-64 processor has SSE2, whose stores
    // need an address that is a multiple of 16, as that of a line is.
    unsafe {
        from.copy_to_nonoverlapping(NonNull::from(&mut *head).cast(), head.len());
        let mut at = from.add(head.len());
        for line in body.chunks_exact_mut(LINE) {
            let (to, from): (*mut __m128i, *const __m128i) = (line.as_mut_ptr().cast(), at.as_ptr().cast());
            let words = [0, 1, 2, 3].map(|word| _mm_loadu_si128(from.add(word)));
            for (word, value) in words.into_iter().enumerate() {
                _mm_stream_si128(to.add(word), value);
            }
            at = at.add(LINE);
        }
        at.copy_to_nonoverlapping(NonNull::from(&mut *tail).cast(), tail.len());
    }
    // SAFETY: as above. It alone orders such stores before what this thread reads and writes next.
    unsafe { _mm_sfence() };
}

/// The same through the cache, where nothing else is known.
///
/// # Safety
/// As there.
#[cfg(any(not(target_arch = "x86_64"), miri))]
pub(crate) unsafe fn copy(from: NonNull<u8>, into: &mut [u8]) {
    // SAFETY: so many bytes may be read, and are no part of `into`.
    unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *into).cast(), into.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_to_every_place() {
        let from: Vec<u8> = (0..400u32).map(|byte| byte as u8 ^ 0x5a).collect();
        for place in 0..130 {
            for len in [0, 1, 15, 16, 63, 64, 65, 127, 128, 200, 256] {
                let mut into = vec![0; 400];
                // SAFETY: there are so many bytes, and they are in another vector.
                unsafe { copy(NonNull::from(&from[place..]).cast(), &mut into[place + 1..][..len]) };
                assert!(into[..=place].iter().chain(&into[place + 1 + len..]).all(|byte| *byte == 0), "{place} {len}");
                assert_eq!(into[place + 1..][..len], from[place..][..len], "{place} {len}");
            }
        }
    }
}
