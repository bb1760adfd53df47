//! The polls of all tasks.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::{Key, Slice};

/// The limit for polls whose threads are known.
const MOST_POLLS: usize = 1 << 21;

/// How much later than the end of the time in the queue a poll begins at most: the thread may lose its
/// processor between the two.
pub(super) const POLL_AFTER: i64 = 1_000_000;

/// How long after its last poll a life ends at most, or wakes the one that awaits it; and how long after such
/// a wake the poll around it ends its own task.
pub(super) const RIGHT_AFTER: i64 = 200_000;

/// The outermost polls of tasks: their begins and threads, by name.
#[derive(Debug, Default)]
pub(super) struct AllPolls {
    by_name: HashMap<Key, Vec<(i64, TrackId)>>,
    count: usize,
}

impl AllPolls {
    pub(super) fn add(&mut self, poll: &Slice) {
        if self.count < MOST_POLLS {
            self.count += 1;
            self.by_name.entry(poll.name).or_default().push((poll.start, poll.track));
        }
    }

    /// Call it once there are no more.
    pub(super) fn sort(&mut self) {
        self.by_name.values_mut().for_each(|polls| polls.sort_unstable());
    }

    /// The thread of the poll that follows a time in the queue.
    pub(super) fn after(&self, name: Key, end: i64) -> Option<TrackId> {
        let polls = self.by_name.get(&name)?;
        let next = polls.get(polls.partition_point(|(start, _)| *start < end));
        next.filter(|(start, _)| start.saturating_sub(end) <= POLL_AFTER).map(|(_, track)| *track)
    }
}
