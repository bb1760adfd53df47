//! Polls of tasks that take long: while one lasts, its thread polls no other task. Each has an instant
//! `long poll` at its end, on its thread.

use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch, Key, watched};
use crate::on::event::extras::Extras;
use crate::on::thread::events;
use crate::on::thread::guards::Scope;
use crate::site::{CallsiteKind, Site};

static LONG_POLL: Callsite = Callsite::new(CallsiteKind::Instant, "task", "long poll", &KEYS, &Site::NOWHERE);
static KEYS: [Key; 2] = [Key::new("task"), Key::new("us")];

/// The slice of a task's poll, while it is open.
#[derive(Debug)]
pub(super) struct PollOfTask {
    _slice: Scope,
    _mark: Mark, // dropped after the slice
}

/// Looks at the end of a poll.
#[derive(Debug)]
struct Mark {
    /// The epoch and the time of its begin, if that is recorded.
    begun: Option<(Epoch, u64)>,
    /// The number of the task; 0 if its life is not recorded.
    task: u32,
}

impl PollOfTask {
    /// Takes a slice that has just begun.
    #[inline]
    pub(super) fn new(slice: Scope, task: u32) -> Self {
        let begun = slice.epoch().map(|epoch| (epoch, last_event()));
        Self { _slice: slice, _mark: Mark { begun, task } }
    }
}

impl Drop for Mark {
    #[inline]
    fn drop(&mut self) {
        if let Some((epoch, begun)) = self.begun {
            check(epoch, self.task, last_event().saturating_sub(begun));
        }
    }
}

/// Marks a poll that is over and took so long, in ns, if it was long.
#[inline]
pub(super) fn check(epoch: Epoch, task: u32, took: u64) {
    if took >= watched::poll_limit() {
        mark(epoch, task, took);
    }
}

#[inline]
fn last_event() -> u64 {
    this_thread::hot().lease().last()
}

#[cold]
#[inline(never)]
fn mark(epoch: Epoch, task: u32, took: u64) {
    // In another session, the thread's last event is not the end of this poll.
    if LONG_POLL.registered_epoch() == Some(epoch) {
        let task = (task != 0).then_some(i64::from(task));
        events::event_rich(&LONG_POLL, epoch, &(task, (took / 1000, ())), &Extras::new());
    }
}
