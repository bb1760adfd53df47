//! Links of a list that is extended under a lock and walked without one. Elements are never removed.

use crate::on::base::sync::{AtomicPtr, Ordering, const_unless_loom};

/// A pointer to the first element of the list, or to the next one.
#[derive(Debug)]
pub(crate) struct Link<T>(AtomicPtr<T>);

impl<T> Link<T> {
    const_unless_loom! {
        /// Creates a link that ends the list.
        pub(crate) fn end() -> Link<T> {
            Link(AtomicPtr::new(core::ptr::null_mut()))
        }
    }

    /// Returns the element that the link points to. Acquire pairs with the Release in [`Link::publish`]: a
    /// walk that finds an element sees all that was stored into it before, including its own link.
    pub(crate) fn get(&self) -> *mut T {
        self.0.load(Ordering::Acquire)
    }

    /// Makes the element the first of the list. The caller holds the lock and calls this on the head of the
    /// list; `link` is the link in the element.
    pub(crate) fn publish(&self, element: *mut T, link: &Link<T>) {
        // Relaxed: the lock orders the head's last store, and the store below publishes the link.
        link.0.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
        self.0.store(element, Ordering::Release);
    }
}
