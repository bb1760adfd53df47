//! The spans of all subscribers and layers, by their ids.
//!
//! The slot of any id, also of a closed span, can be read: `pages.rs`. Its generation shows whether the slot
//! is still that span's. Each thread has some free slots of its own, those of the spans that it closed last,
//! so that making and closing a span takes no lock. All others are in the pool: `pool.rs`.

mod count;
mod pages;
mod pool;
mod slot;

use std::cell::RefCell;
use std::num::NonZeroU64;

use tracing_core::span::Id;

use crate::on::bridges::tracing::slots::pages::Pages;
use crate::on::bridges::tracing::slots::pool::{KEEPING, MOST, Pool};
pub(crate) use crate::on::bridges::tracing::slots::slot::Slot;

/// Number of free slots that a thread takes from the pool, or returns to it, at a time. A thread has at most
/// twice as many.
const BATCH: usize = MOST / 2;

pub(crate) static SLOTS: Slots = Slots { pages: Pages::new(), pool: Pool::new() };

#[derive(Debug)]
pub(crate) struct Slots {
    pages: Pages,
    pool: Pool,
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

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        if self.len == 0 {
            SLOTS.refill(self);
        }
        self.len = self.len.checked_sub(1)?;
        self.indices.get(self.len).copied()
    }

    /// Pops one without those of a thread. The rest returns to the pool.
    #[cold]
    fn pop_of_none() -> Option<u32> {
        let mut none = Self::NONE;
        none.pop()
    }

    #[inline]
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
    #[cold]
    fn refill(&'static self, local: &mut LocalFree) {
        local.len += self.pool.take(&self.pages, &mut local.indices[local.len..BATCH]);
    }

    #[cold]
    fn put_back(&'static self, indices: &[u32]) {
        self.pool.put_back(&self.pages, indices);
    }

    /// Takes a slot for a new span. Returns it with the span's id, or `None` if 2^32 spans are open, or if the
    /// system has no more memory.
    #[inline]
    pub(crate) fn take(&'static self) -> Option<(&'static Slot, Id)> {
        let index = with_local_free(LocalFree::pop).unwrap_or_else(LocalFree::pop_of_none)?;
        let slot = self.pages.get_or_map(index)?;
        let id = u64::from(slot.count.begin()) << 32 | u64::from(index);
        Some((slot, Id::from_non_zero_u64(NonZeroU64::new(id + 1)?)))
    }

    /// Returns the slot of the span with this id, if the span is open.
    #[inline]
    pub(crate) fn get(&'static self, id: &Id) -> Option<&'static Slot> {
        let number = id.into_u64() - 1;
        let slot = self.pages.get(number as u32)?;
        slot.count.is_of((number >> 32) as u32).then_some(slot)
    }

    /// Returns the slot with this index, which was in use.
    #[cfg(feature = "tracing")]
    pub(crate) fn at(&'static self, index: u32) -> Option<&'static Slot> {
        self.pages.get(index)
    }

    /// Adds an owner to the span.
    pub(crate) fn share(&'static self, id: &Id) {
        if let Some(slot) = self.get(id) {
            slot.count.share();
        }
    }

    /// Removes an owner from the span. The last one closes the span with `close` and frees its slot. Returns
    /// whether it was the last.
    pub(crate) fn release(&'static self, id: &Id, close: impl FnOnce(&Slot)) -> bool {
        let Some(slot) = self.get(id) else { return false };
        if !slot.count.release() {
            return false;
        }
        close(slot);
        self.free((id.into_u64() - 1) as u32, slot);
        true
    }

    /// Frees a slot, whose span is closed.
    #[inline]
    pub(crate) fn free(&'static self, index: u32, slot: &Slot) {
        if index >= KEEPING {
            slot.span.return_memory();
        }
        slot.count.end();
        if with_local_free(|local| local.push(index)).is_none() {
            self.put_back(&[index]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_ids_of_a_burst_find_no_slot_after_its_memory_was_given_back() {
        let slots = &SLOTS;
        let burst = || (0..20_000).map(|_| slots.take().unwrap().1).collect::<Vec<_>>();
        let mut before = std::collections::HashSet::new();
        for _ in 0..3 {
            let ids = burst();
            assert!(ids.iter().all(|id| slots.get(id).is_some() && before.insert(id.into_u64())));
            ids.iter().for_each(|id| assert!(slots.release(id, |_| {})));
            assert!(ids.iter().all(|id| slots.get(id).is_none()));
        }
    }
}
