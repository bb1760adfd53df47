//! The links of a list that is pushed to under a lock and walked without one. Nothing leaves the list.

use crate::on::base::sync::{AtomicPtr, Ordering, const_unless_loom};

/// A pointer to the first element, or to the next.
#[derive(Debug)]
pub(crate) struct Link<T>(AtomicPtr<T>);

impl<T> Link<T> {
    const_unless_loom! {
        pub(crate) fn end() -> Link<T> {
            Link(AtomicPtr::new(core::ptr::null_mut()))
        }
    }

    /// Acquire pairs with the Release in [`Link::publish`]: a walk that finds an element sees what was stored
    /// into it before, its own link too.
    pub(crate) fn get(&self) -> *mut T {
        self.0.load(Ordering::Acquire)
    }

    /// Makes the element the first of the list. Call it on the list's head with the lock held; `link` is the
    /// element's own.
    pub(crate) fn publish(&self, element: *mut T, link: &Link<T>) {
        // Relaxed: the lock orders the head's last store, and the store below publishes the link.
        link.0.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
        self.0.store(element, Ordering::Release);
    }
}
