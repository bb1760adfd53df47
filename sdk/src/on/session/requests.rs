//! Requests of the program to a session's drain thread or recorder thread, and the answers.
//!
//! A requester increments a counter (flush, snapshot of a panic) or sets `stop`, unparks the thread and waits
//! until the thread has answered its number, or has ended.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::on::base::lock::{Condvar, Mutex};
use crate::on::base::platform::process;
use crate::on::session::end::End;

/// The requests to a session's drain thread or recorder thread, and its answers.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The process of the session.
    process: u32,
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pending: Pending,
    outcome: Outcome,
    /// The last flush for which a thread has waited in vain.
    abandoned_flush: u64,
}

/// The numbers of requests, and of those that are answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pending {
    pub(crate) flushes_requested: u64,
    pub(crate) flushes_done: u64,
    /// Snapshots that panics request.
    pub(crate) panics_requested: u64,
    pub(crate) panics_done: u64,
    pub(crate) stop: bool,
}

/// The error of the output and the results of the session, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The first error of the output. An `Arc`, so that a copy allocates nothing under the lock.
    pub(crate) error: Option<Arc<io::Error>>,
    /// Set when the thread ends.
    pub(crate) end: Option<Arc<End>>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self { process: process::id(), state: Mutex::new(State::default()), answered: Condvar::new() }
    }

    // For the program's threads. The caller unparks the session's thread after a request. `None` in a child
    // that a signal handler has forked during the call: the session's thread does not exist there.

    /// Requests a flush. Returns its number, for [`wait_for_flush`](Self::wait_for_flush).
    pub(crate) fn request_flush(&self) -> Option<u64> {
        let mut state = self.state.lock_in(self.process)?;
        state.pending.flushes_requested += 1;
        Some(state.pending.flushes_requested)
    }

    /// Requests a flush, unless a thread has waited in vain for an earlier one that is still not done.
    /// Returns its number, for [`wait_for_flush_for`](Self::wait_for_flush_for).
    pub(crate) fn request_flush_unless_stuck(&self) -> Option<u64> {
        let mut state = self.state.lock_in(self.process)?;
        if state.pending.flushes_done < state.abandoned_flush {
            return None;
        }
        state.pending.flushes_requested += 1;
        Some(state.pending.flushes_requested)
    }

    /// Requests a snapshot for a panic. Returns its number, for [`wait_for_panic`](Self::wait_for_panic).
    pub(crate) fn request_panic(&self) -> Option<u64> {
        let mut state = self.state.lock_in(self.process)?;
        state.pending.panics_requested += 1;
        Some(state.pending.panics_requested)
    }

    /// Requests the end of the session.
    pub(crate) fn request_stop(&self) {
        if let Some(mut state) = self.state.lock_in(self.process) {
            state.pending.stop = true;
        }
    }

    /// Waits until the flush with this number is done, or the session has ended.
    pub(crate) fn wait_for_flush(&self, number: u64) -> Option<Outcome> {
        self.wait_while(None, |state| state.pending.flushes_done < number && state.outcome.end.is_none())
    }

    /// Waits until the flush with this number is done, or the session has ended, at most for `longest`.
    pub(crate) fn wait_for_flush_for(&self, number: u64, longest: Duration) {
        let is_unanswered =
            |state: &mut State| state.pending.flushes_done < number && state.outcome.end.is_none();
        let until = Some(Instant::now() + longest);
        if let Some(mut state) = self.answered.lock_unless(&self.state, self.process, until, is_unanswered)
            && is_unanswered(&mut state)
        {
            state.abandoned_flush = state.abandoned_flush.max(number);
        }
    }

    /// Waits until the snapshot with this number is written, or the session has ended, at most for `longest`.
    pub(crate) fn wait_for_panic(&self, number: u64, longest: Duration) {
        let until = Some(Instant::now() + longest);
        self.wait_while(until, |state| state.pending.panics_done < number && state.outcome.end.is_none());
    }

    /// Waits until the session has ended.
    pub(crate) fn wait_for_end(&self) -> Option<Outcome> {
        self.wait_while(None, |state| state.outcome.end.is_none())
    }

    /// Waits until the session has ended, at most for `longest`. Returns whether it has ended.
    pub(crate) fn wait_for_end_for(&self, longest: Duration) -> Option<bool> {
        let until = Some(Instant::now() + longest);
        self.wait_while(until, |state| state.outcome.end.is_none()).map(|outcome| outcome.end.is_some())
    }

    fn wait_while(
        &self,
        until: Option<Instant>,
        is_unanswered: impl FnMut(&mut State) -> bool,
    ) -> Option<Outcome> {
        self.answered
            .lock_unless(&self.state, self.process, until, is_unanswered)
            .map(|state| state.outcome.clone())
    }

    // For the session's own thread.

    /// Returns the requests.
    pub(crate) fn pending(&self) -> Pending {
        self.state.lock().pending
    }

    /// Answers all flushes up to this number.
    pub(crate) fn set_flushes_done(&self, number: u64) {
        self.state.lock().pending.flushes_done = number;
        self.answered.notify_all();
    }

    /// Answers all snapshots of panics up to this number.
    pub(crate) fn set_panics_done(&self, number: u64) {
        self.state.lock().pending.panics_done = number;
        self.answered.notify_all();
    }

    /// Keeps the error of the output, if it is the first one. Returns whether it is.
    pub(crate) fn set_error(&self, e: &Arc<io::Error>) -> bool {
        let mut e = Some(Arc::clone(e));
        let mut state = self.state.lock();
        let is_first = state.outcome.error.is_none();
        if is_first {
            state.outcome.error = e.take();
        }
        drop(state);
        is_first
    }

    /// Sets the results of the session, and answers all flushes.
    pub(crate) fn set_end(&self, end: End) {
        let mut end = Some(Arc::new(end));
        let mut state = self.state.lock();
        if state.outcome.end.is_none() {
            state.outcome.end = end.take();
        }
        state.pending.flushes_done = state.pending.flushes_requested;
        drop(state);
        self.answered.notify_all();
    }
}
