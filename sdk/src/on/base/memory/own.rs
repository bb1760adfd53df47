//! A value with one owner, in memory from the kernel.

#![allow(unsafe_code)] // memory of its own

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::on::base::memory::blocks;

/// A value in memory of its own, like the standard library's `Box`.
pub(crate) struct Own<T>(NonNull<T>);

// SAFETY: it owns its value, like a `Box`.
unsafe impl<T: Send> Send for Own<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Own<T> {}

impl<T> Own<T> {
    /// A value needs no more than a block's alignment.
    const FITS: () = assert!(align_of::<T>() <= 16);

    /// Moves a value into memory of its own.
    pub(crate) fn new(value: T) -> Self {
        let () = Self::FITS;
        let (block, _) = blocks::allocate_or_abort(size_of::<T>());
        let place = block.cast::<T>();
        // SAFETY: the block has room for the value.
        unsafe { place.write(value) };
        Self(place)
    }
}

impl<T> Own<T> {
    /// Returns the value, and frees its memory.
    pub(crate) fn into_inner(self) -> T {
        let place = std::mem::ManuallyDrop::new(self).0;
        // SAFETY: a value in a block of `new`, which nobody uses any more.
        unsafe {
            let value = place.read();
            blocks::free(place.cast());
            value
        }
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        // SAFETY: a value in a block of `new`, which nobody uses any more.
        unsafe {
            self.0.drop_in_place();
            blocks::free(self.0.cast());
        }
    }
}

impl<T> Deref for Own<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a value in a block of `new`.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Own<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and it is borrowed mutably.
        unsafe { self.0.as_mut() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Own<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_dropped_once_with_its_owner() {
        let counted = std::rc::Rc::new(());
        let mut own = Own::new((counted.clone(), 1));
        own.1 += 1;
        assert_eq!(Own::new(counted.clone()).into_inner(), counted);
        assert_eq!((own.1, std::rc::Rc::strong_count(&counted)), (2, 2));
        drop(own);
        assert_eq!(std::rc::Rc::strong_count(&counted), 1);
    }
}
