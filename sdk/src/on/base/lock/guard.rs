//! The guard of a lock. In builds with debug assertions it counts the locks that its thread holds. So the
//! tests' allocators and values can check that they never run under a lock.

use std::ops::{Deref, DerefMut};

#[cfg(debug_assertions)]
use counting::Counted;
#[cfg(debug_assertions)]
pub use counting::holds_a_lock;

/// A held lock of this crate.
#[derive(Debug)]
pub(crate) struct Guard<G> {
    guard: G, // dropped before the lock counts as free
    _counted: Counted,
}

impl<G> Guard<G> {
    pub(crate) fn new(guard: G) -> Self {
        Self { guard, _counted: Counted::new() }
    }
}

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

#[cfg(not(debug_assertions))]
#[derive(Debug)]
struct Counted;

#[cfg(not(debug_assertions))]
impl Counted {
    fn new() -> Self {
        Self
    }
}

#[cfg(debug_assertions)]
mod counting {
    use std::cell::Cell;
    use std::marker::PhantomData;

    thread_local! {
        static HELD: Cell<u32> = const { Cell::new(0) };
    }

    /// One of the locks that this thread holds.
    #[derive(Debug)]
    pub(crate) struct Counted(PhantomData<*const ()>); // not to be dropped by another thread

    impl Counted {
        pub(crate) fn new() -> Self {
            HELD.set(HELD.get() + 1);
            Self(PhantomData)
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            HELD.set(HELD.get() - 1);
        }
    }

    /// Whether the calling thread holds a lock of this crate. For the tests: no code of the program, its
    /// allocator included, runs under a lock.
    pub fn holds_a_lock() -> bool {
        HELD.get() > 0
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use crate::on::base::lock::Mutex;
    use crate::on::base::lock::MutexGuard;
    use crate::on::base::lock::guard::holds_a_lock;

    #[test]
    fn held_locks_are_counted_for_each_thread() {
        static LOCKS: [Mutex<u32>; 2] = [Mutex::new(0), Mutex::new(0)];
        assert!(!holds_a_lock());
        let [first, second] = [LOCKS[0].lock(), LOCKS[1].lock()];
        std::thread::spawn(|| assert!(!holds_a_lock())).join().expect("no panic");
        drop(first);
        assert!(holds_a_lock());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard: MutexGuard<'_, u32> = LOCKS[0].lock();
            panic!("on purpose")
        }));
        assert!(panicked.is_err() && holds_a_lock());
        drop(second);
        assert!(!holds_a_lock());
    }
}
