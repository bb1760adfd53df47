//! What is inside of intervals: slices on their own tracks, and on the tracks below those.
//!
//! The life of a future is on a track below that of the future which polls it, and may be there at the same
//! time as others. Intervals come in the order of their ends, so all that is inside of one precedes it. One
//! that ends later, as a future that another task polls on, is inside of it up to its end.

use std::collections::BTreeSet;

use hairline_convert::slices::Slice;
use hairline_convert::{ByTrack, TrackId};

use crate::track_names::TrackNames;

/// The limit for stretches of time that wait for the end of the interval around them, 16 MiB.
const MOST_WAITING: usize = 1 << 20;

/// The length beyond which a list of stretches is not kept for another track.
const LONG: usize = 64;

/// The times in which something was inside of the intervals that have not ended yet.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    /// The list of a track, plus 1; 0 if it has none. There may be millions of tracks.
    by_track: ByTrack<u32>,
    lists: Vec<Stretches>,
    /// The lists that no track has.
    unused: Vec<u32>,
    count: usize,
    open: Open,
}

/// The outermost intervals that have begun on tracks below others, and not ended: the track above, the begin
/// and the track.
#[derive(Debug, Default)]
pub(crate) struct Open(BTreeSet<(TrackId, i64, TrackId)>);

impl Open {
    /// An outermost interval begins. A trace has at most 524,288 that are open.
    pub(crate) fn begin(&mut self, track: TrackId, start: i64, names: &TrackNames) {
        if let Some(above) = names.track_above(track).filter(|_| self.0.len() < MOST_WAITING) {
            self.0.insert((above, start, track));
        }
    }

    /// An interval ends.
    pub(crate) fn end(&mut self, slice: &Slice, names: &TrackNames) {
        if let Some(above) = names.track_above(slice.track).filter(|_| !self.0.is_empty()) {
            self.0.remove(&(above, slice.start, slice.track));
        }
    }

    /// The begins and tracks of those that began inside of an interval, which ends before them.
    pub(crate) fn of(&self, slice: &Slice) -> impl Iterator<Item = (i64, TrackId)> {
        let end = slice.start.saturating_add(slice.duration).max(slice.start);
        let inside = self.0.range((slice.track, slice.start, TrackId(0))..(slice.track, end, TrackId(0)));
        inside.map(|(_, start, track)| (*start, *track))
    }
}

/// Stretches of time in order, none of which overlap.
#[derive(Debug, Default)]
struct Stretches(Vec<(i64, i64)>);

impl Inside {
    /// Takes an interval that ends. Returns its time without what was inside of it. Parts at the same time
    /// count once.
    pub(crate) fn take(&mut self, slice: &Slice, names: &TrackNames) -> i64 {
        let end = slice.start.saturating_add(slice.duration);
        let is_outermost = slice.busy > 0;
        if is_outermost || slice.duration == 0 {
            self.open.end(slice, names);
        }
        self.add_open(slice, end);
        let mut covered = 0;
        if let Some(list) = self.by_track.get(slice.track).and_then(|list| list.checked_sub(1)) {
            let stretches = &mut self.lists[list as usize];
            let before = stretches.0.len();
            covered = stretches.take(slice.start, end);
            self.count -= before - stretches.0.len();
            if is_outermost {
                self.remove(slice.track); // what is left began before it
            }
        }
        // Nothing on its track is around the outermost one.
        let around = if is_outermost { names.track_above(slice.track) } else { Some(slice.track) };
        if let Some(around) = around.filter(|_| slice.duration > 0) {
            let stretches = self.stretches(around);
            let before = stretches.0.len();
            stretches.add(slice.start, end);
            let after = stretches.0.len();
            self.count = self.count - before + after;
            if self.count > MOST_WAITING {
                self.forget_longest();
            }
        }
        slice.duration.saturating_sub(covered).min(slice.self_time)
    }

    /// An outermost interval begins.
    pub(crate) fn begin(&mut self, track: TrackId, start: i64, names: &TrackNames) {
        self.open.begin(track, start, names);
    }

    /// An interval ends that is not to be counted.
    pub(crate) fn forget(&mut self, slice: &Slice, names: &TrackNames) {
        self.open.end(slice, names);
    }

    /// Adds the parts of those that began inside of an interval and are open at its end.
    fn add_open(&mut self, slice: &Slice, end: i64) {
        let Some((start, _)) = self.open.of(slice).next() else { return };
        let stretches = self.stretches(slice.track);
        let before = stretches.0.len();
        stretches.add(start, end); // the first one covers the others
        let after = stretches.0.len();
        self.count = self.count - before + after;
    }

    /// The list of a track.
    fn stretches(&mut self, track: TrackId) -> &mut Stretches {
        let list = self.by_track.at(track);
        if *list == 0 {
            *list = 1 + self.unused.pop().unwrap_or_else(|| {
                self.lists.push(Stretches::default());
                self.lists.len() as u32 - 1 // at most one for each track
            });
        }
        &mut self.lists[*list as usize - 1]
    }

    fn remove(&mut self, track: TrackId) {
        let Some(list) = std::mem::take(self.by_track.at(track)).checked_sub(1) else { return };
        let stretches = &mut self.lists[list as usize].0;
        self.count -= stretches.len();
        stretches.clear();
        stretches.shrink_to(LONG);
        self.unused.push(list);
    }

    /// Forgets the track with most stretches: that of a group of tracks has no interval that takes them. If
    /// each track has few, forgets all, so that the next search is far away.
    #[cold]
    fn forget_longest(&mut self) {
        let length = |list: u32| list.checked_sub(1).map_or(0, |list| self.lists[list as usize].0.len());
        let longest = self.by_track.iter().max_by_key(|(_, list)| length(**list));
        if let Some((track, _)) = longest {
            self.remove(track);
        }
        if self.count > MOST_WAITING / 16 * 15 {
            *self = Self::default();
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
    use hairline_convert::{Track, TrackKind};

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
    fn what_ends_after_it_is_inside_up_to_its_end() {
        let (mut inside, names) = (Inside::default(), names(&[(1, 0), (2, 1), (3, 2)]));
        inside.begin(TrackId(1), 0, &names);
        inside.begin(TrackId(2), 20, &names);
        inside.begin(TrackId(3), 70, &names);
        assert_eq!(inside.take(&slice(1, 0, 50, true), &names), 20, "20 to 50 are inside of it");
        inside.begin(TrackId(1), 60, &names);
        assert_eq!(inside.take(&slice(1, 60, 80, true), &names), 20, "the next one has nothing inside");
        assert_eq!(inside.take(&slice(2, 20, 90, true), &names), 50);
        assert_eq!(inside.take(&slice(3, 70, 95, true), &names), 25);
        assert_eq!((inside.count, inside.open.0.len()), (2, 0), "those that wait ended after what is around");
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
