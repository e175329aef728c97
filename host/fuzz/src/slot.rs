// SPDX-License-Identifier: Apache-2.0
//! A slot and one client, who says whatever the input has.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nacelle_slot::Server;
use nacelle_slot::channel::{Channel, Descriptors, MAX_DESCRIPTORS, Received};
use nacelle_slot::pages::Pages;
use nacelle_slot::protocol::{Header, Version, command, flag};

#[path = "../../nacelle-slot/tests/support/mod.rs"]
mod toy;

use crate::{number, take};
use toy::Toy;

/// Bytes of memory that the client shares.
const MEMORY: usize = 0x4000;
/// Time limits end within so many steps of time.
const MOMENTS: u32 = 4;

/// A server that gets messages made of the input: whole ones of every command, with descriptors, bytes of any kind, answers, pauses.
///
/// Rules: no panic; what it says is messages, no more than are asked for; when the client has gone, it has no client, no memory and no
/// leave to send, and the next one can connect.
pub fn slot(data: &[u8]) {
    let mut world = World::new();
    let mut input = data;
    while let Some((&kind, rest)) = input.split_first() {
        input = rest;
        world.command(kind, &mut input);
        world.turn();
    }
    world.part();
}

/// Inputs from which others are made: each command once, in an order that makes sense.
#[cfg(test)]
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let whole = |command: u8, payload: &[u8]| [&[0, command, payload.len() as u8, 0], payload].concat();
    let double = |values: &[u32]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
    let access = |region, offset, count: u32| double(&[offset, 0, region, count]);
    let master = whole(10, &[access(7, 4, 1), vec![6]].concat());
    // The function's memory is at 0x1000, its length 16; it is told to go.
    let registers = double(&[0x1000, 0, 16, 1]);
    let go = whole(10, &[access(0, 8, 16), registers].concat());
    let start = whole(10, &[access(0, 0x14, 4), vec![1, 0, 0, 0]].concat());
    let map = |files: u8| {
        let mut all = whole(2, &double(&[32, 3, 0, 0, 0x1000, 0, 0x4000, 0]));
        all[3] = files;
        all
    };
    let unmap = whole(3, &double(&[24, 0, 0x1000, 0, 0x4000, 0]));
    let irqs = |files: u8| {
        let mut all = whole(8, &double(&[20, 0x24, 2, 0, u32::from(files)]));
        all[3] = files | 0x20;
        all
    };
    let mut samples: Vec<Vec<u8>> = [
        vec![whole(4, &double(&[16, 0, 0, 0]))],
        (0..9).map(|index| whole(5, &double(&[99, 0, index, 0, 0, 0, 0, 0]))).collect(),
        vec![whole(6, &double(&[99, 0, 0, 0])), whole(7, &double(&[16, 0, 2, 0]))],
        vec![
            irqs(3),
            whole(8, &double(&[20, 0x21, 2, 0, 0])),
            whole(8, &[double(&[20, 0xa, 2, 0, 3]), vec![1, 0, 1]].concat()),
        ],
        vec![master.clone(), map(1), go.clone(), start.clone(), unmap.clone()],
        vec![master, map(0), go, start, vec![2, 0], vec![2, 1], unmap],
        vec![whole(9, &access(0, 0x20, 4)), whole(9, &access(0, 0, 8)), whole(9, &access(0, 0x28, 4)), vec![3; 20]],
        vec![whole(10, &[access(7, 0x58, 2), vec![0, 0x80]].concat()), whole(13, &[])],
        vec![vec![1, 8, 1, 2, 3, 4, 5, 6, 7, 8], vec![4]],
    ]
    .map(|parts: Vec<Vec<u8>>| parts.concat())
    .into();
    samples.push(samples.concat());
    samples
}

struct World {
    server: Server,
    toy: Toy,
    client: Channel,
    raw: UnixStream,
    now: Duration,
    memory: Pages,
    eventfd: OwnedFd,
    /// Requests of the function that were heard.
    asked: Vec<(Header, Vec<u8>)>,
    /// Commands that were sent, and replies that came, as long as the client kept to messages.
    sent: usize,
    heard: usize,
    in_step: bool,
}

impl World {
    fn new() -> Self {
        let toy = Toy::new();
        let (here, there) = UnixStream::pair().expect("a pair of sockets");
        here.set_nonblocking(true).expect("a socket");
        let raw = here.try_clone().expect("a descriptor");
        let server = Server::connected(there, Toy::space(), toy.config()).expect("a slot");
        let mut world = Self {
            server,
            toy,
            client: Channel::new(here, 2 << 20).expect("a channel"),
            raw,
            now: Duration::ZERO,
            memory: Pages::create("fuzz", MEMORY).expect("memory"),
            eventfd: rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).expect("an eventfd"),
            asked: Vec::new(),
            sent: 0,
            heard: 0,
            in_step: true,
        };
        world.say(command::VERSION, 0, &Version::default().major.to_ne_bytes().repeat(2), Descriptors::new());
        world.turn();
        assert!(world.server.has_client());
        world
    }

    fn say(&mut self, command: u16, flags: u32, payload: &[u8], descriptors: Descriptors) {
        self.sent += usize::from(flags & (flag::NO_REPLY | flag::REPLY) == 0);
        self.client.queue(Header { id: 7, command, flags, ..Header::default() }, &[payload], descriptors);
    }

    fn command(&mut self, kind: u8, input: &mut &[u8]) {
        match kind & 7 {
            0 => {
                let [command, len, files] = *take(input, 3) else { return };
                let payload = take(input, len.into()).to_vec();
                let file = if files & 0x20 == 0 { self.memory.file() } else { Some(self.eventfd.as_fd()) };
                let count = usize::from(files & 0x1f).min(MAX_DESCRIPTORS);
                let descriptors = file.iter().cycle().take(count);
                let descriptors = descriptors.filter_map(|file| file.try_clone_to_owned().ok()).collect();
                // Commands are often those that there are.
                let command = if files & 0x80 == 0 { command % 20 } else { command };
                self.say(command.into(), u32::from(kind >> 3 & 3) << 4, &payload, descriptors);
            }
            1 => {
                // Anything: what follows is out of step, perhaps.
                self.in_step = false;
                let len = take(input, 1).first().copied().unwrap_or(0);
                let _the_server_may_have_gone = self.raw.write_all(take(input, len.into()));
            }
            2 => {
                let Some((header, mut payload)) = self.asked.pop() else { return };
                // An answer, which is right or not.
                let change = take(input, 1).first().copied().unwrap_or(0);
                if header.command == command::DMA_READ {
                    let count = payload.get(8..10).map_or(0, |count| u16::from_ne_bytes([count[0], count[1]]));
                    payload.extend(std::iter::repeat_n(change, count.into()));
                }
                if change & 0x40 != 0 {
                    payload.truncate(payload.len() / 2);
                }
                let flags = flag::REPLY | if change & 0x80 != 0 { flag::ERROR } else { 0 };
                let reply = Header { flags, ..header };
                self.client.queue(reply, &[&payload], Descriptors::new());
            }
            3 => self.now += Duration::from_millis(u64::from(kind) * 40),
            4 => {
                let doorbell = number(input);
                let _it_may_be_full = rustix::io::write(&self.eventfd, &u64::from(doorbell).to_ne_bytes());
            }
            _ => self.turn(),
        }
    }

    fn turn(&mut self) {
        let _the_server_may_have_gone = self.client.flush();
        for _ in 0..3 {
            self.server.poll(self.now, Duration::ZERO, &mut self.toy).expect("no client can stop it");
            self.hear();
        }
    }

    fn hear(&mut self) {
        while let Ok(Received::Message) = self.client.receive() {
            let message = self.client.take();
            assert!(!message.too_long && !message.too_many_descriptors, "it says no more than it may");
            if message.header.is_reply() {
                self.heard += 1;
                let failed = message.header.flags & flag::ERROR != 0;
                assert!(!failed || (message.payload().is_empty() && message.header.error != 0));
            } else {
                let command = message.header.command;
                assert!(matches!(command, command::DMA_READ | command::DMA_WRITE), "it asks for nothing else");
                self.asked.push((message.header, message.payload()[..16].to_vec()));
            }
        }
        assert!(!self.in_step || self.heard <= self.sent, "it answers what it was not asked");
    }

    /// The client goes, in whatever state it is.
    fn part(mut self) {
        drop(self.raw);
        drop(self.client);
        for _ in 0..MOMENTS {
            self.server.poll(self.now, Duration::ZERO, &mut self.toy).expect("no client can stop it");
            self.now += Duration::from_secs(61);
        }
        assert!(!self.server.has_client(), "the client has gone");
        let mut host = self.server.host();
        assert!(!host.settings().bus_master && host.dma_read(0x1000, &mut [0]).is_err());
        assert_eq!(self.toy.clients.iter().filter(|present| **present).count() * 2, self.toy.clients.len());
    }
}
