// SPDX-License-Identifier: Apache-2.0
//! A call allocates nothing, on no thread of the caller, the device or the wire between them, once all queues have grown.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::Running;
use nacelle::{Call, ConnectionOptions, Device, DeviceKind, FunctionCode, Options, Region};
use nacelle_device::{Place, SoftConfig, SoftEngine};
use nacelle_link::WireDir;

/// The system's allocator, counting what all threads ask for.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator; counting touches no memory of it and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What all threads allocate during `calls` calls, once as many have let the queues grow.
fn allocations(calls: u64, call: &mut Call) -> u64 {
    let mut run = || {
        call.invoke().unwrap();
        assert!(call.wait_timeout(Duration::from_secs(20)).unwrap());
    };
    (0..calls).for_each(|_| run());
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..calls).for_each(|_| run());
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn calls_allocate_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let place = Place::find(&wire, DeviceKind::Soft, None, None).unwrap();
    let _device = Running::start(&place, || SoftEngine::new(SoftConfig::default()));
    for progress_thread in [false, true] {
        let options = Options { wire: Some(wire.path().to_owned()), progress_thread, ..Options::default() };
        let device = Device::connect(place.identity.ip, &options).unwrap();
        let connection = device.open(&ConnectionOptions::default()).unwrap();
        let regions = |length| vec![Region::inout(vec![1; length])];
        let mut alone = device.create(FunctionCode::EMPTY, regions(8)).unwrap();
        let mut in_context = connection.create(FunctionCode::INCREMENT, regions(4000)).unwrap();
        // Parties and switch read the wire's directory once more some time after a party has joined.
        std::thread::sleep(Duration::from_millis(400));
        for call in [&mut alone, &mut in_context] {
            // What runs rarely, such as a timer of the program that runs the tests, may allocate.
            let allocated = allocations(1000, call);
            assert!(allocated < 20, "{allocated} allocations in 1000 calls, with a thread: {progress_thread}");
        }
        // A megabyte there and back in 512 packets: queues of the wire may grow once more, and a kernel's thread is told of
        // its memory by messages; a packet allocates nothing.
        let mut long = device.create(FunctionCode::INCREMENT, regions(1 << 20)).unwrap();
        let allocated = allocations(50, &mut long);
        assert!(allocated < 50 * 50, "{allocated} allocations in 50 long calls, with a thread: {progress_thread}");
    }
}
