//! A word for whose changes threads wait, without a lock.
//!
//! ```text
//! thread                                        another thread
//! value = load, nothing is there for it
//! sleep while the word is still `value`  <───   changes the word, wakes all
//! load again
//! ```
//!
//! No change is missed: the system compares the word with `value` and puts the thread to sleep in one step,
//! so a change comes before that step, which then does not sleep, or after it, and then its wake-up arrives.
//!
//! A signal handler may fork while its thread sleeps here. In the child nobody changes the word. That is why
//! there is no lock that another thread may have held at the fork, and why each sleep ends by itself: the
//! caller then finds out that it is in the child.

use std::time::Duration;

use crate::sync::{Asleep, AtomicU32, Ordering};

/// A word for whose changes threads wait.
///
/// ```
/// use std::time::Duration;
///
/// use hairline_shm::Awaited;
///
/// let turn = Awaited::new(0);
/// std::thread::scope(|threads| {
///     threads.spawn(|| turn.change(|turn| turn + 1));
///     while turn.load() == 0 {
///         turn.sleep_while(0, Duration::from_millis(20));
///     }
/// });
/// assert_eq!(turn.load(), 1);
/// ```
#[derive(Debug)]
pub struct Awaited {
    word: AtomicU32,
    asleep: Asleep,
}

impl Awaited {
    /// Makes a word with this value.
    #[must_use]
    pub fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value), asleep: Asleep::new() }
    }

    /// Returns the value. What its writer did before the change is visible then.
    #[must_use]
    pub fn load(&self) -> u32 {
        self.word.load(Ordering::Acquire) // pairs with the Release of `try_change`
    }

    /// Replaces `before` by `after` and wakes all threads, or returns `false` if the value is not `before`.
    pub fn try_change(&self, before: u32, after: u32) -> bool {
        // Release pairs with the Acquire of `load`.
        let is_changed =
            self.word.compare_exchange(before, after, Ordering::Release, Ordering::Relaxed).is_ok();
        if is_changed {
            self.asleep.wake_all(&self.word);
        }
        is_changed
    }

    /// Changes the value, and wakes all threads.
    pub fn change(&self, change: impl Fn(u32) -> u32) {
        loop {
            let before = self.load();
            if self.try_change(before, change(before)) {
                return;
            }
        }
    }

    /// Sleeps while the word has this value, for `longest` at most. May return earlier. Takes no lock.
    pub fn sleep_while(&self, value: u32, longest: Duration) {
        self.asleep.sleep_while(&self.word, value, longest);
    }
}
