//! The waits for a condition variable: when they are notified, and which of them go on since the condition
//! does not hold after a notification.
//!
//! Such a notification has not ended what the thread waits for: that of the last wait has. The program says
//! which waits go on (`again`): it knows that of those in `wait_while`.

use std::collections::HashMap;

use hairline_convert::TrackId;

use crate::track_names::TrackNames;

/// The waits of a trace.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    /// The last waits of each track that belong together: their begins, and the tag of the last notification.
    last: HashMap<TrackId, (Vec<i64>, u32)>,
    /// The tag of what ended the last of several waits, by the track and the begin of each.
    ended_by: HashMap<(TrackId, i64), u32>,
    /// The notifications, in the order of the trace; then their times, by thread and condition variable.
    notifications: Vec<(TrackId, Box<str>, i64)>,
    times: HashMap<(u64, Box<str>), Vec<i64>>,
}

/// The limit for waits that go on. Further ones have their own notifications.
const MOST: usize = 1 << 20;

impl Conditions {
    /// A wait begins on a track.
    pub(super) fn begins(&mut self, track: TrackId, time: i64, is_again: bool) {
        if !is_again {
            self.end(track);
        }
        let (begins, tag) = self.last.entry(track).or_default();
        if begins.len() < MOST {
            begins.push(time);
        }
        *tag = 0;
    }

    /// A notification ends the last wait on a track.
    pub(super) fn notified(&mut self, track: TrackId, by: u32) {
        if let Some((_, tag)) = self.last.get_mut(&track) {
            *tag = by;
        }
    }

    fn end(&mut self, track: TrackId) {
        let Some((begins, tag)) = self.last.remove(&track) else { return };
        if begins.len() > 1 && self.ended_by.len() < MOST {
            self.ended_by.extend(begins.into_iter().map(|begin| ((track, begin), tag)));
        }
    }

    /// A thread notifies a condition variable.
    pub(super) fn add_notification(&mut self, track: TrackId, name: &str, time: i64) {
        if self.notifications.len() < MOST {
            self.notifications.push((track, name.into(), time));
        }
    }

    /// Call it before the first question.
    pub(super) fn finish(&mut self, names: &TrackNames) {
        for (track, name, time) in std::mem::take(&mut self.notifications) {
            if let Some(tid) = names.tid(track) {
                self.times.entry((tid, name)).or_default().push(time);
            }
        }
        self.times.values_mut().for_each(|times| times.sort_unstable());
        let tracks: Vec<_> = self.last.keys().copied().collect();
        tracks.into_iter().for_each(|track| self.end(track));
    }

    /// The last time at which this thread notified the condition variable during a wait.
    pub(super) fn last_notification(&self, tid: u64, name: &str, (start, end): (i64, i64)) -> Option<i64> {
        let times = self.times.get(&(tid, name.into()))?;
        let last = times.partition_point(|time| *time <= end).checked_sub(1)?;
        Some(times[last]).filter(|time| *time >= start)
    }

    /// The tag of what ended the last of the waits that one belongs to; 0 if nothing is known to have done
    /// so.
    pub(super) fn ended_by(&self, track: TrackId, begin: i64) -> Option<u32> {
        self.ended_by.get(&(track, begin)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_notification_ends_all_waits_that_go_on() {
        let (track, mut conditions) = (TrackId(1), Conditions::default());
        for (time, is_again, by) in [(10, false, 5), (20, true, 6), (30, true, 7), (40, false, 8)] {
            conditions.begins(track, time, is_again);
            conditions.notified(track, by);
        }
        conditions.finish(&TrackNames::default());
        let ended_by = [10, 20, 30, 40].map(|begin| conditions.ended_by(track, begin));
        assert_eq!(ended_by, [Some(7), Some(7), Some(7), None]);
    }
}
