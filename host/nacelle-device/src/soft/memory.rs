// SPDX-License-Identifier: Apache-2.0
//! A thread that gets large memory from the system, filled with zeros, and gives it back: both take the system long, for a
//! gibibyte some tenths of a second.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

use nacelle_roce::memory::Memory;

use super::wake::Waker;

/// The first byte's address is a multiple of this (`NACELLE_KERNEL_ALIGNMENT`).
const ALIGNMENT: usize = 64;
/// Memory of fewer bytes is had and given back at once.
const LARGE: usize = 1 << 20;

/// Names what was ordered.
pub(super) type OrderId = u64;

enum Order {
    Make(OrderId, Vec<usize>),
    Discard(Memory),
}

/// The thread, by the ends of its channels.
#[derive(Debug)]
pub(super) struct MemoryThread {
    orders: Sender<Order>,
    made: Receiver<(OrderId, Vec<Memory>)>,
    next: OrderId,
}

impl MemoryThread {
    /// # Errors
    /// If the system has no thread left.
    pub(super) fn start(waker: Waker) -> io::Result<Self> {
        let (orders, to_do) = channel();
        let (done, made) = channel();
        std::thread::Builder::new().name("nacelle-memory".into()).spawn(move || {
            for order in to_do {
                match order {
                    Order::Make(id, sizes) => {
                        // The receiver is gone when the device has ended.
                        let _ = done.send((id, make(&sizes)));
                        waker.wake();
                    }
                    Order::Discard(memory) => drop(memory),
                }
            }
        })?;
        Ok(Self { orders, made, next: 0 })
    }

    /// Memory of these sizes, all zero: at once, or by [`MemoryThread::poll`] under this name.
    pub(super) fn make(&mut self, sizes: Vec<usize>) -> Result<Vec<Memory>, OrderId> {
        if sizes.iter().sum::<usize>() < LARGE {
            return Ok(make(&sizes));
        }
        self.next += 1;
        match self.orders.send(Order::Make(self.next, sizes)) {
            Ok(()) => Err(self.next),
            Err(_) => unreachable!("the thread ends with this value"),
        }
    }

    /// What was ordered and is there.
    pub(super) fn poll(&self) -> Option<(OrderId, Vec<Memory>)> {
        self.made.try_recv().ok()
    }

    /// Gives memory back.
    pub(super) fn discard(&self, memory: Memory) {
        if memory.len() >= LARGE {
            // Without the thread it is given back here.
            let _ = self.orders.send(Order::Discard(memory));
        }
    }
}

fn make(sizes: &[usize]) -> Vec<Memory> {
    sizes.iter().map(|size| Memory::zeroed_aligned(*size, ALIGNMENT)).collect()
}
