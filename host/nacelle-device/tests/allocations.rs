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
        trace(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        trace(size);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(ptr, layout, size) }
    }
}
static TRACE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
thread_local! { static IN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) }; }
static SEEN: std::sync::Mutex<std::collections::BTreeMap<String, u64>> =
    std::sync::Mutex::new(std::collections::BTreeMap::new());
fn trace(size: usize) {
    if !TRACE.load(Ordering::Relaxed) || IN.get() {
        return;
    }
    IN.set(true);
    let text = std::backtrace::Backtrace::force_capture().to_string();
    let lines: Vec<&str> = text
        .lines()
        .filter(|l| {
            (l.contains("at ./") || l.contains("mpmc") || l.contains("nacelle")) && !l.contains("allocations.rs")
        })
        .take(6)
        .map(str::trim)
        .collect();
    *SEEN.lock().unwrap().entry(format!("{size}: {lines:#?}")).or_default() += 1;
    IN.set(false);
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(calls: u64, mut work: impl FnMut()) -> u64 {
    (0..calls).for_each(|_| work());
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    TRACE.store(std::env::var_os("TRACE").is_some(), Ordering::Relaxed);
    (0..calls).for_each(|_| work());
    TRACE.store(false, Ordering::Relaxed);
    let n = ALLOCATIONS.load(Ordering::Relaxed) - before;
    for (k, v) in std::mem::take(&mut *SEEN.lock().unwrap()) {
        if v > 5 {
            println!("{v} x {k}");
        }
    }
    n
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
        let calls: [(&str, u64, Call); 4] = [
            ("empty", 300, device.create(FunctionCode::EMPTY, regions(8)).unwrap()),
            ("in a context", 300, connection.create(FunctionCode::INCREMENT, regions(8)).unwrap()),
            ("long", 50, device.create(FunctionCode::EMPTY, regions(1 << 20)).unwrap()),
            ("in a thread", 50, device.create(FunctionCode::INCREMENT, regions(1 << 20)).unwrap()),
        ];
        for (name, count, mut call) in calls {
            let allocated = allocations(count, || {
                call.invoke().unwrap();
                assert!(call.wait_timeout(Duration::from_secs(20)).unwrap());
            });
            println!("{name}, thread {progress_thread}: {} per call", allocated as f64 / count as f64);
        }
    }
}
