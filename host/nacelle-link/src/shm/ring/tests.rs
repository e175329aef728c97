// SPDX-License-Identifier: Apache-2.0
//! The ring between two threads, under loom too, and with a writer and a reader that keep to no rule.

use std::sync::atomic::Ordering;

use super::super::mapping::Mapping;
use super::*;

const CAPACITY: usize = 256;

/// Takes the oldest record and copies its contents to the beginning of `into`, which bounds its length.
fn take(reader: &mut Reader, words: &impl Words, into: &mut [u8]) -> Result<Option<Header>, Broken> {
    let (longest, mut found) = (into.len(), None);
    let any = reader.read(words, longest, |header, at| {
        words.read(at, &mut into[..header.len]);
        found = Some(header);
    })?;
    assert_eq!(any, found.is_some());
    Ok(found)
}

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
            match take(&mut reader, &owner, &mut into).unwrap() {
                Some(header) => break header,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(got, header(got.len));
        assert_eq!(into[..got.len], contents(index), "record {index}");
    }
    thread.join().unwrap();
    assert_eq!(take(&mut reader, &owner, &mut into), Ok(None));
}

#[test]
fn a_full_ring_takes_no_record_and_loses_none() {
    let (words, _other) = Mapping::pair(Place::len(CAPACITY));
    let place = Place::new(0, CAPACITY);
    let (mut writer, mut reader) = (Writer::new(place), Reader::new(place));
    for round in 0..40 {
        assert_eq!(writer.write(&words, header(56), &[round; 56]), Ok(Written::Done));
        assert_eq!(writer.write(&words, header(120), &[round; 120]), Ok(Written::Done));
        assert_eq!(writer.write(&words, header(1), &[0]), Ok(Written::Full), "a line stays free for the next header");
        let mut into = [0; 120];
        for len in [56, 120] {
            assert_eq!(take(&mut reader, &words, &mut into), Ok(Some(header(len))));
            assert!(into[..len].iter().all(|byte| *byte == round));
        }
        // So that the next round begins at the beginning.
        assert_eq!(writer.write(&words, header(50), &[9; 50]), Ok(Written::Done));
        assert_eq!(take(&mut reader, &words, &mut into), Ok(Some(header(50))));
    }
}

/// A record for which there is no room before the ring begins again is written at its beginning: when that is free, and whether or not
/// the reader has found the word that says so by then.
#[test]
fn no_record_has_a_break() {
    for looks in [false, true] {
        let (words, _other) = Mapping::pair(Place::len(CAPACITY));
        let place = Place::new(0, CAPACITY);
        let (mut writer, mut reader) = (Writer::new(place), Reader::new(place));
        let mut into = [0; 200];
        for len in [56, 100] {
            assert_eq!(writer.write(&words, header(len), &vec![7; len]), Ok(Written::Done));
        }
        assert_eq!(
            writer.write(&words, header(60), &[8; 60]),
            Ok(Written::Full),
            "nothing is free before its beginning"
        );
        assert_eq!(take(&mut reader, &words, &mut into), Ok(Some(header(56))));
        assert_eq!(writer.write(&words, header(60), &[8; 60]), Ok(Written::Full), "the next header has no place");
        assert_eq!(take(&mut reader, &words, &mut into), Ok(Some(header(100))));
        if looks {
            assert_eq!(take(&mut reader, &words, &mut into), Ok(None));
        }
        assert_eq!(writer.write(&words, header(184), &[9; 184]), Ok(if looks { Written::Done } else { Written::Full }));
        if !looks {
            assert_eq!(take(&mut reader, &words, &mut into), Ok(None));
            assert_eq!(writer.write(&words, header(184), &[9; 184]), Ok(Written::Done));
        }
        assert_eq!(words.load(place.find(0).0, Ordering::Relaxed), header(184).encode());
        assert_eq!(take(&mut reader, &words, &mut into), Ok(Some(header(184))));
        assert!(into[..184].iter().all(|byte| *byte == 9));
    }
}

/// As long as there is room for the longest record, records are written in place. Also for Miri.
#[test]
fn records_are_written_in_place_where_there_is_room() {
    const LONGEST: usize = 120;
    let count = if cfg!(miri) { 60 } else { 20_000 };
    let (mut owner, other) = Mapping::pair(Place::len(CAPACITY));
    let place = Place::new(0, CAPACITY);
    let len = |index: usize| 1 + index * 7 % LONGEST;
    let thread = std::thread::spawn(move || {
        let (mut reader, mut into) = (Reader::new(place), [0; CAPACITY]);
        for index in 0..count {
            let got = loop {
                match take(&mut reader, &other, &mut into).unwrap() {
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

/// What no ring can have is no record, and one look takes no more than one word and one record.
#[test]
fn records_without_an_end_are_refused() {
    let place = Place::new(0, CAPACITY);
    let long = Header { len: 121, stride: 1, ecn: 0 }.encode();
    let short = header(50).encode();
    // The words at each line, and what the first look and the second find.
    let cases: [([u64; 4], _, _); 5] = [
        ([SKIP, SKIP, SKIP, SKIP], Err(Broken), Err(Broken)),
        ([short, SKIP, 0, 0], Ok(true), Ok(true)),
        ([long, 0, 0, long], Ok(true), Err(Broken)),
        ([header(249).encode(), 0, 0, 0], Err(Broken), Err(Broken)),
        ([header(248).encode(), 0, 0, 0], Err(Broken), Err(Broken)),
    ];
    for (index, (lines, first, second)) in cases.into_iter().enumerate() {
        let (words, _other) = Mapping::pair(Place::len(CAPACITY));
        for (line, word) in lines.into_iter().enumerate() {
            words.store(place.find((line * LINE) as u64).0, word, Ordering::Relaxed);
        }
        let mut reader = Reader::new(place);
        for (look, wanted) in [first, second].into_iter().enumerate() {
            let found = reader.read(&words, CAPACITY, |header, at| {
                let end = at + header.len;
                assert!(at >= HEAD + HEADER && end <= Place::len(CAPACITY), "case {index}: {at} to {end}");
            });
            assert_eq!(found, wanted, "case {index}, look {look}");
        }
    }
}

/// A writer that changes a record while it is used changes its bytes and nothing else: not how long it is, nor where the next one is.
#[test]
fn a_header_is_read_once() {
    let (words, _other) = Mapping::pair(Place::len(CAPACITY));
    let place = Place::new(0, CAPACITY);
    let (mut writer, mut reader) = (Writer::new(place), Reader::new(place));
    assert_eq!(writer.write(&words, header(100), &[1; 100]), Ok(Written::Done));
    assert_eq!(writer.write(&words, header(50), &[2; 50]), Ok(Written::Done));
    let found = reader.read(&words, CAPACITY, |seen, at| {
        for changed in [SKIP, u64::MAX, 0, header(10).encode()] {
            words.store(at - HEADER, changed, Ordering::Relaxed);
        }
        assert_eq!(seen, header(100));
        assert_eq!(words.load(place.at(READ), Ordering::Relaxed), 0, "its place is not free yet");
    });
    assert_eq!((found, words.load(place.at(READ), Ordering::Relaxed)), (Ok(true), 128));
    let mut into = [0; 50];
    assert_eq!((take(&mut reader, &words, &mut into), into), (Ok(Some(header(50))), [2; 50]));
}

/// Whatever is in the shared words: nothing panics, nothing outside of the ring is touched, and every call returns.
#[test]
fn no_shared_word_does_more_than_break_the_ring() {
    let total = Place::len(CAPACITY);
    let (words, _other) = Mapping::pair(total);
    let mut random = fastrand::Rng::with_seed(7);
    let interesting = [0, SKIP, 1, 7, 8, 16, 24, 63, 64, 65, 72, 128, 1 << 24, 1 << 63, u64::MAX, u64::MAX - 7];
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
            match take(&mut reader, &words, &mut into) {
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
    under_every_order(128, [8, 8, 8], 3);
}

/// The same where the last record is written at the ring's beginning, since there is no room for it behind the others.
#[test]
#[cfg_attr(miri, ignore = "loom explores the orders by itself")]
fn under_every_order_a_skipped_end_loses_nothing() {
    under_every_order(256, [8, 72, 72], 2);
}

/// Records of these lengths in a ring of this many bytes, with so many preemptions.
fn under_every_order(capacity: usize, lens: [usize; 3], preemptions: usize) {
    use loom::sync::{Arc, Notify};

    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let place = Place::new(0, capacity);
        let words = Arc::new(Watched::new(Place::len(capacity)));
        // It keeps a wake-up that comes before the sleep, as an eventfd does.
        let woken = Arc::new(Notify::new());
        let (theirs, wake) = (Arc::clone(&words), Arc::clone(&woken));
        let thread = loom::thread::spawn(move || {
            let mut writer = Writer::new(place);
            for (value, len) in (1..).zip(lens) {
                loop {
                    match writer.write(&*theirs, header(len), &[value; 72][..len]).unwrap() {
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
        for (value, len) in (1..).zip(lens) {
            let mut into = [0; 72];
            loop {
                if let Some(found) = take(&mut reader, &*words, &mut into).unwrap() {
                    assert_eq!(found, header(len));
                    break;
                }
                if !reader.arm(&*words) {
                    // If the wake-up is lost, this never ends, which loom reports.
                    woken.wait();
                }
                reader.disarm(&*words);
            }
            assert_eq!(into[..len], [value; 72][..len]);
        }
        thread.join().unwrap();
    });
}
