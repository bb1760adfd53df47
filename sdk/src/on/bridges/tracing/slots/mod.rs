//! The spans of all subscribers, by their ids.
//!
//! Slots are made in pages, each twice as large as the one before and the first of them static, and never given back, so that an id of any span, closed
//! ones too, can be looked at; its generation tells whether the slot is still that span's. Each thread has some free slots at
//! hand, those of the spans it closed last, so that making and closing a span takes no lock.

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

/// Slots of the first page.
const FIRST: usize = 256;
const PAGES: usize = 24; // 2^32 slots in all
/// Free slots that a thread takes from the pool, or gives back, at a time. Twice as many are at hand at most.
const HANDFUL: usize = 32;

pub(crate) static SLOTS: Slots = Slots::new();

#[derive(Debug)]
pub(crate) struct Slots {
    /// Found without a pointer to follow.
    first: [Slot; FIRST],
    /// All pages; the first is not made.
    pages: [OnceLock<Box<[Slot]>>; PAGES],
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    indices: Vec<u32>,
    /// Slots that were ever used.
    used: u32,
}

/// A place for a span.
#[derive(Debug)]
#[repr(align(64))] // no thread's span shares its cache lines with another's
pub(crate) struct Slot {
    count: Count,
    pub(crate) parent: AtomicU64,
    pub(crate) span: Span,
}

// Two cache lines. Mutexes of other platforms are larger.
#[cfg(target_os = "linux")]
const _: () = assert!(size_of::<Slot>() == 128);

impl Slot {
    const fn new() -> Self {
        Self { count: Count::new(), parent: AtomicU64::new(0), span: Span::new() }
    }
}

/// Free slots of a thread.
struct AtHand {
    indices: [u32; 2 * HANDFUL],
    len: usize,
}

thread_local! {
    static AT_HAND: RefCell<AtHand> = const { RefCell::new(AtHand { indices: [0; 2 * HANDFUL], len: 0 }) };
}

impl AtHand {
    fn pop(&mut self) -> Option<u32> {
        if self.len == 0 {
            SLOTS.refill(self);
        }
        self.len = self.len.checked_sub(1)?;
        self.indices.get(self.len).copied()
    }

    fn push(&mut self, index: u32) {
        if self.len == self.indices.len() {
            self.len -= HANDFUL;
            SLOTS.give_back(&self.indices[self.len..]);
        }
        self.indices[self.len] = index;
        self.len += 1;
    }
}

impl Drop for AtHand {
    fn drop(&mut self) {
        SLOTS.give_back(&self.indices[..self.len]);
    }
}

/// What the thread has at hand; None at its end, or from inside of this.
fn at_hand<R>(f: impl FnOnce(&mut AtHand) -> R) -> Option<R> {
    AT_HAND
        .try_with(|at_hand| at_hand.try_borrow_mut().ok().map(|mut at_hand| f(&mut at_hand)))
        .ok()
        .flatten()
}

impl Slots {
    const fn new() -> Self {
        let free = Mutex::new(Free { indices: Vec::new(), used: 0 });
        Self { first: [const { Slot::new() }; FIRST], pages: [const { OnceLock::new() }; PAGES], free }
    }

    /// Page and place of the slot with this index.
    #[inline]
    fn place(index: u32) -> (usize, usize) {
        let n = index as usize / FIRST + 1;
        let page = n.ilog2() as usize;
        (page, index as usize - FIRST * ((1 << page) - 1))
    }

    #[cold]
    fn refill(&self, at_hand: &mut AtHand) {
        let _busy = this_thread::busy(); // the lock
        let Some(mut free) = self.free.lock_unless_lost() else { return };
        while at_hand.len < HANDFUL {
            let index = match free.indices.pop() {
                Some(index) => index,
                None if free.used == u32::MAX => return,
                None => {
                    free.used += 1;
                    free.used - 1
                }
            };
            at_hand.indices[at_hand.len] = index;
            at_hand.len += 1;
        }
    }

    #[cold]
    fn give_back(&self, indices: &[u32]) {
        let _busy = this_thread::busy(); // the lock
        let free = self.free.lock_unless_lost_with_room(|free| (&mut free.indices, indices.len()));
        if let Some(mut free) = free {
            free.indices.extend_from_slice(indices);
        }
    }

    /// A slot for a new span, and its id. None when there are 2^32 already.
    pub(crate) fn take(&self) -> Option<(&Slot, Id)> {
        let index = at_hand(AtHand::pop).unwrap_or_else(|| {
            let mut own = AtHand { indices: [0; 2 * HANDFUL], len: 0 };
            own.pop() // the rest goes back
        })?;
        let slot = match self.first.get(index as usize) {
            Some(slot) => slot,
            None => self.made(index)?,
        };
        let id = u64::from(slot.count.begin()) << 32 | u64::from(index);
        Some((slot, Id::from_non_zero_u64(NonZeroU64::new(id + 1)?)))
    }

    /// The slot, on a page that is made if there is none yet.
    #[cold]
    fn made(&self, index: u32) -> Option<&Slot> {
        let (page, at) = Self::place(index);
        let page_of = self.pages.get(page)?;
        let slots = match page_of.get() {
            Some(slots) => slots,
            None => {
                let _busy = this_thread::busy(); // the allocator may record, and the lock
                // Outside of the lock: of several threads that make it at once, the first counts.
                let made = (0..FIRST << page).map(|_| Slot::new()).collect();
                // Under the lock: no thread waits for a `set` by another thread, which a fork could lose.
                let free = self.free.lock_unless_lost()?;
                let superfluous = page_of.set(made);
                drop(free);
                drop(superfluous);
                page_of.get()?
            }
        };
        slots.get(at)
    }

    /// The slot of the span with this id, if that is not closed.
    #[inline]
    pub(crate) fn get(&self, id: &Id) -> Option<&Slot> {
        let number = id.into_u64() - 1;
        let index = number as u32;
        let slot = match self.first.get(index as usize) {
            Some(slot) => slot,
            None => {
                let (page, at) = Self::place(index);
                self.pages.get(page)?.get()?.get(at)?
            }
        };
        slot.count.is_of((number >> 32) as u32).then_some(slot)
    }

    /// One more who has the span.
    pub(crate) fn share(&self, id: &Id) {
        if let Some(slot) = self.get(id) {
            slot.count.share();
        }
    }

    /// One less. When it was the last, the span is closed by `close` and its slot free.
    pub(crate) fn drop(&self, id: &Id, close: impl FnOnce(&Slot)) -> bool {
        let Some(slot) = self.get(id) else { return false };
        if !slot.count.release() {
            return false;
        }
        close(slot);
        slot.count.end();
        let index = (id.into_u64() - 1) as u32;
        if at_hand(|at_hand| at_hand.push(index)).is_none() {
            self.give_back(&[index]);
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
        let slots = &SLOTS;
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
