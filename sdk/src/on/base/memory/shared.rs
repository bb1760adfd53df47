//! A text with several owners, in memory from the kernel.

#![allow(unsafe_code)] // memory of its own

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use crate::on::base::memory::blocks;

/// A text, like the standard library's `Arc<str>`. A clone allocates nothing.
pub(crate) struct SharedText(NonNull<Head>);

/// In front of the text.
struct Head {
    owners: AtomicUsize,
    len: usize,
}

// SAFETY: the text is never changed, and the last owner frees it.
unsafe impl Send for SharedText {}
// SAFETY: as above.
unsafe impl Sync for SharedText {}

impl SharedText {
    fn head(&self) -> &Head {
        // SAFETY: a block of `from`, which this owner keeps.
        unsafe { self.0.as_ref() }
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        let (block, _) = blocks::allocate_or_abort(size_of::<Head>() + text.len());
        let head = block.cast::<Head>();
        // SAFETY: the block has room for the head and the text behind it.
        unsafe {
            head.write(Head { owners: AtomicUsize::new(1), len: text.len() });
            head.add(1).cast::<u8>().copy_from_nonoverlapping(NonNull::from(text).cast(), text.len());
        }
        Self(head)
    }
}

impl Clone for SharedText {
    fn clone(&self) -> Self {
        self.head().owners.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for SharedText {
    fn drop(&mut self) {
        // Release pairs with the fence of the last owner: all uses are before it is freed.
        if self.head().owners.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: this was the last owner.
            unsafe { blocks::free(self.0.cast()) };
        }
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        // SAFETY: `from` has written a whole `str` of this length behind the head.
        unsafe {
            let bytes = self.0.add(1).cast::<u8>().as_ptr();
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(bytes, self.head().len))
        }
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_outlives_all_but_its_last_owner() {
        let text = SharedText::from("main");
        let clones: Vec<_> = (0..100).map(|_| text.clone()).collect();
        drop(text);
        assert!(clones.iter().all(|clone| &**clone == "main"));
        assert_eq!(&*SharedText::from(""), "");
    }
}
