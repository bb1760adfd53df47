//! A list that grows, in memory from the kernel.

#![allow(unsafe_code)] // memory of its own

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use hairline_formats::fxt::PutWords;
use hairline_formats::proto::{Growing, PutBytes, PutMessages, put_message};

use crate::on::base::lock::Grow;
use crate::on::base::memory::blocks;

/// A list, like the standard library's `Vec`.
pub(crate) struct List<T> {
    /// Dangling while `capacity` is 0.
    first: NonNull<T>,
    /// The first `len` entries are initialized.
    len: usize,
    capacity: usize,
}

/// A list of bytes, to which records are written.
pub(crate) type Bytes = List<u8>;

// SAFETY: it owns its entries, like a `Vec`.
unsafe impl<T: Send> Send for List<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for List<T> {}

impl<T> List<T> {
    /// Entries need no more than a block's alignment.
    const FITS: () = assert!(align_of::<T>() <= 16 && size_of::<T>() > 0);

    /// Creates an empty list, without memory.
    pub(crate) const fn new() -> Self {
        let () = Self::FITS;
        Self { first: NonNull::dangling(), len: 0, capacity: 0 }
    }

    /// Creates an empty list with room for so many entries.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let mut list = Self::new();
        list.reserve(capacity);
        list
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes room for so many entries more.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize) {
        if self.capacity - self.len < more {
            self.grow(more);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) {
        let wanted = self.len.saturating_add(more).max(2 * self.capacity);
        let (block, bytes) = blocks::allocate_or_abort(wanted.saturating_mul(size_of::<T>()));
        let first = block.cast::<T>();
        // SAFETY: the new block has room for more than the entries there are; it is no part of the old one.
        unsafe { first.copy_from_nonoverlapping(self.first, self.len) };
        self.free();
        (self.first, self.capacity) = (first, bytes / size_of::<T>());
    }

    /// Frees the memory, whose entries are moved or dropped.
    fn free(&mut self) {
        if self.capacity != 0 {
            // SAFETY: a block of `grow`.
            unsafe { blocks::free(self.first.cast()) };
            self.capacity = 0;
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        self.reserve(1);
        // SAFETY: there is room for one more.
        unsafe { self.first.add(self.len).write(entry) };
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: the last entry, which is not in the list any more.
        Some(unsafe { self.first.add(self.len).read() })
    }

    /// Removes the first entry, and moves the others up.
    pub(crate) fn shift(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: the first entry, which is not in the list any more, and then the others.
        unsafe {
            let first = self.first.read();
            self.first.copy_from(self.first.add(1), self.len);
            Some(first)
        }
    }

    /// Removes the first `count` entries, and moves the others up.
    pub(crate) fn remove_first(&mut self, count: usize) {
        let len = self.len;
        self[..count].iter_mut().for_each(|entry| {
            // SAFETY: the entry is dropped once: below it is overwritten, or is not in the list any more.
            unsafe { std::ptr::drop_in_place(entry) }
        });
        // SAFETY: moves the entries behind `count`, which are in the list.
        unsafe { self.first.copy_from(self.first.add(count), len - count) };
        self.len = len - count;
    }

    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        if !std::mem::needs_drop::<T>() {
            self.len = self.len.min(len); // no loop, also without optimisation
        }
        while self.len > len {
            self.len -= 1;
            // SAFETY: the last entry, which is not in the list any more.
            unsafe { self.first.add(self.len).drop_in_place() };
        }
    }

    /// Removes all entries, and keeps the memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }
}

impl<T> List<T> {
    /// Returns an empty list with the memory of this one, for entries of a type with other lifetimes.
    pub(crate) fn emptied<U>(mut self) -> List<U> {
        const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>()) };
        self.clear();
        let own = std::mem::ManuallyDrop::new(self);
        List { first: own.first.cast(), len: 0, capacity: own.capacity }
    }
}

impl<T: Copy> List<T> {
    #[inline]
    pub(crate) fn extend_from_slice(&mut self, entries: &[T]) {
        self.reserve(entries.len());
        // SAFETY: there is room, in memory of this list alone.
        unsafe {
            self.first.add(self.len).copy_from_nonoverlapping(NonNull::from(entries).cast(), entries.len());
        }
        self.len += entries.len();
    }

    /// Makes the list `len` long: cuts it, or appends `filler`.
    pub(crate) fn resize(&mut self, len: usize, filler: T) {
        self.truncate(len);
        self.reserve(len - self.len);
        for at in self.len..len {
            // SAFETY: there is room for so many entries.
            unsafe { self.first.add(at).write(filler) };
        }
        self.len = len;
    }
}

impl<T> Extend<T> for List<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut list = Self::new();
        list.extend(entries);
        list
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        self.clear();
        self.free();
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: so many entries are initialized.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for List<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the list is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Grow for List<T> {
    fn with_room(entries: usize) -> Self {
        Self::with_capacity(entries)
    }

    fn entries(&self) -> usize {
        self.len
    }

    #[inline]
    fn has_room(&self, more: usize) -> bool {
        self.capacity - self.len >= more
    }

    fn take_over(&mut self, smaller: &mut Self) {
        // SAFETY: there is room for the entries, which are then in this list only.
        unsafe { self.first.add(self.len).copy_from_nonoverlapping(smaller.first, smaller.len) };
        self.len += std::mem::take(&mut smaller.len);
    }
}

impl PutBytes for Bytes {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Growing for Bytes {
    fn cut(&mut self, len: usize) {
        self.truncate(len);
    }
}

impl PutMessages for Bytes {
    #[inline]
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        put_message(self, field, write);
    }
}

impl PutWords for Bytes {
    #[inline]
    fn word(&mut self, word: u64) {
        self.extend_from_slice(&word.to_le_bytes());
    }

    #[inline]
    fn stream(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
        self.extend_from_slice(&[0; 8][..bytes.len().next_multiple_of(8) - bytes.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_does_what_a_vec_does() {
        let (mut list, mut vec) = (List::new(), Vec::new());
        for n in 0..3000_u32 {
            list.push(n);
            vec.push(n);
            if n % 7 == 0 {
                assert_eq!(list.pop(), vec.pop());
                list.extend_from_slice(&[n; 9]);
                vec.extend_from_slice(&[n; 9]);
            }
        }
        assert_eq!(&list[..], vec);
        assert_eq!(list.shift(), Some(vec.remove(0)));
        list.remove_first(11);
        vec.drain(..11);
        list.resize(20_000, 7);
        vec.resize(20_000, 7);
        list.truncate(19_000);
        vec.truncate(19_000);
        assert_eq!(&list[..], vec);
        assert_eq!((List::<u32>::new().shift(), List::<u32>::new().pop()), (None, None));
        let mut other = List::with_room(list.len());
        other.take_over(&mut list);
        assert_eq!((&other[..], list.len()), (&vec[..], 0));
    }

    #[test]
    fn every_entry_is_dropped_once() {
        let counted = std::rc::Rc::new(());
        let mut list = List::new();
        list.extend(std::iter::repeat_n(counted.clone(), 100));
        list.remove_first(10);
        list.truncate(50);
        drop(list.pop());
        assert_eq!(std::rc::Rc::strong_count(&counted), 1 + 49);
        drop(list);
        assert_eq!(std::rc::Rc::strong_count(&counted), 1);
    }
}
