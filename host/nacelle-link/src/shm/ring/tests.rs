// SPDX-License-Identifier: Apache-2.0
//! The ring between two threads, under loom too, and with a writer and a reader that keep to no rule.

use std::sync::atomic::Ordering;

use super::super::mapping::Mapping;
use super::*;

const CAPACITY: usize = 256;

fn header(len: usize) -> Header {
    Header { len, stride: len.min(3), ecn: 2 }
}

/// Contents that say which record they are of.
fn contents(index: usize) -> Vec<u8> {
    let len = 1 + index * 7 % 180;
    (0..len).map(|byte| (index * 31 + byte) as u8).collect()
}

#[test]
fn headers_are_read_as_they_were_written() {
    for header in [header(1), header(65_475), Header { len: 4096, stride: 1, ecn: 3 }] {
        assert_eq!(Header::decode(header.encode(), 1 << 16), Some(header));
    }
    let nonsense = [0, 1, 1 << 24, 1 << 50 | 1 << 24 | 1, u64::MAX, 1 << 24 | 65, 1 << 63 | 1 << 24 | 1];
    for word in nonsense {
        assert_eq!(Header::decode(word, 64), None, "{word:#x}");
    }
}

/// Two threads. Also for Miri, which finds accesses that are not in order.
#[test]
fn records_come_whole_and_in_order() {
    let count = if cfg!(miri) { 60 } else { 20_000 };
    let (owner, other) = Mapping::pair(Place::len(CAPACITY));
    let place = Place::new(0, CAPACITY);
    let thread = std::thread::spawn(move || {
        let mut writer = Writer::new(place);
        for index in 0..count {
            let bytes = contents(index);
            while writer.write(&other, header(bytes.len()), &bytes).unwrap() == Written::Full {
                std::thread::yield_now();
            }
        }
    });
    let (mut reader, mut into) = (Reader::new(place), [0; CAPACITY]);
    for index in 0..count {
        let got = loop {
            match reader.read(&owner, &mut into).unwrap() {
                Some(header) => break header,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(got, header(got.len));
        assert_eq!(into[..got.len], contents(index), "record {index}");
    }
    thread.join().unwrap();
    assert_eq!(reader.read(&owner, &mut into), Ok(None));
}

#[test]
fn a_full_ring_takes_no_record_and_loses_none() {
    let (words, _other) = Mapping::pair(Place::len(CAPACITY));
    let place = Place::new(0, CAPACITY);
    let (mut writer, mut reader) = (Writer::new(place), Reader::new(place));
    for round in 0..40 {
        assert_eq!(writer.write(&words, header(120), &[round; 120]), Ok(Written::Done));
        assert_eq!(writer.write(&words, header(57), &[0; 57]), Ok(Written::Full));
        assert_eq!(writer.write(&words, header(56), &[round; 56]), Ok(Written::Done));
        assert_eq!(writer.write(&words, header(1), &[0]), Ok(Written::Full), "a line stays free for the next header");
        let mut into = [0; 120];
        for len in [120, 56] {
            assert_eq!(reader.read(&words, &mut into), Ok(Some(header(len))));
            assert!(into[..len].iter().all(|byte| *byte == round));
        }
    }
}

/// As long as there is room for the longest record without a break, records are written in place. Also for Miri.
#[test]
fn records_are_written_in_place_where_there_is_room_without_a_break() {
    const LONGEST: usize = 120;
    let count = if cfg!(miri) { 60 } else { 20_000 };
    let (mut owner, other) = Mapping::pair(Place::len(CAPACITY));
    let place = Place::new(0, CAPACITY);
    let len = |index: usize| 1 + index * 7 % LONGEST;
    let thread = std::thread::spawn(move || {
        let (mut reader, mut into) = (Reader::new(place), [0; CAPACITY]);
        for index in 0..count {
            let got = loop {
                match reader.read(&other, &mut into).unwrap() {
                    Some(header) => break header,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(got, header(len(index)));
            assert!(into[..got.len].iter().all(|byte| *byte == index as u8), "record {index}");
        }
    });
    let mut writer = Writer::new(place);
    let (mut in_place, mut copied) = (0, 0);
    for index in 0..count {
        let header = header(len(index));
        if let Some(at) = writer.room(&owner, LONGEST).unwrap() {
            // All of it is the writer's, also what is not sent then.
            owner.room(at, LONGEST).fill(index as u8);
            writer.publish(&owner, header);
            in_place += 1;
        } else {
            while writer.write(&owner, header, &vec![index as u8; header.len]).unwrap() == Written::Full {
                std::thread::yield_now();
            }
            copied += 1;
        }
    }
    thread.join().unwrap();
    assert!(in_place > 0 && copied > 0, "{in_place} in place, {copied} copied");
}

#[test]
fn a_sleeping_reader_is_to_be_woken_once() {
    let (words, _other) = Mapping::pair(Place::len(CAPACITY));
    let place = Place::new(0, CAPACITY);
    let (mut writer, reader) = (Writer::new(place), Reader::new(place));
    assert!(!reader.arm(&words));
    assert_eq!(writer.write(&words, header(1), &[1]), Ok(Written::Wake));
    assert_eq!(writer.write(&words, header(1), &[2]), Ok(Written::Done));
    assert!(reader.arm(&words), "it must not sleep");
    reader.disarm(&words);
    assert_eq!(writer.write(&words, header(1), &[3]), Ok(Written::Done));
}

/// Whatever is in the shared words: nothing panics, nothing outside of the ring is touched, and every call returns.
#[test]
fn no_shared_word_does_more_than_break_the_ring() {
    let total = Place::len(CAPACITY);
    let (words, _other) = Mapping::pair(total);
    let mut random = fastrand::Rng::with_seed(7);
    let interesting = [0, 1, 7, 8, 16, 24, 63, 64, 65, 72, 128, 1 << 24, 1 << 63, u64::MAX, u64::MAX - 7];
    let mut value = move || match random.u8(..4) {
        0 => random.u64(..),
        1 => random.u64(..256) << 24 | random.u64(..256),
        _ => interesting[random.usize(..interesting.len())],
    };
    let (mut broken, mut whole) = (0, 0);
    for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
        let place = Place::new(0, CAPACITY);
        let (mut writer, mut reader) = (Writer::new(place), Reader::new(place));
        for offset in (0..total).step_by(8) {
            words.store(offset, value(), Ordering::Relaxed);
        }
        for _ in 0..4 {
            let mut into = [0; 40];
            match reader.read(&words, &mut into) {
                Ok(Some(header)) => {
                    assert!(header.len > 0 && header.len <= into.len() && header.stride > 0);
                    whole += 1;
                }
                Ok(None) => {}
                Err(Broken) => broken += 1,
            }
            let _ = reader.arm(&words);
            let _ = writer.write(&words, header(13), &[9; 13]);
            words.store(8 * (value() as usize % (total / 8)), value(), Ordering::Relaxed);
        }
    }
    assert!(broken > 50 && (whole > 10 || cfg!(miri)), "{broken} broken, {whole} whole");
}

/// Words that loom watches. Copies are of words too, unordered as those of bytes are.
struct Watched {
    words: Vec<loom::sync::atomic::AtomicU64>,
}

impl Watched {
    fn new(bytes: usize) -> Self {
        Self { words: (0..bytes / 8).map(|_| loom::sync::atomic::AtomicU64::new(0)).collect() }
    }
}

impl Words for Watched {
    fn load(&self, offset: usize, order: Ordering) -> u64 {
        self.words[offset / 8].load(order)
    }
    fn store(&self, offset: usize, value: u64, order: Ordering) {
        self.words[offset / 8].store(value, order);
    }
    fn read(&self, offset: usize, into: &mut [u8]) {
        for (index, chunk) in into.chunks_mut(8).enumerate() {
            let word = self.words[offset / 8 + index].load(Ordering::Relaxed).to_ne_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
    fn write(&self, offset: usize, bytes: &[u8]) {
        for (index, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words[offset / 8 + index].store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }
    fn fence(&self) {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// Every order of a writer and a reader that sleeps, in a ring that has room for one of three records: each comes as it was
/// written, and no wake-up is lost.
#[test]
#[cfg_attr(miri, ignore = "loom explores the orders by itself")]
fn under_every_order_records_are_whole_and_no_wake_up_is_lost() {
    use loom::sync::{Arc, Notify};

    const RECORDS: u64 = 3;
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let place = Place::new(0, 128);
        let words = Arc::new(Watched::new(Place::len(128)));
        // It keeps a wake-up that comes before the sleep, as an eventfd does.
        let woken = Arc::new(Notify::new());
        let (theirs, wake) = (Arc::clone(&words), Arc::clone(&woken));
        let thread = loom::thread::spawn(move || {
            let mut writer = Writer::new(place);
            for value in 1..=RECORDS {
                loop {
                    match writer.write(&*theirs, header(8), &value.to_ne_bytes()).unwrap() {
                        Written::Done => break,
                        Written::Wake => {
                            wake.notify();
                            break;
                        }
                        Written::Full => loom::thread::yield_now(),
                    }
                }
            }
        });
        let mut reader = Reader::new(place);
        for value in 1..=RECORDS {
            let mut into = [0; 8];
            loop {
                if reader.read(&*words, &mut into).unwrap().is_some() {
                    break;
                }
                if !reader.arm(&*words) {
                    // If the wake-up is lost, this never ends, which loom reports.
                    woken.wait();
                }
                reader.disarm(&*words);
            }
            assert_eq!(u64::from_ne_bytes(into), value);
        }
        thread.join().unwrap();
    });
}
