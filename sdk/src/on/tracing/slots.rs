//! The spans of a subscriber, by their ids.
//!
//! Slots are made in pages, each twice as large as the one before, and never given back, so that an id of any span, closed
//! ones too, can be looked at; its generation tells whether the slot is still that span's.

use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tracing_core::span::Id;

use super::super::lock::Mutex;
use super::span::Span;

/// Slots of the first page.
const FIRST: usize = 64;
const PAGES: usize = 26; // 2^32 slots in all

#[derive(Debug)]
pub(super) struct Slots {
    pages: [OnceLock<Box<[Slot]>>; PAGES],
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    indices: Vec<u32>,
    /// Slots that were ever used.
    used: u32,
}

/// A place for a span.
#[derive(Debug, Default)]
pub(super) struct Slot {
    generation: AtomicU32,
    references: AtomicU32,
    pub(super) parent: AtomicU64,
    pub(super) span: Span,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self { pages: [const { OnceLock::new() }; PAGES], free: Mutex::default() }
    }

    /// Page and place of the slot with this index.
    fn place(index: u32) -> (usize, usize) {
        let n = index as usize / FIRST + 1;
        let page = n.ilog2() as usize;
        (page, index as usize - FIRST * ((1 << page) - 1))
    }

    /// A slot for a new span, and its id. None when there are 2^32 already, or the lock is lost to a fork.
    pub(super) fn take(&self) -> Option<(&Slot, Id)> {
        let mut free = self.free.lock_unless_lost()?;
        let index = match free.indices.pop() {
            Some(index) => index,
            None => {
                let index = free.used;
                free.used = free.used.checked_add(1)?;
                index
            }
        };
        let (page, at) = Self::place(index);
        // Under the lock: nobody waits for a page that another thread is making, which a fork could lose.
        let slots =
            self.pages.get(page)?.get_or_init(|| (0..FIRST << page).map(|_| Slot::default()).collect());
        drop(free);
        let slot = slots.get(at)?;
        slot.references.store(1, Ordering::Relaxed);
        let generation = slot.generation.load(Ordering::Relaxed);
        let id = u64::from(generation) << 32 | u64::from(index);
        Some((slot, Id::from_non_zero_u64(NonZeroU64::new(id + 1)?)))
    }

    /// The slot of the span with this id, if that is not closed.
    #[inline]
    pub(super) fn get(&self, id: &Id) -> Option<&Slot> {
        let number = id.into_u64() - 1;
        let (page, at) = Self::place(number as u32);
        let slot = self.pages.get(page)?.get()?.get(at)?;
        (slot.generation.load(Ordering::Acquire) == (number >> 32) as u32).then_some(slot)
    }

    /// One more who has the span.
    pub(super) fn share(&self, id: &Id) {
        if let Some(slot) = self.get(id) {
            slot.references.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One less. When it was the last, the span is closed by `close` and its slot free.
    pub(super) fn drop(&self, id: &Id, close: impl FnOnce(&Slot)) -> bool {
        let Some(slot) = self.get(id) else { return false };
        // As with an Arc: who was not the last says with Release what it has done, who is sees it.
        if slot.references.fetch_sub(1, Ordering::AcqRel) != 1 {
            return false;
        }
        close(slot);
        slot.generation.fetch_add(1, Ordering::Release);
        if let Some(mut free) = self.free.lock_unless_lost() {
            free.indices.push((id.into_u64() - 1) as u32);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_place_of_its_own() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(Slots::place(index), expected);
            expected = if expected.1 + 1 == FIRST << expected.0 {
                (expected.0 + 1, 0)
            } else {
                (expected.0, expected.1 + 1)
            };
        }
        assert_eq!(Slots::place(u32::MAX).0, PAGES);
    }

    #[test]
    fn the_id_of_a_closed_span_means_none() {
        let slots = Slots::new();
        let (_, id) = slots.take().unwrap();
        slots.share(&id);
        assert!(!slots.drop(&id, |_| {}) && slots.get(&id).is_some());
        assert!(slots.drop(&id, |_| {}) && slots.get(&id).is_none());
        let (_, next) = slots.take().unwrap();
        assert_ne!(id, next);
        assert!(slots.get(&next).is_some() && !slots.drop(&id, |_| {}));
        assert!(slots.get(&Id::from_u64(u64::MAX)).is_none());
    }
}
