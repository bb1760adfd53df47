//! The spans of all subscribers, by their ids.
//!
//! Slots are made in pages, each twice as large as the one before. The first page is static. Pages are never
//! freed, so the slot of any id, also of a closed span, can be read; its generation shows whether the slot is
//! still that span's. Each thread has some free slots of its own, those of the spans that it closed last, so
//! that making and closing a span takes no lock.

mod count;

use std::cell::RefCell;
use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use tracing_core::span::Id;

use crate::on::base::lock::Mutex;
use crate::on::base::this_thread;
use crate::on::bridges::tracing::slots::count::Count;
use crate::on::bridges::tracing::span::Span;

/// Number of slots of the first page.
const FIRST_PAGE: usize = 256;
const PAGES: usize = 24; // 2^32 slots in all
/// Number of free slots that a thread takes from the pool, or returns to it, at a time. A thread has at most
/// twice as many.
const BATCH: usize = 32;

pub(crate) static SLOTS: Slots = Slots::new();

#[derive(Debug)]
pub(crate) struct Slots {
    /// The first page: found without following a pointer.
    first: [Slot; FIRST_PAGE],
    /// All pages. The first entry stays empty.
    pages: [OnceLock<Box<[Slot]>>; PAGES],
    free: Mutex<Pool>,
}

#[derive(Debug)]
struct Pool {
    /// Free slots.
    indices: Vec<u32>,
    /// Number of slots that were ever used.
    used: u32,
}

/// A place for a span.
#[derive(Debug)]
#[repr(align(64))] // no two spans share a cache line
pub(crate) struct Slot {
    count: Count,
    pub(crate) parent: AtomicU64,
    pub(crate) span: Span,
}

// Two cache lines. On other platforms mutexes are larger.
#[cfg(target_os = "linux")]
const _: () = assert!(size_of::<Slot>() == 128);

impl Slot {
    const fn new() -> Self {
        Self { count: Count::new(), parent: AtomicU64::new(0), span: Span::new() }
    }
}

/// The free slots of a thread.
struct LocalFree {
    indices: [u32; 2 * BATCH],
    len: usize,
}

thread_local! {
    static LOCAL_FREE: RefCell<LocalFree> = const { RefCell::new(LocalFree::NONE) };
}

impl LocalFree {
    const NONE: Self = Self { indices: [0; 2 * BATCH], len: 0 };

    fn pop(&mut self) -> Option<u32> {
        if self.len == 0 {
            SLOTS.refill(self);
        }
        self.len = self.len.checked_sub(1)?;
        self.indices.get(self.len).copied()
    }

    fn push(&mut self, index: u32) {
        if self.len == self.indices.len() {
            self.len -= BATCH;
            SLOTS.put_back(&self.indices[self.len..]);
        }
        self.indices[self.len] = index;
        self.len += 1;
    }
}

impl Drop for LocalFree {
    fn drop(&mut self) {
        SLOTS.put_back(&self.indices[..self.len]);
    }
}

/// Calls `f` with the free slots of this thread. Returns `None` at the thread's end, or from inside of such a
/// call.
fn with_local_free<R>(f: impl FnOnce(&mut LocalFree) -> R) -> Option<R> {
    LOCAL_FREE.try_with(|local| local.try_borrow_mut().ok().map(|mut local| f(&mut local))).ok().flatten()
}

impl Slots {
    const fn new() -> Self {
        let free = Mutex::new(Pool { indices: Vec::new(), used: 0 });
        Self { first: [const { Slot::new() }; FIRST_PAGE], pages: [const { OnceLock::new() }; PAGES], free }
    }

    /// Returns the page of the slot with this index, and its offset there.
    #[inline]
    fn page_and_offset(index: u32) -> (usize, usize) {
        let n = index as usize / FIRST_PAGE + 1;
        let page = n.ilog2() as usize;
        (page, index as usize - FIRST_PAGE * ((1 << page) - 1))
    }

    #[cold]
    fn refill(&self, local: &mut LocalFree) {
        let _busy = this_thread::busy(); // for the lock
        let Some(mut free) = self.free.lock_unless_lost() else { return };
        while local.len < BATCH {
            let index = match free.indices.pop() {
                Some(index) => index,
                None if free.used == u32::MAX => return,
                None => {
                    free.used += 1;
                    free.used - 1
                }
            };
            local.indices[local.len] = index;
            local.len += 1;
        }
    }

    #[cold]
    fn put_back(&self, indices: &[u32]) {
        let _busy = this_thread::busy(); // for the lock
        let free = self.free.lock_unless_lost_with_room(|free| (&mut free.indices, indices.len()));
        if let Some(mut free) = free {
            free.indices.extend_from_slice(indices);
        }
    }

    /// Takes a slot for a new span. Returns it with the span's id, or `None` if 2^32 spans are open.
    pub(crate) fn take(&self) -> Option<(&Slot, Id)> {
        let index = with_local_free(LocalFree::pop).unwrap_or_else(|| {
            let mut own = LocalFree::NONE;
            own.pop() // the rest returns to the pool
        })?;
        let slot = match self.first.get(index as usize) {
            Some(slot) => slot,
            None => self.slot_on_later_page(index)?,
        };
        let id = u64::from(slot.count.begin()) << 32 | u64::from(index);
        Some((slot, Id::from_non_zero_u64(NonZeroU64::new(id + 1)?)))
    }

    /// Returns the slot. Makes its page if there is none yet.
    #[cold]
    fn slot_on_later_page(&self, index: u32) -> Option<&Slot> {
        let (page, at) = Self::page_and_offset(index);
        let page_of = self.pages.get(page)?;
        let slots = match page_of.get() {
            Some(slots) => slots,
            None => {
                let _busy = this_thread::busy(); // the allocator may record; also for the lock
                // Outside of the lock: if several threads make it at once, the first one's is used.
                let made = (0..FIRST_PAGE << page).map(|_| Slot::new()).collect();
                // Under the lock: no thread waits for a `set` by another thread, which a fork could lose.
                let free = self.free.lock_unless_lost()?;
                let unused = page_of.set(made);
                drop(free);
                drop(unused);
                page_of.get()?
            }
        };
        slots.get(at)
    }

    /// Returns the slot of the span with this id, if the span is open.
    #[inline]
    pub(crate) fn get(&self, id: &Id) -> Option<&Slot> {
        let number = id.into_u64() - 1;
        let index = number as u32;
        let slot = match self.first.get(index as usize) {
            Some(slot) => slot,
            None => {
                let (page, at) = Self::page_and_offset(index);
                self.pages.get(page)?.get()?.get(at)?
            }
        };
        slot.count.is_of((number >> 32) as u32).then_some(slot)
    }

    /// Adds an owner to the span.
    pub(crate) fn share(&self, id: &Id) {
        if let Some(slot) = self.get(id) {
            slot.count.share();
        }
    }

    /// Removes an owner from the span. The last one closes the span with `close` and frees its slot. Returns
    /// whether it was the last.
    pub(crate) fn release(&self, id: &Id, close: impl FnOnce(&Slot)) -> bool {
        let Some(slot) = self.get(id) else { return false };
        if !slot.count.release() {
            return false;
        }
        close(slot);
        slot.count.end();
        let index = (id.into_u64() - 1) as u32;
        if with_local_free(|local| local.push(index)).is_none() {
            self.put_back(&[index]);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_its_own_page_and_offset() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(Slots::page_and_offset(index), expected);
            expected = if expected.1 + 1 == FIRST_PAGE << expected.0 {
                (expected.0 + 1, 0)
            } else {
                (expected.0, expected.1 + 1)
            };
        }
        assert_eq!(Slots::page_and_offset(u32::MAX).0, PAGES);
    }

    #[test]
    fn the_id_of_a_closed_span_finds_no_slot() {
        let slots = &SLOTS;
        let (_, id) = slots.take().unwrap();
        slots.share(&id);
        assert!(!slots.release(&id, |_| {}) && slots.get(&id).is_some());
        assert!(slots.release(&id, |_| {}) && slots.get(&id).is_none());
        let (_, next) = slots.take().unwrap();
        assert_ne!(id, next);
        assert!(slots.get(&next).is_some() && !slots.release(&id, |_| {}));
        assert!(slots.get(&Id::from_u64(u64::MAX)).is_none());
    }
}
