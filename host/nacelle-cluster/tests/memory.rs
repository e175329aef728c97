// SPDX-License-Identifier: Apache-2.0
//! A cluster needs no more memory after a day than after some hours, whatever has failed in it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use nacelle_cluster::{Plan, run};

thread_local! {
    /// Bytes that this thread has allocated now, less those of others that it has freed, and the most that it had: a cluster runs in
    /// one thread, and those of the test harness allocate at the same time.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.get() + layout.size() as isize;
        HELD.set(held);
        MOST.set(MOST.get().max(held));
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most memory that a cluster has at once in so many hours, in bytes. All of it must be given back.
fn most(hours: u32) -> isize {
    let before = HELD.get();
    MOST.set(before);
    let (unit, pace) = (Duration::from_secs(1), Duration::from_secs(60));
    let plan = Plan { nodes: 6, devices: 0, unit, pace, time: Duration::from_secs(3600) * hours, ..Plan::new(5) };
    let report = run(&plan);
    assert!(report.crashes > hours.into() && report.connections > 20 * u64::from(hours), "{report}");
    let left = HELD.get() - before;
    assert!(left < 1000, "{left} bytes are left");
    MOST.get() - before
}

#[test]
fn memory_does_not_grow_with_time() {
    let [few, many] = [4, 24].map(most);
    println!("after 4 hours {few} bytes, after 24 hours {many}");
    assert!(many < few * 3 / 2, "after 4 hours {few} bytes, after 24 hours {many}");
}
