// SPDX-License-Identifier: Apache-2.0
//! Copies between host memory and the memory of the simulated RTL in a slot, by the driver of its copy engine; and what clients can do to it
//! and to each other. They need the library of `devices/nic.toml` at 64 bits.

#[allow(dead_code)] // the tests of the slot use all of it
#[path = "slot/bench.rs"]
mod bench;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::{Bench, HOST, LONG};
use nacelle_copy::{CopyError, DeviceBuffer, Error, Failure, HostBuffer, Options, Part, Slot, Stop};
use nacelle_manage::map::copy;
use nacelle_pci::{Access, PciDevice, PciError, UserConfig, UserDevice};

/// No memory has such an address.
const NOWHERE: u64 = 1 << 40;
const SIZE: usize = 64 << 10;

fn open_with(bench: &Bench, change: impl FnOnce(&mut Options)) -> Slot {
    let mut options = Options { timeout: LONG, ..Options::default() };
    change(&mut options);
    Slot::open(&bench.slot, &options).unwrap()
}

fn open(bench: &Bench) -> Slot {
    open_with(bench, |_| {})
}

fn content(buffer: &HostBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.read(0, &mut bytes).unwrap();
    bytes
}

/// A buffer in host memory with numbers, and one of as many bytes in the device.
fn buffers(slot: &Slot, len: usize, seed: u64) -> (HostBuffer, Vec<u8>, DeviceBuffer) {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    let host = slot.alloc_host(len).unwrap();
    host.write(0, &bytes).unwrap();
    (host, bytes, slot.alloc_device(len as u64).unwrap())
}

/// From anywhere to anywhere within both memories, any length, many at a time: as a copy of both memories says.
fn copies_anything(slot: &Slot, count: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (host, bytes, near) = buffers(slot, SIZE, seed);
    slot.copy(&host, &near).unwrap();
    // Sources are in the lower halves, destinations in the upper, each further on than the one before.
    let mut expected = [bytes.clone(), bytes];
    let part = |which: usize, at: usize, len: usize| {
        let range = at as u64..(at + len) as u64;
        if which == 0 { host.part(range) } else { near.part(range) }.unwrap()
    };
    let mut next = [SIZE / 2; 2];
    let mut copies = Vec::new();
    for _ in 0..count {
        let (from, to) = (random.usize(..2), random.usize(..2));
        let longest = SIZE / 4 / count;
        let any = random.usize(..longest);
        let len = *random.choice(&[0, 1, 2, 63, 64, 65, any]).unwrap();
        let at = random.usize(..SIZE / 2 - len);
        next[to] += random.usize(..70);
        let place = next[to];
        if place + len > SIZE {
            break;
        }
        let piece = expected[from][at..at + len].to_vec();
        expected[to][place..place + len].copy_from_slice(&piece);
        next[to] += len;
        copies.push(slot.copy_async(part(from, at, len), part(to, place, len)).unwrap());
    }
    assert!(copies.len() > count / 2);
    random.shuffle(&mut copies);
    for copy in copies {
        copy.wait().unwrap();
        assert!(copy.poll().unwrap().is_ok());
    }
    assert!(content(&host) == expected[0]);
    let back = slot.alloc_host(SIZE).unwrap();
    slot.copy(&near, &back).unwrap();
    assert!(content(&back) == expected[1]);
}

#[test]
fn copies_from_anywhere_to_anywhere() {
    let Some(bench) = Bench::new() else { return };
    let slot = open(&bench);
    let memory = slot.memory();
    assert_eq!((memory.end, memory.end - memory.start), (1 << 30, 256 << 20), "as devices/nic.toml has it");
    copies_anything(&slot, 100, 1);
    drop(slot);
    // The smallest rings, which go round, and no interrupts.
    let slot = open_with(&bench, |options| {
        options.ring_log = 5;
        options.poll = true;
    });
    for seed in 2..4 {
        copies_anything(&slot, 30, seed);
    }
    drop(slot);
    assert_eq!(bench.counter("slot.iommu_faults") + bench.counter("slot.dma_refused"), 0);
    bench.end();
}

#[test]
fn lists_and_fillings() {
    let Some(bench) = Bench::new() else { return };
    let slot = open(&bench);
    let (host, bytes, near) = buffers(&slot, 10_000, 1);
    // Pieces in another order, of any length, an empty one too.
    let cuts = [0, 1, 1, 700, 4096, 9_999, 10_000];
    let pieces: Vec<_> = cuts.windows(2).map(|cut| host.part(cut[0]..cut[1]).unwrap()).collect();
    let turned: Vec<_> = pieces.iter().rev().cloned().collect();
    slot.gather(&turned, &(&near).into()).unwrap().wait().unwrap();
    let back = slot.alloc_host(10_000).unwrap();
    slot.copy(&near, &back).unwrap();
    let expected: Vec<u8> =
        cuts.windows(2).rev().flat_map(|cut| &bytes[cut[0] as usize..cut[1] as usize]).copied().collect();
    assert!(content(&back) == expected);
    back.write(0, &[0; 10_000]).unwrap();
    let places: Vec<_> = cuts.windows(2).rev().map(|cut| back.part(cut[0]..cut[1]).unwrap()).collect();
    slot.scatter(&(&near).into(), &places).unwrap().wait().unwrap();
    assert!(content(&back) == bytes);
    // More than one piece of the pattern, not aligned.
    let large = slot.alloc_device(150_001).unwrap();
    slot.fill(large.part(1..150_001).unwrap(), 0xa5).unwrap();
    slot.fill(large.part(0..1).unwrap(), 7).unwrap();
    slot.fill(large.part(3..3).unwrap(), 9).unwrap();
    let back = slot.alloc_host(150_001).unwrap();
    slot.copy(&large, &back).unwrap();
    let found = content(&back);
    assert!(found[0] == 7 && found[1..].iter().all(|byte| *byte == 0xa5));
    drop(slot);
    bench.end();
}

#[test]
fn threads_share_an_engine() {
    let Some(bench) = Bench::new() else { return };
    let slot = open_with(&bench, |options| options.ring_log = 5);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let slot = slot.clone();
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(number);
                for round in 0..12 {
                    let (host, bytes, near) = buffers(&slot, 1 + random.usize(..3000), number << 8 | round);
                    let back = slot.alloc_host(host.len()).unwrap();
                    slot.copy(&host, &near).unwrap();
                    // Its buffers are dropped first.
                    let copy = loop {
                        match slot.copy_async(&near, &back) {
                            Err(Error::Full { .. }) => std::thread::yield_now(),
                            begun => break begun.unwrap(),
                        }
                    };
                    drop((host, near));
                    if round % 2 == 0 {
                        copy.wait_until(Instant::now() + LONG).expect("it ends").unwrap();
                    } else {
                        while copy.poll().is_none() {
                            std::thread::sleep(Duration::from_micros(200));
                        }
                    }
                    assert!(content(&back) == bytes);
                }
            });
        }
    });
    let memory = slot.memory();
    // All of it is free again.
    let all = slot.alloc_device(memory.end - memory.start).unwrap();
    assert_eq!(all.device_address(), memory.start);
    drop((slot, all));
    bench.end();
}

#[test]
fn what_fails_is_named_and_the_rest_is_copied() {
    let Some(bench) = Bench::new() else { return };
    let slot = open(&bench);
    let (host, bytes, near) = buffers(&slot, 3000, 1);
    let nowhere = |base: u64| Part::of_addresses(base..base + 1000);
    let unmapped = HOST + (1 << 37);
    for (source, destination, why) in [
        (nowhere(unmapped), near.part(1000..2000).unwrap(), Failure::Source),
        (nowhere(NOWHERE), near.part(1000..2000).unwrap(), Failure::Source),
        (host.part(0..1000).unwrap(), nowhere(NOWHERE), Failure::Destination),
    ] {
        slot.fill(&near, 0).unwrap();
        let list = [
            (host.part(0..1000).unwrap(), near.part(0..1000).unwrap()),
            (source.clone(), destination.clone()),
            (host.part(2000..3000).unwrap(), near.part(2000..3000).unwrap()),
        ];
        let error = slot.copy_list(&list).unwrap().wait().unwrap_err();
        let CopyError::Failed { index: 1, descriptor, why: found } = &error else { panic!("{error:?}") };
        assert_eq!(
            (descriptor.source, descriptor.destination),
            (source.device_address(), destination.device_address())
        );
        assert_eq!((descriptor.length, *found), (1000, why), "{error}");
        let back = slot.alloc_host(3000).unwrap();
        slot.copy(&near, &back).unwrap();
        let found = content(&back);
        assert!(found[..1000] == bytes[..1000] && found[2000..] == bytes[2000..]);
        assert!(found[1000..2000].iter().all(|byte| *byte == 0), "what cannot be read is not written");
    }
    // A write to host memory that is not there is posted: only the host is told.
    let before = bench.counter("slot.iommu_faults");
    slot.copy(near.part(0..1000).unwrap(), nowhere(unmapped)).unwrap();
    bench.until("slot.iommu_faults", before + 1);
    copies_anything(&slot, 20, 9);
    drop(slot);
    bench.end();
}

#[test]
fn what_makes_no_sense_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let slot = open_with(&bench, |options| options.ring_log = 5);
    let (host, _, near) = buffers(&slot, 4096, 1);
    let all = slot.memory().end - slot.memory().start;
    assert!(matches!(slot.alloc_host(0), Err(Error::Empty)));
    assert!(matches!(slot.alloc_device(0), Err(Error::Empty)));
    assert!(matches!(slot.alloc_device_at(0, 0), Err(Error::Empty)));
    assert!(matches!(slot.alloc_device(all), Err(Error::NoDeviceMemory { largest, .. }) if largest == all - 4096));
    assert!(matches!(slot.alloc_device(u64::MAX), Err(Error::NoDeviceMemory { .. })));
    for (offset, len) in [(0, 1), (4095, 1), (all - 1, 2), (all, 1), (u64::MAX, 1), (1 << 20, u64::MAX)] {
        assert!(matches!(slot.alloc_device_at(offset, len), Err(Error::NoPlace { .. })), "{offset:#x}, {len}");
    }
    for range in [0..4097, 4097..4097, u64::MAX..u64::MAX, std::ops::Range { start: 1, end: 0 }] {
        assert!(matches!(host.part(range.clone()), Err(Error::OutOfRange { .. })), "{range:?}");
        assert!(matches!(near.part(range.clone()), Err(Error::OutOfRange { .. })), "{range:?}");
    }
    assert!(matches!(host.write(4096, &[1]), Err(Error::OutOfRange { .. })));
    assert!(matches!(host.read(u64::MAX, &mut [0; 2]), Err(Error::OutOfRange { .. })));
    let half = host.part(0..2048).unwrap();
    assert!(matches!(slot.copy(half.clone(), &near), Err(Error::Lengths { index: 0, from: 2048, to: 4096 })));
    assert!(matches!(slot.copy(half.clone(), host.part(2047..4095).unwrap()), Err(Error::Overlap { index: 0 })));
    assert!(matches!(slot.gather(std::slice::from_ref(&half), &(&near).into()), Err(Error::Lengths { .. })));
    assert!(matches!(slot.copy_list(&[]), Err(Error::NoCopies)));
    let one = (host.part(0..64).unwrap(), near.part(0..64).unwrap());
    assert!(matches!(slot.copy_list(&vec![one.clone(); 33]), Err(Error::TooLong { needed: 33, places: 32 })));
    let endless = (Part::of_addresses(0..1 << 60), Part::of_addresses(1 << 61..(1 << 61) + (1 << 60)));
    assert!(matches!(slot.copy_list(&[endless]), Err(Error::TooLong { places: 32, .. })));
    // Exactly what there is room for, and then no more, until one has ended.
    let slow = slot.copy_list(&vec![(Part::from(&host), Part::from(&near)); 32]).unwrap();
    assert!(matches!(slot.copy_list(&vec![one.clone(); 32]), Err(Error::Full { needed: 32 })));
    slot.copy(one.0, one.1).unwrap();
    slow.wait().unwrap();
    drop((slot, slow));
    // A buffer outlives its slot, and is of no other one.
    let other = open(&bench);
    assert_eq!(content(&host).len(), 4096);
    let (_, _, its) = buffers(&other, 4096, 2);
    assert!(matches!(other.copy(&host, &its), Err(Error::OtherSlot { index: 0 })));
    assert!(matches!(Slot::open(&bench.slot, &Options::default()), Err(Error::Pci(PciError::Gone))));
    drop(other);
    bench.end();
}

/// Device memory behind each other, large enough that its copies take long.
fn long_copies(slot: &Slot, count: usize) -> (HostBuffer, Vec<nacelle_copy::Copy>) {
    let (host, near) = (slot.alloc_host(1 << 20).unwrap(), slot.alloc_device(1 << 20).unwrap());
    let copies = (0..count).map(|_| slot.copy_async(&near, &host).unwrap()).collect();
    (host, copies)
}

#[test]
fn a_reset_under_load_ends_copies_and_others_follow() {
    let Some(bench) = Bench::new() else { return };
    let slot = open(&bench);
    let (host, bytes, near) = buffers(&slot, 1000, 3);
    slot.copy(&host, &near).unwrap();
    let before = bench.counter("slot.writes");
    let (_, copies) = long_copies(&slot, 20);
    bench.until("slot.writes", before + 100);
    let waiter = std::thread::spawn({
        let last = copies[19].clone();
        move || last.wait()
    });
    slot.reset().unwrap();
    let error = waiter.join().unwrap().unwrap_err();
    assert!(matches!(error, CopyError::Stopped { why: Stop::Reset }), "{error:?}");
    assert!(error.to_string().contains("the function was reset"), "{error}");
    assert!(copies[19].poll().unwrap().is_err());
    // Buffers stay, and what they hold.
    host.write(0, &[0; 1000]).unwrap();
    slot.copy(&near, &host).unwrap();
    assert!(content(&host) == bytes);
    copies_anything(&slot, 20, 4);
    drop(slot);
    bench.end();
}

#[test]
fn a_device_that_vanishes_ends_every_wait() {
    let Some(bench) = Bench::new() else { return };
    let slot = open(&bench);
    let (host, copies) = long_copies(&slot, 50);
    let waiters: Vec<_> = copies[40..].iter().cloned().map(|copy| std::thread::spawn(move || copy.wait())).collect();
    std::thread::sleep(Duration::from_millis(50));
    bench.end();
    for waiter in waiters {
        assert!(matches!(waiter.join().unwrap(), Err(CopyError::Gone { .. })));
    }
    assert!(matches!(copies[45].poll(), Some(Err(CopyError::Gone { .. }))));
    assert!(matches!(slot.copy(&host, Part::of_addresses(0..1 << 20)), Err(Error::Copy(CopyError::Gone { .. }))));
    assert!(slot.reset().is_err() && slot.alloc_host(1).is_err());
    // What is here stays.
    assert_eq!(content(&host).len(), 1 << 20);
}

#[test]
#[ignore = "another test starts it"]
fn a_client_with_copies_under_way() {
    let socket = std::env::var_os("SLOT").expect("another test starts it");
    let slot = Slot::open(Path::new(&socket), &Options::default()).unwrap();
    let (host, near) = (slot.alloc_host(1 << 20).unwrap(), slot.alloc_device(1 << 20).unwrap());
    slot.fill(&near, 0xee).unwrap();
    let copies: Vec<_> = (0..500).map(|_| slot.copy_async(&near, &host).unwrap()).collect();
    let mut out = std::io::stdout();
    writeln!(out, "\nmemory {}", host.device_address() - HOST).unwrap();
    out.flush().unwrap();
    copies[499].wait().unwrap();
}

/// What a client that was killed has begun ends: it writes nothing into the memory of the next one, which has the same addresses and does
/// nothing against it.
#[test]
fn a_killed_client_writes_nothing_into_the_memory_of_the_next() {
    let Some(bench) = Bench::new() else { return };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_client_with_copies_under_way", "--nocapture"])
        .env("SLOT", &bench.slot)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    let place = said.lines().map_while(Result::ok).find_map(|line| line.strip_prefix("memory ").map(str::to_owned));
    let place: u64 = place.expect("it says where its memory is").parse().unwrap();
    let before = bench.counter("slot.writes");
    bench.until("slot.writes", before + 100);
    child.kill().unwrap();
    child.wait().unwrap();
    // No driver of ours: it resets nothing.
    let mut next = UserDevice::connect(&bench.slot, UserConfig { timeout: LONG, ..UserConfig::default() }).unwrap();
    let buffer = next.alloc_dma(4 << 20, Access::BOTH).unwrap();
    assert!((buffer.iova()..buffer.iova() + (3 << 20)).contains(&place));
    next.set_bus_master(true).unwrap();
    let begin = bench.counter("slot.writes");
    // Register accesses take device time.
    for _ in 0..200 {
        next.read32(0, copy::STATE.at(copy::BASE).into()).unwrap();
    }
    let mut found = vec![0; 4 << 20];
    buffer.read(0, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 0), "memory of the next client was written");
    assert_eq!(bench.counter("slot.writes"), begin);
    drop(next);
    let slot = open(&bench);
    copies_anything(&slot, 20, 5);
    bench.end();
}

/// A client that writes anything into the rings and the engine's registers: the device lives, and the next client has an engine that works.
#[test]
fn hostile_rings_and_registers() {
    let Some(bench) = Bench::new() else { return };
    let mut random = fastrand::Rng::with_seed(11);
    let mut stops = std::collections::BTreeSet::new();
    for round in 0..24 {
        let mut driver = bench.driver();
        let rings = driver.alloc_dma(1 << 16, Access { read: true, write: round % 4 != 0 }).unwrap();
        let base = HOST + rings.iova();
        let at = |register: nacelle_manage::map::Register| u64::from(register.at(copy::BASE));
        // Descriptors that are all noise, and such as nearly make sense.
        let mut noise = vec![0; 1 << 15];
        random.fill(&mut noise);
        if round % 2 == 0 {
            for descriptor in noise.chunks_exact_mut(32) {
                let places = [base, base + 0x7fff, 0x1000_0001, NOWHERE, HOST + (1 << 62), 0, u64::MAX - 5];
                descriptor[..8].copy_from_slice(&random.choice(places).unwrap().to_le_bytes());
                descriptor[8..16].copy_from_slice(&random.choice(places).unwrap().to_le_bytes());
                descriptor[16..20].copy_from_slice(&random.u32(..5000).to_le_bytes());
                descriptor[20..24].copy_from_slice(&random.u32(..if round % 8 == 0 { 5 } else { 4 }).to_le_bytes());
                descriptor[28..].fill(0);
            }
        }
        rings.write(0, &noise).unwrap();
        let settings = [
            (copy::DESCRIPTORS_LO, base as u32),
            (copy::DESCRIPTORS_HI, if random.u32(..8) == 0 { random.u32(..) } else { (base >> 32) as u32 }),
            (copy::COMPLETIONS_LO, (base + 0x8000) as u32),
            (copy::COMPLETIONS_HI, if random.u32(..8) == 0 { random.u32(..) } else { (base >> 32) as u32 }),
            (copy::SIZES, if random.u32(..4) == 0 { random.u32(..) } else { 8 | 8 << 8 | 1 << 16 }),
            (copy::CTRL, 1),
        ];
        for (register, value) in settings {
            driver.write32(0, at(register), value).unwrap();
        }
        let mut producer = 0;
        for _ in 0..random.u32(1..6) {
            producer = if random.u32(..6) == 0 { random.u32(..) } else { producer + random.u32(1..40) };
            driver.write32(0, at(copy::PRODUCER), producer & 0xffff).unwrap();
            stops.insert(copy::STATE_STOPPED.of(driver.read32(0, at(copy::STATE)).unwrap()));
        }
        if random.bool() {
            driver.write32(0, at(copy::CTRL), 0).unwrap();
        }
        drop(driver);
        if round % 12 == 11 {
            let slot = open(&bench);
            copies_anything(&slot, 20, round);
        }
    }
    assert!(stops.len() >= 4, "it stops for several reasons: {stops:?}");
    let mut driver = bench.driver();
    bench.serves(&mut driver, 30);
    drop(driver);
    bench.end();
}
