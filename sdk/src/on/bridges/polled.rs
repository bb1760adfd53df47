//! The innermost recorded future that a thread polls.

#![allow(unsafe_code)] // a thread's current interval is a pointer into the future that it polls

use std::cell::Cell;
#[cfg(feature = "sync")]
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
#[cfg(feature = "sync")]
use std::sync::Arc;

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

/// What is recorded of a task that a runtime's hooks poll. The hook after a poll may come later than the one
/// before the next poll, on another thread: each of the polls has an owner.
#[cfg(feature = "sync")]
#[derive(Debug)]
pub(crate) struct Shared(NonNull<Recorded>); // from a `Box`

// SAFETY: `Recorded` may be sent. `Entered::new` and the poll that follows it change it, one poll after the
// other, which the caller of `Entered::new` grants; all others look at the interval, which is `Sync`.
#[cfg(feature = "sync")]
unsafe impl Send for Shared {}
// SAFETY: as above.
#[cfg(feature = "sync")]
unsafe impl Sync for Shared {}

#[cfg(feature = "sync")]
impl Shared {
    pub(crate) fn new(recorded: Recorded) -> Self {
        Self(NonNull::from(Box::leak(Box::new(recorded))))
    }

    pub(crate) fn interval(&self) -> &AsyncScope {
        // SAFETY: It lives as long as `self`, and nobody changes the interval.
        unsafe { &(*self.0.as_ptr()).interval }
    }

    pub(crate) fn flow(&self) -> &Flow {
        // SAFETY: as in `interval`; nobody changes the flow.
        unsafe { &(*self.0.as_ptr()).flow }
    }
}

#[cfg(feature = "sync")]
impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: The pointer is that of a `Box`. No poll has it: `Entered` is an owner.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A task is the current one of this thread.
#[cfg(feature = "sync")]
#[derive(Debug)]
pub(crate) struct Entered {
    shared: ManuallyDrop<Arc<Shared>>,
    before: Current,
}

#[cfg(feature = "sync")]
impl Entered {
    /// Makes a task the thread's current one. The thread has entered so many spans of `tracing`.
    ///
    /// # Safety
    /// The polls of the task come one after the other, from this call to the return of its future's `poll`,
    /// and each one happens before the next one.
    pub(crate) unsafe fn new(shared: Arc<Shared>, spans: usize) -> Self {
        // SAFETY: No other poll goes on, and a reference to this field lives only in a poll.
        unsafe { (*shared.0.as_ptr()).spans = spans };
        let before = CURRENT.replace(Current(shared.0.as_ptr()));
        Self { shared: ManuallyDrop::new(shared), before }
    }

    /// Makes the one before it the current one. If the task is not the innermost one, a runtime has left out a
    /// hook: it is then never freed, since another one may lead back to it.
    pub(crate) fn leave(self) {
        if CURRENT.get().recorded() == Some(self.shared.0) {
            CURRENT.set(self.before);
            drop(ManuallyDrop::into_inner(self.shared));
        }
    }
}

/// Calls `f` with the interval of the innermost recorded future, and the number of spans of `tracing` that
/// the thread had entered when the poll of that began.
pub(crate) fn with_interval<R>(f: impl FnOnce(Option<(&AsyncScope, usize)>) -> R) -> R {
    // SAFETY: `poll_in` borrows what is recorded mutably until its `poll` returns, and `Leave` removes the
    // pointer before that. The caller is called by this `poll`, on this thread. Nobody changes the interval
    // or the number meanwhile. `Entered` is an owner of what is recorded until `leave`, which removes the
    // pointer.
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
    /// Of a stream, the interval while its next item is waited for.
    #[cfg(feature = "futures")]
    pub(crate) next: Next,
}

/// When the next item of a stream is waited for.
#[cfg(feature = "futures")]
#[derive(Debug, Default)]
pub(crate) enum Next {
    /// Nobody has asked for an item yet.
    #[default]
    Unasked,
    Awaited(#[allow(dead_code)] Box<AsyncScope>), // it ends when it is dropped
    Given,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        #[cfg(feature = "futures")]
        {
            self.next = Next::Given; // it ends before what it is below
        }
        self.interval.arguments = self.arguments.take();
    }
}
