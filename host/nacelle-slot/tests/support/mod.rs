// SPDX-License-Identifier: Apache-2.0
//! A small function for tests: registers, some of them slow, a page that is mapped, DMA that sums the client's memory, interrupts.
//! Used by the tests of the driver's side and by the fuzz target too.
#![allow(dead_code, unreachable_pub, reason = "each user takes a part")]

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use nacelle_slot::config_space::{
    Bar, ConfigEvent, ConfigSpace, Description, Identity, Link, Msix, Place, VendorCapability, WINDOW_BYTES,
};
use nacelle_slot::dma::Fault;
use nacelle_slot::pages::{Access, Pages};
use nacelle_slot::protocol::MapArea;
use nacelle_slot::{
    Answer, BarAccess, DmaToken, Doorbell, Errno, Function, Host, MappedBar, ResetCause, ServerConfig, Token, Transfer,
};

/// Registers of BAR 0.
pub mod register {
    pub const SCRATCH: u64 = 0;
    pub const ADDRESS: u64 = 0x08;
    pub const LENGTH: u64 = 0x10;
    /// Sums `LENGTH` bytes at `ADDRESS`, writes their complement behind them, and raises the vector that is written here.
    pub const GO: u64 = 0x14;
    pub const SUM: u64 = 0x18;
    pub const STATUS: u64 = 0x1c;
    /// Is read after three steps.
    pub const SLOW: u64 = 0x20;
    /// Is never read.
    pub const DEAD: u64 = 0x28;
    /// Refuses.
    pub const ERROR: u64 = 0x30;
    /// How often the doorbell was rung.
    pub const RUNG: u64 = 0x38;
    /// How long resets and unmappings take, in steps.
    pub const DELAY: u64 = 0x40;
    pub const END: u64 = 0x48;
    /// Where a write rings the doorbell.
    pub const DOORBELL: u64 = 0x1000;
}

/// Values of `STATUS`.
pub mod status {
    pub const IDLE: u32 = 0;
    pub const BUSY: u32 = 1;
    pub const DONE: u32 = 2;
    pub const FAULT: u32 = 3;
}

pub const VECTORS: u16 = 20;
pub const TABLE: u64 = 0x8000;
pub const PENDING: u64 = 0xc000;
/// The capability by which BARs are accessed: behind one of five bytes.
pub const WINDOW: u64 = 0xa8;
/// Where it takes no memory.
pub const UNUSABLE: u64 = 0xbad_0000;

#[derive(Debug)]
enum Sum {
    Idle,
    Reading(DmaToken, Vec<u8>),
    Writing(DmaToken),
}

#[derive(Debug)]
pub struct Toy {
    registers: [u8; register::END as usize],
    pub page: Arc<Pages>,
    sum: Sum,
    /// What is to be completed, and after how many steps.
    later: Vec<(u64, Token, usize)>,
    pub events: Vec<ConfigEvent>,
    pub faults: Vec<Fault>,
    pub resets: Vec<ResetCause>,
    pub clients: Vec<bool>,
    pub unmapped: Vec<RangeInclusive<u64>>,
    /// Completions that came too late.
    pub in_vain: usize,
}

impl Toy {
    pub fn new() -> Self {
        Self {
            registers: [0; register::END as usize],
            page: Arc::new(Pages::create("toy", 4096).unwrap()),
            sum: Sum::Idle,
            later: Vec::new(),
            events: Vec::new(),
            faults: Vec::new(),
            resets: Vec::new(),
            clients: Vec::new(),
            unmapped: Vec::new(),
            in_vain: 0,
        }
    }

    pub fn space() -> ConfigSpace {
        let bar = |index, size, wide| Bar { index, size, wide, prefetchable: false, sizes: 0 };
        ConfigSpace::new(Description {
            identity: Identity { serial: 0x1234_5678_9abc_def0, ..Identity::default() },
            bars: vec![
                bar(0, 0x10000, true),
                bar(2, 0x1000, false),
                Bar { sizes: 0b111, prefetchable: true, ..bar(4, 1 << 20, true) },
            ],
            msix: Msix {
                vectors: VECTORS,
                table: Place { bar: 0, offset: TABLE },
                pending: Place { bar: 0, offset: PENDING },
            },
            vendor: vec![
                VendorCapability { body: vec![0x11, 0x22, 0x33, 0x44, 0x55], window: false },
                VendorCapability { body: vec![0; WINDOW_BYTES], window: true },
            ],
            link: Link { generation: 3, lanes: 16 },
            max_payload: 256,
        })
        .unwrap()
    }

    /// With the page mapped, and a doorbell.
    pub fn config(&self) -> ServerConfig {
        let areas = vec![MapArea { offset: 0, size: 4096 }];
        ServerConfig {
            mapped: vec![MappedBar { bar: 2, pages: Arc::clone(&self.page), areas }],
            doorbells: vec![Doorbell { bar: 0, offset: register::DOORBELL, size: 4, value: None }],
            ..ServerConfig::default()
        }
    }

    pub fn number(&self, at: u64, len: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&self.registers[at as usize..][..len]);
        u64::from_le_bytes(bytes)
    }

    fn set(&mut self, at: u64, value: u32) {
        self.registers[at as usize..][..4].copy_from_slice(&value.to_le_bytes());
    }

    fn go(&mut self, host: &mut Host<'_>) {
        let (address, len) = (self.number(register::ADDRESS, 8), self.number(register::LENGTH, 4) as usize);
        let mut bytes = vec![0; len.min(1 << 20)];
        self.set(register::STATUS, status::BUSY);
        match host.dma_read(address, &mut bytes) {
            Ok(Transfer::Done) => self.read(host, &bytes),
            Ok(Transfer::Later(token)) => self.sum = Sum::Reading(token, bytes),
            Err(fault) => self.end(host, Err(fault)),
        }
    }

    fn read(&mut self, host: &mut Host<'_>, bytes: &[u8]) {
        self.set(register::SUM, bytes.iter().map(|byte| u32::from(*byte)).sum());
        let complement: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        let behind = self.number(register::ADDRESS, 8).wrapping_add(bytes.len() as u64);
        match host.dma_write(behind, &complement) {
            Ok(Transfer::Done) => self.end(host, Ok(())),
            Ok(Transfer::Later(token)) => self.sum = Sum::Writing(token),
            Err(fault) => self.end(host, Err(fault)),
        }
    }

    fn end(&mut self, host: &mut Host<'_>, result: Result<(), Fault>) {
        self.sum = Sum::Idle;
        self.set(register::STATUS, if result.is_ok() { status::DONE } else { status::FAULT });
        self.faults.extend(result.err());
        let _there_may_be_no_such_vector = host.interrupt(self.number(register::GO, 4) as u16);
    }

    fn delayed(&mut self, token: Token) -> Answer {
        match self.number(register::DELAY, 4) {
            0 => Answer::Now,
            steps => {
                self.later.push((steps, token, 0));
                Answer::Later
            }
        }
    }
}

impl Function for Toy {
    fn bar_read(&mut self, _: &mut Host<'_>, access: BarAccess, into: &mut [u8]) -> Result<Answer, Errno> {
        let (at, len) = (access.offset, into.len());
        match at {
            _ if access.bar != 0 => into.fill(0x44),
            register::SLOW => {
                self.later.push((3, access.token, len));
                return Ok(Answer::Later);
            }
            register::DEAD => return Ok(Answer::Later),
            register::ERROR => return Err(Errno::NXIO),
            _ => match self.registers.get(at as usize..at as usize + len) {
                Some(bytes) => into.copy_from_slice(bytes),
                None => into.fill(0xff),
            },
        }
        Ok(Answer::Now)
    }

    fn bar_write(&mut self, host: &mut Host<'_>, access: BarAccess, bytes: &[u8]) -> Result<Answer, Errno> {
        let at = access.offset as usize;
        if access.bar != 0 {
            return Ok(Answer::Now);
        }
        match access.offset {
            register::DEAD => return Ok(Answer::Later),
            register::ERROR => return Err(Errno::NXIO),
            register::DOORBELL => self.doorbell(host, 0, 1),
            _ => {}
        }
        if let Some(place) = self.registers.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
            if access.offset == register::GO {
                self.go(host);
            }
        }
        Ok(Answer::Now)
    }

    fn step(&mut self, host: &mut Host<'_>, _: Duration) {
        for (steps, ..) in &mut self.later {
            *steps -= 1;
        }
        let due: Vec<_> = self.later.extract_if(.., |(steps, ..)| *steps == 0).collect();
        for (_, token, len) in due {
            let slow = vec![0x5a; len];
            self.in_vain += usize::from(!host.complete(token, Ok(&slow)));
        }
    }

    fn config_event(&mut self, _: &mut Host<'_>, event: ConfigEvent) {
        self.events.push(event);
    }

    fn reset(&mut self, _: &mut Host<'_>, cause: ResetCause, token: Token) -> Result<Answer, Errno> {
        self.resets.push(cause);
        let answer = self.delayed(token);
        self.registers.fill(0);
        self.sum = Sum::Idle;
        Ok(answer)
    }

    fn mapping(&mut self, _: &mut Host<'_>, range: RangeInclusive<u64>, _: Access) -> Result<(), Errno> {
        if *range.start() == UNUSABLE { Err(Errno::NXIO) } else { Ok(()) }
    }

    fn unmapping(&mut self, _: &mut Host<'_>, range: RangeInclusive<u64>, token: Token) -> Answer {
        self.unmapped.push(range);
        self.delayed(token)
    }

    fn dma_done(&mut self, host: &mut Host<'_>, token: DmaToken, result: Result<&[u8], Fault>) {
        match (&mut self.sum, result) {
            (Sum::Reading(waits, _) | Sum::Writing(waits), _) if *waits != token => {}
            (Sum::Reading(..), Ok(bytes)) => {
                let bytes = bytes.to_vec();
                self.read(host, &bytes);
            }
            (Sum::Writing(_), Ok(_)) => self.end(host, Ok(())),
            (Sum::Idle, _) => {}
            (_, Err(fault)) => self.end(host, Err(fault)),
        }
    }

    fn doorbell(&mut self, _: &mut Host<'_>, _: usize, times: u64) {
        let rung = self.number(register::RUNG, 8) + times;
        self.registers[register::RUNG as usize..][..8].copy_from_slice(&rung.to_le_bytes());
    }

    fn client(&mut self, _: &mut Host<'_>, present: bool) {
        self.clients.push(present);
        if !present {
            self.sum = Sum::Idle;
        }
    }
}
