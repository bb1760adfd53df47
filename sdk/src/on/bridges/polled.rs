//! The innermost recorded future that a thread polls.

#![allow(unsafe_code)] // a thread's current interval is a pointer into the future that it polls

use std::cell::Cell;
use std::ptr::NonNull;

use hairline_formats::Value;

use crate::on::event::flow::Flow;
use crate::on::thread::end_arguments::EndArguments;
use crate::on::thread::guards::interval::AsyncScope;

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current(std::ptr::null_mut())) };
}

/// The innermost recorded future that a thread polls. The lowest bit of the address tells whether it polls
/// one without a recorded life inside of that. One word: each poll stores it twice.
#[derive(Clone, Copy, Debug)]
struct Current(*mut Recorded);

impl Current {
    /// The same, inside of a future without a recorded life: an argument in it is not one of the future
    /// around it.
    #[inline]
    fn without(self) -> Self {
        Self(self.0.map_addr(|address| address | 1))
    }

    /// Calls `poll` while this is the thread's current one.
    #[inline]
    fn enter<R>(self, poll: impl FnOnce() -> R) -> R {
        let _leave = Leave(CURRENT.replace(self));
        poll()
    }

    fn recorded(self) -> Option<NonNull<Recorded>> {
        NonNull::new(self.0.map_addr(|address| address & !1))
    }
}

/// Calls `poll` inside of a recorded future.
#[inline]
pub(crate) fn poll_in<R>(recorded: &mut Recorded, poll: impl FnOnce() -> R) -> R {
    Current(recorded).enter(poll)
}

/// Calls `poll` inside of a future that is not recorded.
#[inline]
pub(crate) fn poll_unrecorded<R>(poll: impl FnOnce() -> R) -> R {
    let current = CURRENT.get();
    if current.0.is_null() { poll() } else { current.without().enter(poll) }
}

/// A recorded task while the hooks of a runtime poll it.
#[cfg(feature = "sync")]
#[derive(Debug)]
pub(crate) struct Entered {
    /// From `Box::into_raw`.
    recorded: NonNull<Recorded>,
    before: Current,
}

#[cfg(feature = "sync")]
impl Entered {
    /// Makes a task the thread's current one.
    pub(crate) fn new(recorded: Box<Recorded>) -> Self {
        let recorded = NonNull::from(Box::leak(recorded));
        Self { recorded, before: CURRENT.replace(Current(recorded.as_ptr())) }
    }

    /// Returns the task, and makes the one before it the current one. If the task is not the innermost one, a
    /// runtime has left out a hook: the task is then never freed, since another one may lead back to it.
    pub(crate) fn leave(self) -> Option<Box<Recorded>> {
        if CURRENT.get().recorded() != Some(self.recorded) {
            return None;
        }
        CURRENT.set(self.before);
        // SAFETY: The pointer is that of a `Box`, which nothing else frees. `CURRENT` had it, and no `before` of
        // another poll has: one that began later has ended, or `CURRENT` would have another pointer.
        Some(unsafe { Box::from_raw(self.recorded.as_ptr()) })
    }
}

/// Calls `f` with the interval of the innermost recorded future, and the number of spans of `tracing` that
/// the thread had entered when the poll of that began.
pub(crate) fn with_interval<R>(f: impl FnOnce(Option<(&AsyncScope, usize)>) -> R) -> R {
    // SAFETY: `poll_in` borrows what is recorded mutably until its `poll` returns, and `Leave` removes the
    // pointer before that. The caller is called by this `poll`, on this thread. Nobody changes the interval
    // or the number meanwhile. `Entered` owns what is recorded until `leave`, which removes the pointer.
    let polled =
        |recorded: NonNull<Recorded>| unsafe { (&(*recorded.as_ptr()).interval, (*recorded.as_ptr()).spans) };
    f(CURRENT.get().recorded().map(polled))
}

/// Whether the innermost future that the thread polls is a recorded one.
pub(crate) fn takes_arguments() -> bool {
    let current = CURRENT.get();
    !current.0.is_null() && current.0 != current.without().0
}

/// Adds an argument to the innermost recorded future. Its value runs no code of the program. The program's
/// allocator may add one meanwhile.
pub(crate) fn add(key: &'static str, value: &Value<'_>) {
    let Some(recorded) = CURRENT.get().recorded() else { return };
    // SAFETY: as in `with_interval`. References to the arguments are made here alone, and end at once.
    let replace = |with| std::mem::replace(unsafe { &mut (*recorded.as_ptr()).arguments }, with);
    let mut arguments = replace(None);
    EndArguments::add_to(&mut arguments, key, value);
    drop(replace(arguments));
}

/// Ends a poll, also by a panic.
struct Leave(Current);

impl Drop for Leave {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// The recorded life of a future that is not over.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) interval: AsyncScope,
    /// The flow of its polls.
    pub(crate) flow: Flow,
    /// The interval's arguments. Not in the interval, which others may look at while one is added.
    pub(crate) arguments: Option<Box<EndArguments>>,
    /// The number of spans of `tracing` that the thread which polls it had entered before.
    pub(crate) spans: usize,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.interval.arguments = self.arguments.take();
    }
}
