//! The memory of slots: pages from the kernel, each twice as large as the one before. The first one is
//! static.
//!
//! A page is never unmapped, so a slot of any index that was in use can be read. But the kernel takes back
//! the memory of a [`GROUP`] of free slots, which are then zeroed.

#![allow(unsafe_code)] // memory from the kernel

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use hairline_shm::{map_memory, release_memory, unmap_memory};

use crate::on::bridges::tracing::slots::slot::Slot;

/// Number of slots of the first page.
const FIRST_PAGE: usize = 256;
const PAGES: usize = 24; // 2^32 slots in all

/// Number of slots whose memory is given back at a time: one page of the system, where that has 4 KiB.
pub(super) const GROUP: u32 = 32;

#[derive(Debug)]
pub(super) struct Pages {
    /// The first page: found without following a pointer.
    first: [Slot; FIRST_PAGE],
    /// All pages. The first entry stays empty.
    later: [AtomicPtr<Slot>; PAGES],
}

impl Pages {
    pub(super) const fn new() -> Self {
        Self {
            first: [const { Slot::new() }; FIRST_PAGE],
            later: [const { AtomicPtr::new(std::ptr::null_mut()) }; PAGES],
        }
    }

    /// Returns the page of the slot with this index, and its offset there.
    #[inline]
    fn page_and_offset(index: u32) -> (usize, usize) {
        let n = index as usize / FIRST_PAGE + 1;
        let page = n.ilog2() as usize;
        (page, index as usize - FIRST_PAGE * ((1 << page) - 1))
    }

    /// Returns the slot with this index, if it was ever in use.
    #[inline]
    pub(super) fn get(&'static self, index: u32) -> Option<&'static Slot> {
        match self.first.get(index as usize) {
            Some(slot) => Some(slot),
            None => self.get_later(index),
        }
    }

    #[inline]
    fn get_later(&'static self, index: u32) -> Option<&'static Slot> {
        let (page, at) = Self::page_and_offset(index);
        // Acquire pairs with the Release in `map`.
        let slots = NonNull::new(self.later.get(page)?.load(Ordering::Acquire))?;
        // SAFETY: the page has the slot, and is never unmapped. Its memory was zeroed by the kernel, and zeros
        // are a slot without a span: all of it is atomics, locks and pointers, as a test checks.
        Some(unsafe { slots.add(at).as_ref() })
    }

    /// Returns the slot with this index, and makes its page if there is none yet. `None` if the system has no
    /// more memory.
    pub(super) fn get_or_map(&'static self, index: u32) -> Option<&'static Slot> {
        self.get(index).or_else(|| {
            self.map(Self::page_and_offset(index).0)?;
            self.get_later(index)
        })
    }

    #[cold]
    fn map(&self, page: usize) -> Option<()> {
        let bytes = (FIRST_PAGE << page) * size_of::<Slot>();
        let memory = map_memory(bytes)?;
        let of_page = self.later.get(page)?;
        let slots = memory.as_ptr().cast();
        if of_page
            .compare_exchange(std::ptr::null_mut(), slots, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            // SAFETY: mapped just now, and not shared: another thread was first.
            unsafe { unmap_memory(memory, bytes) };
        }
        Some(())
    }

    /// Gives the memory of a group back, whose slots are all the caller's. Returns false if they are as before.
    pub(super) fn release(&'static self, group: u32) -> bool {
        const BYTES: usize = GROUP as usize * size_of::<Slot>();
        let first = group * GROUP;
        if (first as usize) < FIRST_PAGE {
            return false;
        }
        // SAFETY: slots of a later page, in mapped memory. All of them are free: who still has the id of a closed
        // span reads the generation alone, which is atomic, and no id has the generation 0.
        self.get(first).is_some_and(|slot| unsafe { release_memory(NonNull::from(slot).cast(), BYTES) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_its_own_page_and_offset() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(Pages::page_and_offset(index), expected);
            expected = if expected.1 + 1 == FIRST_PAGE << expected.0 {
                (expected.0 + 1, 0)
            } else {
                (expected.0, expected.1 + 1)
            };
        }
        assert_eq!(Pages::page_and_offset(u32::MAX).0, PAGES);
    }

    #[test]
    fn zeroed_memory_is_a_slot_without_a_span() {
        // SAFETY: that is what is tested here, as far as a value can tell.
        let zeroed: Slot = unsafe { std::mem::zeroed() };
        assert_eq!(format!("{zeroed:?}"), format!("{:?}", Slot::new()));
        assert_eq!(zeroed.count.begin(), 1);
    }
}
