// SPDX-License-Identifier: Apache-2.0
//! Sending, receiving and completing allocate nothing, once the queues have grown to their size.

use nacelle_roce::{
    Access, ConnectOptions, Endpoint, EndpointConfig, Event, Instant, RecvWr, SendWr, WcOpcode, WcStatus,
};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

struct Counting;

thread_local! {
    /// Allocations of this thread; what the test's runner does meanwhile is its own business.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Frames go from each to the other until neither has any.
fn exchange(now: Instant, a: &mut Endpoint, b: &mut Endpoint, frame: &mut [u8]) {
    loop {
        if let Some(len) = a.poll_transmit(now, frame) {
            b.handle(now, &frame[..len]).unwrap();
        } else if let Some(len) = b.poll_transmit(now, frame) {
            a.handle(now, &frame[..len]).unwrap();
        } else {
            return;
        }
    }
}

#[test]
fn hot_path_allocates_nothing() {
    let (ip_a, ip_b) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let mut a = Endpoint::new(EndpointConfig::new([2, 0, 0, 0, 0, 1].into(), ip_a, [1; 32]));
    let mut b = Endpoint::new(EndpointConfig::new([2, 0, 0, 0, 0, 2].into(), ip_b, [2; 32]));
    let mut frame = vec![0; a.frame_len()];
    let now = Instant::ZERO;
    b.transport.listen(1);
    let here = a.connect(now, ip_b, 1, ConnectOptions::default()).unwrap();
    exchange(now, &mut a, &mut b, &mut frame);
    let Some(Event::ConnectRequest { conn: there, .. }) = b.transport.poll_event() else { panic!() };
    b.transport.accept(now, there, ConnectOptions::default()).unwrap();
    exchange(now, &mut a, &mut b, &mut frame);
    assert!(matches!(a.transport.poll_event(), Some(Event::Connected { .. })));
    assert!(matches!(b.transport.poll_event(), Some(Event::Connected { .. })));

    let source = a.transport.register(vec![7; 10_000], Access::LOCAL, None).unwrap();
    let rights = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    let target = b.transport.register(vec![0; 10_000], rights, Some(there)).unwrap();
    let answers = a.transport.register(vec![0; 10_000], Access::LOCAL, None).unwrap();
    let recv = b.transport.register(vec![0; 3000], Access::LOCAL, None).unwrap();
    let mut round = |id: u64| {
        b.transport.post_recv(there, RecvWr { id, slice: Some(recv.all()) }).unwrap();
        b.transport.post_recv(there, RecvWr { id, slice: None }).unwrap();
        a.transport.post_send(here, SendWr::send(id, source.slice(0, 3000))).unwrap();
        a.transport.post_send(here, SendWr::write(id, source.all(), target.addr, target.rkey)).unwrap();
        a.transport.post_send(here, SendWr::write_imm(id, source.slice(0, 8), target.addr, target.rkey, 9)).unwrap();
        a.transport.post_send(here, SendWr::read(id, answers.all(), target.addr, target.rkey)).unwrap();
        a.transport.post_send(here, SendWr::fetch_add(id, answers.slice(0, 8), target.addr, target.rkey, 1)).unwrap();
        exchange(now, &mut a, &mut b, &mut frame);
        for opcode in [WcOpcode::Send, WcOpcode::Write, WcOpcode::Write, WcOpcode::Read, WcOpcode::FetchAdd] {
            let Some(Event::Completion(c)) = a.transport.poll_event() else { panic!() };
            assert_eq!((c.id, c.opcode, c.status), (id, opcode, WcStatus::Success));
        }
        for opcode in [WcOpcode::Recv, WcOpcode::RecvWrite] {
            let Some(Event::Completion(c)) = b.transport.poll_event() else { panic!() };
            assert_eq!((c.id, c.opcode, c.status), (id, opcode, WcStatus::Success));
        }
    };
    (0..10).for_each(&mut round);
    let before = ALLOCATIONS.get();
    (10..1000).for_each(&mut round);
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
