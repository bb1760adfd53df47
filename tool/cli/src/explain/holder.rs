//! Who has a lock.

use hairline_convert::TrackId;

/// A task in a trace: its process, and its number there.
pub(super) type TaskId = (Option<TrackId>, u64);

/// Who had the lock when the wait began; where that is not known, who ended the wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    #[default]
    Unknown,
    /// The thread with this id.
    Thread(u64),
    /// The thread with this id released the lock, which it had perhaps with others.
    Releaser(u64),
    /// The first thread had the lock, and then others: the last of them, which released it, is the second.
    Passed(u64, u64),
    /// The thread with this id notified a condition variable.
    Notifier(u64),
    /// The task with this number.
    Task(TaskId),
    /// The first task, if that is known, took the lock, and the second one released it.
    Given(Option<TaskId>, TaskId),
    /// Nobody: the one that waits could have it, and did not run yet.
    Free,
    /// A condition variable had been notified: the one that waits did not have its lock again yet.
    Relocks,
}

/// Who had a lock, and where it was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HeldBy {
    pub(super) holder: Holder,
    /// The tag of the facts with the place.
    pub(super) place: u32,
    /// Whether it had the lock for the whole time that is meant, and not only at the begin of a wait.
    pub(super) is_timed: bool,
}

impl Holder {
    /// The one that took the lock.
    pub(super) fn taker(self) -> Self {
        match self {
            Self::Given(taker, _) => taker.map_or(Self::Unknown, Self::Task),
            other => other,
        }
    }

    /// The id of the thread.
    pub(super) fn thread(self) -> Option<u64> {
        match self {
            Self::Thread(tid) | Self::Releaser(tid) | Self::Notifier(tid) | Self::Passed(_, tid) => Some(tid),
            Self::Unknown | Self::Task(_) | Self::Given(..) | Self::Free | Self::Relocks => None,
        }
    }
}
