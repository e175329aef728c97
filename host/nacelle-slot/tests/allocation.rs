// SPDX-License-Identifier: Apache-2.0
//! A register access, DMA and an interrupt allocate nothing, once all buffers are there.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nacelle_slot::channel::{Channel, Descriptors, Received};
use nacelle_slot::dma::DmaTable;
use nacelle_slot::pages::{Access, Pages};
use nacelle_slot::protocol::{Header, RegionAccess, Version, command};
use nacelle_slot::{NoVector, Server};
use support::{Toy, register};
use zerocopy::IntoBytes;

/// Counts allocations.
struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the contract of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: by the contract of this method.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn accesses_allocate_nothing() {
    let mut toy = Toy::new();
    let (here, there) = UnixStream::pair().unwrap();
    let mut server = Server::connected(there, Toy::space(), toy.config()).unwrap();
    let mut client = Channel::new(here, 1 << 16).unwrap();
    let mut ask = |command: u16, parts: &[&[u8]]| {
        client.queue(Header { command, ..Header::default() }, parts, Descriptors::new());
        client.flush().unwrap();
        while client.receive().unwrap() != Received::Message {
            server.poll(Duration::ZERO, Duration::ZERO, &mut toy).unwrap();
        }
        let reply = client.take();
        assert_eq!(reply.header.flags, 1);
        client.give_back(reply);
        assert_eq!(server.host().interrupt(3), Ok(()));
        assert_eq!(server.host().interrupt(support::VECTORS), Err(NoVector));
    };
    ask(command::VERSION, &[Version::default().as_bytes()]);
    let access = RegionAccess { offset: register::SCRATCH, region: 0, count: 8 };
    let mut round = || {
        ask(command::REGION_WRITE, &[access.as_bytes(), &[1; 8]]);
        ask(command::REGION_READ, &[access.as_bytes()]);
    };
    let memory = Pages::create("memory", 4096).unwrap();
    let mut table = DmaTable::new(4);
    let file = memory.file().unwrap().try_clone_to_owned().unwrap();
    table.map(0, 4096, Access::BOTH, Some((file, 0))).unwrap();
    let mut bytes = [0; 256];
    for _ in 0..10 {
        round();
    }
    let before = COUNT.load(Ordering::Relaxed);
    for _ in 0..1000 {
        round();
        table.write(64, &bytes).unwrap();
        table.read(64, &mut bytes).unwrap();
    }
    assert_eq!(COUNT.load(Ordering::Relaxed), before);
}
