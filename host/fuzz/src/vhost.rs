// SPDX-License-Identifier: Apache-2.0
//! A back end of vhost-user and one front end, who says whatever the input has.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use nacelle_pci::{Access, DmaBuffer, Interrupt, Pages, PciDevice, PciError};
use nacelle_slot::channel::{Channel, Descriptors, MAX_DESCRIPTORS, Received};
use nacelle_vhost::protocol::{Header, flag, request};
use nacelle_vhost::{Backend, BackendConfig, Listener};

use crate::{number, take};

/// Bytes of memory that the front end shares.
const MEMORY: usize = 0x1_0000;
/// Registers of the card.
const STATUS: u64 = 0x14;
const FEATURE: u64 = 0x04;
const QUEUE_SIZE: u64 = 0x18;
const NUM_QUEUES: u64 = 0x12;

/// What a card of paper was told.
#[derive(Debug, Default)]
struct Paper {
    registers: BTreeMap<u64, u8>,
    memory: BTreeMap<u64, u64>,
    vectors: Vec<OwnedFd>,
    bus_master: bool,
}

/// A card that takes everything and does nothing.
#[derive(Debug, Clone)]
struct PaperCard(Rc<RefCell<Paper>>);

impl PciDevice for PaperCard {
    fn config_read(&mut self, _: u64, into: &mut [u8]) -> Result<(), PciError> {
        into.fill(0);
        Ok(())
    }

    fn config_write(&mut self, _: u64, bytes: &[u8]) -> Result<(), PciError> {
        self.0.borrow_mut().bus_master = bytes[0] & 4 != 0;
        Ok(())
    }

    fn bar_size(&self, _: u8) -> u64 {
        0x2000
    }

    fn bar_read(&mut self, _: u8, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        let value: u32 = match offset {
            FEATURE => 0x3001_002b | 1,
            QUEUE_SIZE => 256,
            NUM_QUEUES => 2,
            _ => self.0.borrow().registers.get(&offset).copied().unwrap_or(0).into(),
        };
        into.copy_from_slice(&value.to_le_bytes()[..into.len()]);
        Ok(())
    }

    fn bar_write(&mut self, _: u8, offset: u64, bytes: &[u8]) -> Result<(), PciError> {
        let mut paper = self.0.borrow_mut();
        assert!(offset < 0x108, "it is written where registers are");
        paper.registers.insert(offset, bytes[0]);
        let runs = paper.registers.get(&STATUS).is_some_and(|status| status & 4 != 0);
        assert!(!runs || (!paper.memory.is_empty() && paper.bus_master), "it runs with what it needs");
        Ok(())
    }

    fn map_bar(&mut self, bar: u8, offset: u64, _: usize) -> Result<Pages, PciError> {
        Err(PciError::NotMappable { bar, offset })
    }

    fn alloc_dma(&mut self, len: usize, _: Access) -> Result<DmaBuffer, PciError> {
        Err(PciError::NoAddresses { len })
    }

    fn free_dma(&mut self, _: DmaBuffer) -> Result<(), PciError> {
        Ok(())
    }

    fn share_dma(&mut self, iova: u64, len: u64, _: BorrowedFd<'_>, _: u64, _: Access) -> Result<(), PciError> {
        let mut paper = self.0.borrow_mut();
        let end = iova.checked_add(len).expect("a range that there is");
        let before = paper.memory.range(..end).next_back();
        assert!(len > 0 && before.is_none_or(|(first, len)| first + len <= iova), "ranges do not overlap");
        paper.memory.insert(iova, len);
        Ok(())
    }

    fn unshare_dma(&mut self, iova: u64, len: u64) -> Result<(), PciError> {
        assert_eq!(self.0.borrow_mut().memory.remove(&iova), Some(len), "what was given is taken");
        Ok(())
    }

    fn vectors(&self) -> u16 {
        8
    }

    fn set_interrupts(&mut self, _: u16, eventfds: &[BorrowedFd<'_>]) -> Result<(), PciError> {
        let own = eventfds.iter().map(BorrowedFd::try_clone_to_owned).collect::<Result<_, _>>()?;
        self.0.borrow_mut().vectors = own;
        Ok(())
    }

    fn clear_interrupts(&mut self) -> Result<(), PciError> {
        Ok(())
    }

    fn wait(&mut self, interrupt: &Interrupt, wait: Duration) -> Result<u64, PciError> {
        Ok(interrupt.wait(wait)?)
    }

    fn alarm(&self) -> Result<Option<std::os::fd::OwnedFd>, PciError> {
        Ok(None)
    }

    fn reset(&mut self) -> Result<(), PciError> {
        self.0.borrow_mut().registers.clear();
        Ok(())
    }
}

/// A back end that gets messages made of the input: whole ones of every request, with descriptors of every kind, bytes of any kind,
/// kicks; and interrupts of its card.
///
/// Rules: no panic; what it says is messages, no more than are asked for; the card runs with memory only; when the front end has gone,
/// the card has no memory, no leave to send and is halted, and the next front end is served.
pub fn vhost(data: &[u8]) {
    let mut world = World::new();
    let mut input = data;
    while let Some((&kind, rest)) = input.split_first() {
        input = rest;
        world.command(kind, &mut input);
        world.turn();
    }
    world.part();
}

/// Inputs from which others are made: the set-up of a front end in pieces and as a whole.
#[cfg(test)]
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let whole =
        |request: u32, payload: &[u8], files: u8| [&[8, request as u8, payload.len() as u8, files], payload].concat();
    let words = |values: &[u32]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
    let ring = |index: u32| {
        let at = index * 0x1000;
        let mut address = words(&[index, 0, at, 0, at + 0x800, 0, at + 0x400, 0, 0, 0]);
        address.truncate(40);
        [
            whole(request::SET_VRING_NUM, &words(&[index, 16]), 0),
            whole(request::SET_VRING_BASE, &words(&[index, 0]), 0),
            whole(request::SET_VRING_ADDR, &address, 0),
            whole(request::SET_VRING_CALL, &words(&[index, 0]), 0x21),
            whole(request::SET_VRING_ERR, &words(&[index, 0]), 0x21),
            whole(request::SET_VRING_KICK, &words(&[index, 0]), 0x21),
            whole(request::SET_VRING_ENABLE, &words(&[index, 1]), 0),
        ]
        .concat()
    };
    let table = whole(request::SET_MEM_TABLE, &words(&[1, 0, 0x1000, 0, 0x1_0000, 0, 0, 0, 0, 0]), 1);
    let agree = |protocol: u32| {
        [
            whole(request::SET_OWNER, &[], 0),
            whole(request::SET_PROTOCOL_FEATURES, &words(&[protocol, 0]), 0),
            whole(request::SET_FEATURES, &words(&[0x4000_0000, 1]), 0),
        ]
        .concat()
    };
    let set_up = [agree(8), table.clone(), ring(0), ring(1)].concat();
    let inband = [
        agree(0x4028),
        table.clone(),
        whole(request::SET_BACKEND_REQ_FD, &[], 0x41),
        ring(0),
        ring(1),
        vec![2, 1, 2, 2],
        whole(request::VRING_KICK, &words(&[1, 0]), 0),
    ];
    let config = whole(request::GET_CONFIG, &[words(&[0, 12, 0]), vec![0; 12]].concat(), 0);
    vec![
        (0..40).flat_map(|number| whole(number, &[], 0)).collect(),
        set_up.clone(),
        [set_up.clone(), vec![2, 0, 2, 1, 3, 0, 3, 1], whole(request::GET_VRING_BASE, &words(&[0, 0]), 0)].concat(),
        [set_up.clone(), table, whole(request::RESET_DEVICE, &[], 0), config].concat(),
        inband.concat(),
        [set_up, vec![1, 8, 1, 2, 3, 4, 5, 6, 7, 8]].concat(),
    ]
}

struct World {
    backend: Backend<PaperCard>,
    paper: Rc<RefCell<Paper>>,
    path: PathBuf,
    front: Channel<Header>,
    raw: UnixStream,
    memory: Pages,
    eventfd: OwnedFd,
    sent: usize,
    heard: usize,
    in_step: bool,
}

impl World {
    fn new() -> Self {
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let path = std::env::temp_dir().join(format!("nacelle-fuzz-{}-{number}", std::process::id()));
        let paper = Rc::new(RefCell::new(Paper::default()));
        let card = PaperCard(Rc::clone(&paper));
        let mut backend =
            Backend::new(Listener::bind(&path).expect("a socket"), card, BackendConfig::default()).expect("a back end");
        let raw = UnixStream::connect(&path).expect("a connection");
        raw.set_nonblocking(true).expect("a socket");
        backend.turn(Duration::ZERO).expect("no front end can stop it");
        assert!(backend.has_front_end());
        Self {
            backend,
            paper,
            path,
            front: Channel::new(raw.try_clone().expect("a descriptor"), 4096).expect("a channel"),
            raw,
            memory: Pages::create("fuzz", MEMORY).expect("memory"),
            eventfd: rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).expect("an eventfd"),
            sent: 0,
            heard: 0,
            in_step: true,
        }
    }

    fn command(&mut self, kind: u8, input: &mut &[u8]) {
        match kind & 7 {
            0 => {
                let [request, len, files] = *take(input, 3) else { return };
                let payload = take(input, len.into()).to_vec();
                let pair = UnixStream::pair().expect("a pair of sockets");
                let file = match files >> 5 & 3 {
                    0 => self.memory.file(),
                    1 => Some(self.eventfd.as_fd()),
                    _ => Some(pair.0.as_fd()),
                };
                let count = usize::from(files & 0x1f).min(MAX_DESCRIPTORS);
                let descriptors = file.iter().cycle().take(count);
                let descriptors: Descriptors = descriptors.filter_map(|file| file.try_clone_to_owned().ok()).collect();
                self.sent += 1;
                let flags = flag::VERSION | u32::from(kind) & flag::NEED_REPLY;
                let header = Header { request: request.into(), flags, size: 0 };
                self.front.queue(header, &[&payload], descriptors);
            }
            1 => {
                // Anything: what follows is out of step, perhaps.
                self.in_step = false;
                let len = take(input, 1).first().copied().unwrap_or(0);
                let _the_back_end_may_have_gone = self.raw.write_all(take(input, len.into()));
            }
            2 => {
                let vector = number(input) as usize;
                let paper = self.paper.borrow();
                if let Some(vector) = paper.vectors.get(vector % paper.vectors.len().max(1)) {
                    let _it_may_be_full = rustix::io::write(vector, &1u64.to_ne_bytes());
                }
            }
            3 => _ = rustix::io::write(&self.eventfd, &u64::from(number(input)).to_ne_bytes()),
            _ => self.turn(),
        }
    }

    fn turn(&mut self) {
        let _the_back_end_may_have_gone = self.front.flush();
        for _ in 0..2 {
            self.backend.turn(Duration::ZERO).expect("no front end can stop it");
            while let Ok(Received::Message) = self.front.receive() {
                let message = self.front.take();
                assert_eq!(message.header.flags, flag::VERSION | flag::REPLY);
                self.heard += 1;
            }
        }
        assert!(!self.in_step || self.heard <= self.sent, "it answers what it was not asked");
    }

    /// The front end goes, in whatever state it is.
    fn part(self) {
        let Self { mut backend, paper, front, raw, path, .. } = self;
        drop((raw, front));
        for _ in 0..100 {
            backend.turn(Duration::ZERO).expect("no front end can stop it");
        }
        assert!(!backend.has_front_end() && !backend.is_running());
        let paper = paper.borrow();
        assert!(paper.memory.is_empty() && !paper.bus_master, "nothing is left of it");
        drop(paper);
        let next = UnixStream::connect(&path).expect("the next one can connect");
        let mut next = Channel::<Header>::new(next, 4096).expect("a channel");
        next.queue(Header { request: request::GET_FEATURES, flags: flag::VERSION, size: 0 }, &[], Descriptors::new());
        next.flush().expect("there is room");
        for _ in 0..3 {
            backend.turn(Duration::ZERO).expect("no front end can stop it");
        }
        assert!(matches!(next.receive(), Ok(Received::Message)), "the next one is served");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else what is found is found beside the point.
    #[test]
    fn vhost_samples_let_the_card_run() {
        let ran = samples().into_iter().filter(|sample| {
            let mut world = World::new();
            let (mut input, mut ran) = (&sample[..], false);
            while let Some((&kind, rest)) = input.split_first() {
                input = rest;
                world.command(kind, &mut input);
                world.turn();
                ran |= world.backend.is_running();
            }
            world.part();
            ran
        });
        assert_eq!(ran.count(), 5, "all but the first");
    }
}
