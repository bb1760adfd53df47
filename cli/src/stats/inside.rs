//! What is inside of intervals: slices on their own tracks, and on the tracks below those.
//!
//! The life of a future is on a track below that of the future which polls it, and may be there at the same
//! time as others. Intervals come in the order of their ends, so all that is inside of one precedes it.

use hairline_convert::ByTrack;
use hairline_convert::slices::Slice;

use crate::track_names::TrackNames;

/// The limit for stretches of time that wait for the end of the interval around them, 16 MiB.
const MOST_WAITING: usize = 1 << 20;

/// The times in which something was inside of the intervals that have not ended yet.
#[derive(Debug, Default)]
pub(super) struct Inside {
    by_track: ByTrack<Stretches>,
    count: usize,
}

/// Stretches of time in order, none of which overlap.
#[derive(Debug, Default)]
struct Stretches(Vec<(i64, i64)>);

impl Inside {
    /// Takes an interval that ends. Returns its time without what was inside of it. Parts at the same time
    /// count once.
    pub(super) fn take(&mut self, slice: &Slice, names: &TrackNames) -> i64 {
        let end = slice.start.saturating_add(slice.duration);
        let own_track = self.by_track.at(slice.track);
        let before = own_track.0.len();
        let covered = own_track.take(slice.start, end);
        // Nothing is around the outermost one, and what is left began before it.
        let around = if slice.busy > 0 {
            own_track.0 = Vec::new();
            names.track_above(slice.track)
        } else {
            Some(slice.track)
        };
        self.count -= before - own_track.0.len();
        if let Some(around) = around.filter(|_| slice.duration > 0) {
            let around = self.by_track.at(around);
            let before = around.0.len();
            around.add(slice.start, end);
            self.count = self.count - before + around.0.len();
            if self.count > MOST_WAITING {
                self.forget_longest();
            }
        }
        slice.duration.saturating_sub(covered).min(slice.self_time)
    }

    /// Forgets the track with most stretches: that of a group of tracks has no interval that takes them.
    #[cold]
    fn forget_longest(&mut self) {
        let all = self.by_track.iter_mut().map(|(_, stretches)| stretches);
        if let Some(longest) = all.max_by_key(|stretches| stretches.0.len()) {
            self.count -= longest.0.len();
            longest.0 = Vec::new();
        }
    }
}

impl Stretches {
    /// Adds a stretch. It becomes one with those that it overlaps.
    fn add(&mut self, mut start: i64, mut end: i64) {
        let from = self.0.partition_point(|(_, end)| *end <= start);
        let to = from + self.0[from..].partition_point(|(start, _)| *start < end);
        if let [(first, _), ..] = self.0[from..to] {
            start = start.min(first);
            end = end.max(self.0[to - 1].1);
        }
        self.0.splice(from..to, [(start, end)]);
    }

    /// Removes those that begin at `start` or later. Returns their time up to `end`.
    fn take(&mut self, start: i64, end: i64) -> i64 {
        let mut covered = 0_i64;
        while let Some((from, to)) = self.0.pop_if(|(from, _)| *from >= start) {
            covered = covered.saturating_add(to.min(end).saturating_sub(from).max(0));
        }
        covered
    }
}

#[cfg(test)]
mod tests {
    use hairline_convert::slices::Key;
    use hairline_convert::{Track, TrackId, TrackKind};

    use super::*;

    fn names(parents: &[(u32, u32)]) -> TrackNames {
        let mut names = TrackNames::default();
        for (id, parent) in parents {
            let parent = Some(TrackId(*parent)).filter(|parent| parent.0 > 0);
            names.set(&Track { parent, ..Track::new(TrackId(*id), TrackKind::Slices) });
        }
        names
    }

    fn slice(track: u32, start: i64, end: i64, is_outermost: bool) -> Slice {
        let (name, duration) = (Key::OTHER, end - start);
        let busy = if is_outermost { duration } else { 0 };
        let (track, self_time) = (TrackId(track), duration);
        Slice { track, name, category: name, start, duration, self_time, busy, tag: 0 }
    }

    #[test]
    fn time_inside_counts_once() {
        let (mut inside, names) = (Inside::default(), names(&[(1, 0), (2, 1), (3, 1), (4, 2)]));
        let mut own = |slice| inside.take(&slice, &names);
        assert_eq!(own(slice(2, 5, 9, true)), 4, "before the life");
        assert_eq!(own(slice(1, 20, 30, false)), 10, "on the track itself");
        assert_eq!(own(slice(4, 40, 50, true)), 10);
        assert_eq!(own(slice(2, 25, 60, true)), 25, "without that below it");
        assert_eq!(own(slice(3, 50, 70, true)), 20, "at the same time as the other");
        assert_eq!(own(slice(1, 10, 100, true)), 90 - 50, "20 to 70");
        assert_eq!(own(slice(1, 100, 110, true)), 10, "the next one");
        assert_eq!(inside.count, 0);
    }

    #[test]
    fn what_touches_stays_apart() {
        let (mut inside, names) = (Inside::default(), names(&[(1, 0), (2, 1)]));
        let mut own = |slice| inside.take(&slice, &names);
        own(slice(1, 0, 10, false));
        own(slice(2, 10, 15, true));
        assert_eq!(own(slice(1, 10, 20, false)), 5, "the second of two spans, with a life inside");
        assert_eq!(own(slice(1, 0, 25, true)), 5);
    }

    #[test]
    fn a_group_of_tracks_does_not_fill_it() {
        let (mut inside, names) = (Inside::default(), names(&[(1, 0), (2, 1), (3, 0), (4, 3)]));
        inside.take(&slice(4, 0, 5, true), &names);
        for start in (0..3 * MOST_WAITING as i64).map(|n| 10 * n) {
            inside.take(&slice(2, start, start + 5, true), &names);
        }
        assert!(inside.count <= MOST_WAITING, "{}", inside.count);
        assert_eq!(inside.take(&slice(3, 0, 20, true), &names), 15);
    }
}
