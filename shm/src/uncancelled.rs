//! Calls of the system that a pending `pthread_cancel` does not end.

use std::marker::PhantomData;

use crate::platform;

/// Defers a `pthread_cancel` of this thread until it is dropped.
///
/// Many calls of the C library are cancellation points (`open`, `write`, `getrandom`, `nanosleep`). There a
/// thread with a pending cancel is unwound. In the middle of an event that would lose the event, and leave
/// this crate's data half done. With the guard, the thread goes on to the program's next cancellation point.
///
/// ```
/// use hairline_shm::Uncancelled;
///
/// let _uncancelled = Uncancelled::new();
/// std::thread::sleep(std::time::Duration::from_millis(1)); // no cancellation point here
/// ```
#[derive(Debug)]
pub struct Uncancelled {
    before: i32,
    /// It restores the state of the thread that made it.
    thread: PhantomData<*const ()>,
}

impl Uncancelled {
    /// Defers cancels of the calling thread.
    #[must_use]
    #[allow(clippy::new_without_default)] // it has an effect
    pub fn new() -> Self {
        Self { before: platform::defer_cancel(), thread: PhantomData }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        platform::restore_cancel(self.before);
    }
}
