// SPDX-License-Identifier: Apache-2.0
//! The driver of the copy engine with devices that do what no device does: a small model of the engine in a slot, of which one thing is wrong.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nacelle_copy::{CopyError, Error, Options, Slot, Stop};
use nacelle_manage::map::{Register, copy, device};
use nacelle_pci::PciError;
use nacelle_slot::config_space::{Bar, ConfigSpace, Description, Identity, Link, Msix, Place};
use nacelle_slot::{Answer, BarAccess, Errno, Function, Host, ResetCause, Server, ServerConfig, Token};

const HOST: u64 = 1 << 63;
const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(30);

/// What is wrong with the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// Another block, or an older one.
    Type,
    Major,
    Minor,
    NotEnabled,
    /// A queue that never ends, or does not begin.
    Runs,
    Idle,
    /// Completions with another tag.
    Tag,
    /// The first doorbell is not heard, and the engine stops without an interrupt.
    Stops,
    /// Registers are not answered once the doorbell was rung.
    Silent,
    /// Memory that has no end.
    Memory,
}

/// The engine, as far as its driver sees it: copies are those of numbers 0 to 15 of the host's memory, and end at once.
struct Model {
    wrong: Wrong,
    registers: HashMap<u64, u32>,
    done: u32,
    rung: bool,
}

fn at(base: u32, register: Register) -> u64 {
    register.at(base).into()
}

impl Model {
    fn get(&self, register: Register) -> u32 {
        self.registers.get(&at(copy::BASE, register)).copied().unwrap_or(0)
    }

    fn set(&mut self, register: Register, value: u32) {
        self.registers.insert(at(copy::BASE, register), value);
    }

    fn wide(&self, low: Register, high: Register) -> u64 {
        (u64::from(self.get(high)) << 32 | u64::from(self.get(low))) - HOST
    }

    fn new(wrong: Wrong) -> Self {
        let mut model = Self { wrong, registers: HashMap::new(), done: 0, rung: false };
        let version = match wrong {
            Wrong::Major => 2 << 16,
            Wrong::Minor => 1 << 16,
            _ => copy::BLOCK.version,
        };
        model.set(copy::TYPE, if wrong == Wrong::Type { 7 } else { u32::from_be_bytes(copy::BLOCK.kind) });
        model.set(copy::VERSION, version);
        model.set(copy::MEMORY_LO, 0x1000);
        model.set(copy::MEMORY_SIZE_LO, 0x2000);
        if wrong == Wrong::Memory {
            model.set(copy::MEMORY_HI, u32::MAX - 1);
            model.set(copy::MEMORY_SIZE_HI, 2);
        }
        model.registers.insert(at(device::BASE, device::CTRL), u32::from(wrong != Wrong::NotEnabled));
        model
    }

    /// What a written register does.
    fn written(&mut self, host: &mut Host<'_>, offset: u64, value: u32) {
        self.registers.insert(offset, value);
        if offset == at(copy::BASE, copy::CTRL) {
            let runs = value == 1 && self.wrong != Wrong::Idle || self.wrong == Wrong::Runs;
            self.set(copy::STATE, u32::from(runs));
            self.done = 0;
        }
        if offset != at(copy::BASE, copy::PRODUCER) {
            return;
        }
        if self.wrong == Wrong::Stops && !self.rung {
            self.rung = true;
            return self.set(copy::STATE, 1 | (Stop::Fetch as u32) << 8);
        }
        self.rung = true;
        let (descriptors, completions) = (
            self.wide(copy::DESCRIPTORS_LO, copy::DESCRIPTORS_HI),
            self.wide(copy::COMPLETIONS_LO, copy::COMPLETIONS_HI),
        );
        let log = self.get(copy::SIZES) & 15;
        while self.done & 0xffff != value {
            let place = u64::from(self.done % (1 << log));
            let mut descriptor = [0; 32];
            host.dma_read(descriptors + 32 * place, &mut descriptor).unwrap();
            let mut completion = [0; 16];
            completion[..4].copy_from_slice(&descriptor[24..28]);
            completion[0] ^= u8::from(self.wrong == Wrong::Tag);
            completion[15] = if self.done >> log & 1 == 0 { 0x80 } else { 0 };
            host.dma_write(completions + 16 * place, &completion).unwrap();
            self.done += 1;
        }
        host.interrupt(0).unwrap();
    }
}

impl Function for Model {
    fn bar_read(&mut self, _host: &mut Host<'_>, access: BarAccess, into: &mut [u8]) -> Result<Answer, Errno> {
        if self.wrong == Wrong::Silent && self.rung {
            return Ok(Answer::Later);
        }
        into.copy_from_slice(&self.registers.get(&access.offset).copied().unwrap_or(0).to_le_bytes());
        Ok(Answer::Now)
    }

    fn bar_write(&mut self, host: &mut Host<'_>, access: BarAccess, bytes: &[u8]) -> Result<Answer, Errno> {
        let value = u32::from_le_bytes(bytes.try_into().unwrap());
        if self.wrong == Wrong::Silent && access.offset == at(copy::BASE, copy::PRODUCER) {
            self.rung = true;
            return Ok(Answer::Now);
        }
        self.written(host, access.offset, value);
        Ok(Answer::Now)
    }

    fn reset(&mut self, _host: &mut Host<'_>, _cause: ResetCause, _token: Token) -> Result<Answer, Errno> {
        Ok(Answer::Now)
    }
}

/// A device with this wrong, until it is dropped.
struct Device {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Device {
    fn new(wrong: Wrong) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slot");
        let bar = Bar { index: 0, size: 2 << 20, wide: true, prefetchable: false, sizes: 0 };
        let place = |offset| Place { bar: 0, offset };
        let space = ConfigSpace::new(Description {
            identity: Identity::default(),
            bars: vec![bar],
            msix: Msix { vectors: 2, table: place(1 << 20), pending: place((1 << 20) + 0x800) },
            vendor: Vec::new(),
            link: Link { generation: 3, lanes: 16 },
            max_payload: 256,
        });
        let mut server = Server::bind(&path, space.unwrap(), ServerConfig::default()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (begin, mut model) = (Instant::now(), Model::new(wrong));
            while !stopped.load(Ordering::Relaxed) {
                server.poll(begin.elapsed(), Duration::from_millis(1), &mut model).unwrap();
            }
        });
        Self { path, stop, thread: Some(thread), _folder: folder }
    }

    fn open(&self) -> Result<Slot, Error> {
        let options = Options { timeout: Duration::from_secs(1), patience: SHORT, ring_log: 5, ..Options::default() };
        Slot::open(&self.path, &options)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn rings_go_round_and_round() {
    let device = Device::new(Wrong::Nothing);
    let slot = device.open().unwrap();
    assert_eq!(slot.memory(), 0x1000..0x3000);
    let (host, near) = (slot.alloc_host(64).unwrap(), slot.alloc_device(64).unwrap());
    // Each generation several times, in lists of any length.
    for length in (1..=32).cycle().take(200) {
        slot.copy_all(&vec![((&host).into(), (&near).into()); length]).unwrap();
    }
}

#[test]
fn a_device_that_cannot_be_used_says_why() {
    for (wrong, said) in [
        (Wrong::Type, "no copy engine"),
        (Wrong::Major, "no copy engine"),
        (Wrong::NotEnabled, "not enabled"),
        (Wrong::Runs, "does not end"),
        (Wrong::Idle, "does not end"),
        (Wrong::Memory, "memory has no end"),
    ] {
        let device = Device::new(wrong);
        let error = device.open().unwrap_err();
        assert!(error.to_string().contains(said) && !error.hint().is_empty(), "{wrong:?}: {error}");
    }
    // An older engine copies, and says of no memory that it is the host's.
    let device = Device::new(Wrong::Minor);
    let slot = device.open().unwrap();
    assert!(matches!(slot.alloc_device(1), Err(Error::NoDeviceMemory { asked: 1, largest: 0 })));
}

#[test]
fn completions_of_others_end_everything() {
    let device = Device::new(Wrong::Tag);
    let slot = device.open().unwrap();
    let (host, near) = (slot.alloc_host(64).unwrap(), slot.alloc_device(64).unwrap());
    let error = slot.copy(&host, &near).unwrap_err();
    let Error::Copy(CopyError::Gone { why }) = &error else { panic!("{error:?}") };
    assert!(matches!(**why, PciError::Unusable(_)), "{error}");
    assert!(matches!(slot.copy_async(&host, &near), Err(Error::Copy(CopyError::Gone { .. }))));
}

/// It is found when nothing has ended for a while, and only what was under way is lost.
#[test]
fn an_engine_that_stops_without_an_interrupt_is_begun_again() {
    for polls in [false, true] {
        let device = Device::new(Wrong::Stops);
        let slot = device.open().unwrap();
        let (host, near) = (slot.alloc_host(64).unwrap(), slot.alloc_device(64).unwrap());
        let copy = slot.copy_async(&host, &near).unwrap();
        let error = if polls {
            let end = Instant::now() + LONG;
            loop {
                assert!(Instant::now() < end);
                if let Some(ended) = copy.poll() {
                    break ended.unwrap_err();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        } else {
            copy.wait().unwrap_err()
        };
        assert!(matches!(error, CopyError::Stopped { why: Stop::Fetch }), "{error}");
        slot.copy(&host, &near).unwrap();
    }
}

/// A wait with a deadline before `patience` is over is not held up by it; one without ends.
#[test]
fn a_device_that_answers_nothing_ends_waits() {
    let device = Device::new(Wrong::Silent);
    let slot = device.open().unwrap();
    let (host, near) = (slot.alloc_host(64).unwrap(), slot.alloc_device(64).unwrap());
    let copy = slot.copy_async(&host, &near).unwrap();
    let begin = Instant::now();
    assert!(copy.wait_until(begin + SHORT / 4).is_none() && begin.elapsed() < SHORT);
    assert!(matches!(copy.wait(), Err(CopyError::Gone { .. })));
    assert!(begin.elapsed() < LONG);
}
