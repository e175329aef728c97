// SPDX-License-Identifier: Apache-2.0
//! Borrowed slices as memory, until the end of a scope.

use core::marker::PhantomData;
use core::ptr::NonNull;
use std::sync::{Arc, PoisonError, Weak};

#[cfg(loom)]
use loom::sync::Mutex;
#[cfg(not(loom))]
use std::sync::Mutex;

use crate::Memory;

/// What accesses borrowed bytes without their [`Memory`], as a NIC does by DMA.
pub trait Ending: Send + Sync {
    /// Stops it: the bytes are about to be given back.
    fn end(&self);
}

/// Lets accesses pass until it is closed: then there are no endings to add to.
pub(crate) struct Gate(Mutex<Option<Vec<Weak<dyn Ending>>>>);

impl Default for Gate {
    /// An open one.
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Gate {
    /// Does `access` unless the gate is closed, and keeps it open meanwhile.
    pub(crate) fn pass(&self, access: impl FnOnce()) -> Option<()> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.is_some().then(access)
    }

    /// Stops `ending` when the gate is closed, if it is still there. Returns false if that has happened.
    pub(crate) fn at_end(&self, ending: Weak<dyn Ending>) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(endings) = &mut *open else { return false };
        endings.retain(|one| one.strong_count() > 0);
        endings.push(ending);
        true
    }

    /// Waits for the access that is under way, and lets none pass any more.
    pub(crate) fn close(&self) {
        let endings = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        endings.iter().flatten().filter_map(Weak::upgrade).for_each(|ending| ending.end());
    }
}

/// Lends slices until [`scope()`] ends.
pub struct Scope<'scope, 'env: 'scope> {
    gate: Arc<Gate>,
    // Invariant, as in `std::thread::Scope`: neither lifetime may be shortened.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// A slice as memory that is read only.
    pub fn lend(&'scope self, bytes: &'scope [u8]) -> Memory {
        // SAFETY: the slice is borrowed, and so neither written nor freed, for `'scope`, which does not end before `scope` has
        // closed the gate.
        unsafe { Memory::borrowed(NonNull::from(bytes), false, Arc::clone(&self.gate)) }
    }

    /// A slice as memory that is read and written.
    pub fn lend_mut(&'scope self, bytes: &'scope mut [u8]) -> Memory {
        // SAFETY: the slice is borrowed exclusively for `'scope`, which does not end before `scope` has closed the gate.
        unsafe { Memory::borrowed(NonNull::from(bytes), true, Arc::clone(&self.gate)) }
    }
}

/// Lets borrowed slices be registered during `f`.
///
/// When `f` returns or panics, every memory that was lent ends: what a peer does to its region from then on fails as if it was
/// deregistered. Nothing depends on whether it was.
///
/// ```
/// let mut bytes = [1, 2, 3];
/// let kept = nacelle_memory::scope(|scope| {
///     let mut memory = scope.lend_mut(&mut bytes);
///     memory.write(1, &[9]).unwrap();
///     memory
/// });
/// assert_eq!(bytes, [1, 9, 3]);
/// assert!(kept.to_vec().is_err());
/// ```
///
/// A slice that does not live long enough, or is used meanwhile, is an error of compilation:
///
/// ```compile_fail
/// let mut bytes = [1, 2, 3];
/// nacelle_memory::scope(|scope| {
///     let memory = scope.lend_mut(&mut bytes);
///     bytes[0] = 5;
///     drop(memory);
/// });
/// ```
///
/// ```compile_fail
/// nacelle_memory::scope(|scope| {
///     let mut bytes = [1, 2, 3];
///     drop(scope.lend_mut(&mut bytes));
/// });
/// ```
pub fn scope<'env, T>(f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    struct Close(Arc<Gate>);
    impl Drop for Close {
        fn drop(&mut self) {
            self.0.close();
        }
    }
    let gate = Arc::<Gate>::default();
    let _at_the_end = Close(Arc::clone(&gate));
    f(&Scope { gate, scope: PhantomData, env: PhantomData })
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Weak};

    use crate::{AccessError, Ending, scope};

    #[test]
    fn what_was_lent_ends_with_the_scope_also_by_a_panic() {
        let (mut written, read) = (vec![0; 4], vec![5; 4]);
        let mut kept = Vec::new();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            scope(|scope| {
                kept.extend([scope.lend_mut(&mut written), scope.lend(&read)]);
                kept[0].write(0, &[1, 2]).unwrap();
                assert_eq!(kept[1].write(0, &[1]), Err(AccessError::ReadOnly));
                assert_eq!(kept[1].to_vec().unwrap(), [5; 4]);
                panic!("halfway");
            })
        }));
        assert!(outcome.is_err());
        assert_eq!(written, [1, 2, 0, 0]);
        assert_eq!(kept[0].write(0, &[9]), Err(AccessError::Ended));
        assert_eq!(kept[1].read(0, &mut [0]), Err(AccessError::Ended));
        assert_eq!(written, [1, 2, 0, 0]);
    }

    #[derive(Default)]
    struct Ended(AtomicUsize);

    impl Ending for Ended {
        fn end(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_accesses_the_bytes_by_itself_is_stopped_before_they_are_back() {
        let (kept, dropped) = (Arc::new(Ended::default()), Arc::new(Ended::default()));
        let weak = |ended: &Arc<Ended>| Arc::<Ended>::downgrade(ended) as Weak<dyn Ending>;
        let times = |ended: &Ended| ended.0.load(Ordering::Relaxed);
        let mut bytes = [0; 4];
        let memory = scope(|scope| {
            let memory = scope.lend_mut(&mut bytes);
            memory.at_end(weak(&dropped)).unwrap();
            drop(dropped);
            memory.at_end(weak(&kept)).unwrap();
            assert_eq!(times(&kept), 0);
            memory
        });
        assert_eq!(times(&kept), 1);
        assert_eq!(memory.at_end(weak(&kept)), Err(AccessError::Ended));
        let owned = crate::Memory::zeroed(4);
        owned.at_end(weak(&kept)).unwrap();
        drop(owned);
        assert_eq!(times(&kept), 1, "owned bytes have no such end");
    }

    /// The end of the scope waits for the access that another thread makes.
    #[test]
    fn an_access_never_outlives_the_scope() {
        // An interpreter runs it too.
        let (rounds, length) = if cfg!(miri) { (5, 1 << 8) } else { (50, 1 << 16) };
        for _ in 0..rounds {
            let mut bytes = vec![0; length];
            let writer = scope(|scope| {
                let mut memory = scope.lend_mut(&mut bytes);
                let writer = std::thread::spawn(move || {
                    let ones = vec![1; length];
                    while memory.write(0, &ones).is_ok() {}
                });
                std::thread::yield_now();
                writer
            });
            assert!(bytes.iter().all(|byte| *byte == bytes[0]));
            let before = bytes.clone();
            writer.join().unwrap();
            assert_eq!(before, bytes);
        }
    }
}

/// Every order in which two threads can pass and close a gate: `RUSTFLAGS="--cfg loom" cargo test -p nacelle-memory loom`.
#[cfg(all(test, loom))]
mod loom_tests {
    use crate::{AccessError, scope};

    #[test]
    fn an_access_never_outlives_the_scope_in_any_order() {
        loom::model(|| {
            let mut bytes = vec![0; 2];
            let writers = scope(|scope| {
                let (first, second) = bytes.split_at_mut(1);
                [first, second].map(|part| {
                    let mut memory = scope.lend_mut(part);
                    loom::thread::spawn(move || memory.write(0, &[1]))
                })
            });
            let before = bytes.clone();
            for (writer, seen) in writers.into_iter().zip(before.clone()) {
                let outcome = writer.join().unwrap();
                assert_eq!(outcome, if seen == 1 { Ok(()) } else { Err(AccessError::Ended) });
            }
            assert_eq!(bytes, before);
        });
    }
}
