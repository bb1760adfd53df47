//! Containers that grow outside of the lock that guards them.
//!
//! The program's allocator may take a mutex of the program, and may record events while it holds that mutex.
//! An allocation under a lock of this crate could then deadlock: thread A holds our lock and waits for the
//! program's mutex, thread B holds that mutex and waits for our lock. So no thread allocates or frees while
//! it holds a lock of this crate:
//!
//! ```text
//! lock    there is room: return with the lock held
//! unlock  there is none: allocate a larger container
//! lock    move the contents over, which allocates nothing
//! unlock  free the smaller container, and start again
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::ops::DerefMut;

/// A map that can be in a static. It has no random keys, since the standard library asks the system for them
/// at a thread's first map.
pub(crate) type Map<K, V, H = DefaultHasher> = HashMap<K, V, Fixed<H>>;
/// A hasher without random keys.
pub(crate) type Fixed<H = DefaultHasher> = BuildHasherDefault<H>;

/// A container with explicit allocation. While it has room, it allocates only in
/// [`with_room`](Self::with_room), and it frees only when it is dropped.
///
/// A struct of several containers implements each method by calling that of every container.
pub(crate) trait Grow: Sized {
    /// Creates an empty container with room for this many entries.
    fn with_room(entries: usize) -> Self;

    /// Returns the number of entries; for several containers the largest number.
    fn entries(&self) -> usize;

    /// Whether this many more entries can be added without an allocation.
    fn has_room(&self, more: usize) -> bool;

    /// Moves all entries of `smaller` into this container. The caller has checked the room, so nothing is
    /// allocated. `smaller` keeps its memory, so nothing is freed.
    fn take_over(&mut self, smaller: &mut Self);
}

impl<T> Grow for Vec<T> {
    fn with_room(entries: usize) -> Self {
        Self::with_capacity(entries)
    }

    fn entries(&self) -> usize {
        self.len()
    }

    #[inline]
    fn has_room(&self, more: usize) -> bool {
        self.capacity() - self.len() >= more
    }

    fn take_over(&mut self, smaller: &mut Self) {
        self.append(smaller);
    }
}

impl<K: Eq + Hash, V, S: BuildHasher + Default> Grow for HashMap<K, V, S> {
    fn with_room(entries: usize) -> Self {
        Self::with_capacity_and_hasher(entries, S::default())
    }

    fn entries(&self) -> usize {
        self.len()
    }

    // The capacity does not count places of removed entries that only a rehash makes usable again.
    #[inline]
    fn has_room(&self, more: usize) -> bool {
        self.capacity() - self.len() >= more
    }

    fn take_over(&mut self, smaller: &mut Self) {
        self.extend(smaller.drain());
    }
}

/// Least number of entries that a container is made for.
const LEAST: usize = 16;

/// Takes a lock by calling `lock`, with room in a container that the lock guards. `container` returns the
/// container and the number of entries that the caller adds; both may depend on the contents. Returns the
/// error of `lock`.
///
/// A container that has room costs only that check.
#[inline]
pub(crate) fn lock_with_room<G: DerefMut, E, C: Grow>(
    lock: impl Fn() -> Result<G, E>,
    container: impl Fn(&mut G::Target) -> (&mut C, usize),
) -> Result<G, E> {
    let mut guard = lock()?;
    let (found, more) = container(&mut guard);
    if found.has_room(more) { Ok(guard) } else { make_room(guard, lock, container) }
}

#[cold]
#[inline(never)]
fn make_room<G: DerefMut, E, C: Grow>(
    mut guard: G,
    lock: impl Fn() -> Result<G, E>,
    container: impl Fn(&mut G::Target) -> (&mut C, usize),
) -> Result<G, E> {
    loop {
        let (found, more) = container(&mut guard);
        if found.has_room(more) {
            return Ok(guard);
        }
        let entries = found.entries();
        drop(guard);

        let mut other = C::with_room((2 * entries).max(entries + more).max(LEAST));
        guard = lock()?;
        let (found, more) = container(&mut guard);
        // Another thread may have enlarged it meanwhile, or have filled it further.
        if !found.has_room(more) && other.has_room(found.entries() + more) {
            other.take_over(found);
            std::mem::swap(found, &mut other);
        }
        drop(guard);
        drop(other);
        guard = lock()?;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::on::base::lock::Mutex;

    static LOCKED: Mutex<Option<Strict>> = Mutex::new(None);
    static GROWN: AtomicUsize = AtomicUsize::new(0);

    /// A list that checks that it is made and dropped only while `LOCKED` is free.
    struct Strict(Vec<usize>);

    fn assert_free() {
        // Only this test has the lock.
        assert!(LOCKED.try_lock_until(std::time::Instant::now()).is_some(), "the lock is held");
    }

    impl Drop for Strict {
        fn drop(&mut self) {
            assert_free();
        }
    }

    impl Grow for Strict {
        fn with_room(entries: usize) -> Self {
            assert_free();
            GROWN.fetch_add(1, Ordering::Relaxed);
            Self(Vec::with_room(entries))
        }

        fn entries(&self) -> usize {
            self.0.entries()
        }

        fn has_room(&self, more: usize) -> bool {
            self.0.has_room(more)
        }

        fn take_over(&mut self, smaller: &mut Self) {
            self.0.take_over(&mut smaller.0);
        }
    }

    #[test]
    fn a_container_is_made_and_freed_outside_of_its_lock() {
        *LOCKED.lock() = Some(Strict(Vec::new()));
        for n in 0..1000 {
            let mut guard = LOCKED.lock_with_room(|list| (list.as_mut().expect("a list"), 1));
            let list = guard.as_mut().expect("a list");
            let memory = list.0.as_ptr();
            list.0.push(n);
            assert_eq!(list.0.as_ptr(), memory, "it has grown under the lock");
        }
        let last = LOCKED.lock().take();
        assert_eq!(last.as_ref().expect("a list").0, (0..1000).collect::<Vec<_>>());
        assert!(GROWN.load(Ordering::Relaxed) < 12, "twice as large each time");
        drop(last);
    }

    #[test]
    fn threads_that_grow_a_container_at_once_lose_no_entry() {
        let map = Arc::new(Mutex::new(HashMap::<usize, usize>::default()));
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let map = &map;
                threads.spawn(move || {
                    for n in (0..4000).map(|n| 4 * n + thread) {
                        let mut map = map.lock_with_room(|map| (map, 1));
                        let room = map.capacity();
                        map.insert(n, n);
                        assert_eq!(map.capacity(), room, "it has grown under the lock");
                    }
                });
            }
        });
        assert_eq!(map.lock().len(), 16_000);
        assert!(map.lock().iter().all(|(key, value)| key == value));
    }

    // Places of removed entries count as used. They must not make the map grow under the lock.
    #[test]
    fn a_map_whose_entries_are_removed_again_stays_small() {
        let map = Mutex::new(HashMap::<usize, usize>::default());
        for n in 0..100_000 {
            let mut map = map.lock_with_room(|map| (map, 1));
            assert!(map.has_room(1));
            map.insert(n, n);
            if n >= 20 {
                map.remove(&(n - 20));
            }
        }
        assert!(map.lock().capacity() < 1000);
    }
}
