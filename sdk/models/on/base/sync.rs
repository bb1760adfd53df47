//! As `sdk/src/on/base/sync.rs`, with loom's atomics. Those of integers come from the ring's models, which
//! make loom try every order.

#![allow(dead_code, unreachable_pub, unused_imports, unused_macros)] // no model uses all of them

pub(crate) use loom::sync::atomic::AtomicU8;
pub(crate) use pointer::AtomicPtr;
pub(crate) use ring::{AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use shipped::const_unless_loom;

#[path = "../../../../shm/src/sync.rs"]
mod ring;
#[path = "../../../src/on/base/sync.rs"]
mod shipped;

mod pointer {
    use loom::sync::atomic::AtomicUsize;

    use super::Ordering;

    /// As the ring's integers: each access is led by one that conflicts with all others, so that loom tries
    /// every order.
    #[derive(Debug)]
    pub(crate) struct AtomicPtr<T> {
        turn: AtomicUsize,
        value: loom::sync::atomic::AtomicPtr<T>,
    }

    impl<T> AtomicPtr<T> {
        pub(crate) fn new(value: *mut T) -> Self {
            Self { turn: AtomicUsize::new(0), value: loom::sync::atomic::AtomicPtr::new(value) }
        }

        pub(crate) fn load(&self, order: Ordering) -> *mut T {
            self.turn.fetch_add(0, Ordering::Relaxed);
            self.value.load(order)
        }

        pub(crate) fn store(&self, value: *mut T, order: Ordering) {
            self.turn.fetch_add(0, Ordering::Relaxed);
            self.value.store(value, order);
        }

        pub(crate) fn compare_exchange(
            &self,
            old: *mut T,
            new: *mut T,
            order: Ordering,
            failed: Ordering,
        ) -> Result<*mut T, *mut T> {
            self.turn.fetch_add(0, Ordering::Relaxed);
            self.value.compare_exchange(old, new, order, failed)
        }
    }
}
