// SPDX-License-Identifier: Apache-2.0
//! A cluster needs no more memory after a day than after some hours, whatever has failed in it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nacelle_cluster::{Plan, run};

/// Bytes that are allocated now, and the most that were.
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: everything is passed on to the system's allocator; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most memory that a cluster has at once in so many hours, in bytes. All of it must be given back.
fn most(hours: u32) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let (unit, pace) = (Duration::from_secs(1), Duration::from_secs(60));
    let plan = Plan { nodes: 6, devices: 0, unit, pace, time: Duration::from_secs(3600) * hours, ..Plan::new(5) };
    let report = run(&plan);
    assert!(report.crashes > hours.into() && report.connections > 20 * u64::from(hours), "{report}");
    let left = HELD.load(Ordering::Relaxed).saturating_sub(before);
    // The thread of the test itself may have got a buffer meanwhile.
    assert!(left < 4096, "{left} bytes are left");
    MOST.load(Ordering::Relaxed) - before
}

#[test]
fn memory_does_not_grow_with_time() {
    let [few, many] = [4, 24].map(most);
    println!("after 4 hours {few} bytes, after 24 hours {many}");
    assert!(many < few * 3 / 2, "after 4 hours {few} bytes, after 24 hours {many}");
}
