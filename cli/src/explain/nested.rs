//! Intervals of async tasks below others: the life of a future is on a track below that of the future which
//! polls it.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::{Key, Slice};
use hairline_convert::timeline::Split;

use crate::explain::target::{Inner, Inside, Part, Wait};
use crate::explain::turns::Turn;
use crate::track_names::TrackNames;

/// The intervals that wait for the end of the one around them, by the track that they are below.
#[derive(Default)]
pub(super) struct Nested {
    below: HashMap<TrackId, Vec<Below>>,
    /// The times in the queue of the open life on a track, by their ends.
    queues: HashMap<TrackId, Vec<Part>>,
    count: usize,
}

/// What is inside of an interval.
#[derive(Clone, Default)]
pub(super) struct Within {
    pub(super) inside: Inside,
    /// The waits for locks and the times in the queue, those of nested intervals too.
    pub(super) waits: Vec<Part>,
    pub(super) queues: Vec<Part>,
    /// The intervals directly below it, the waits too.
    pub(super) children: Vec<Part>,
}

/// An interval that is over.
pub(super) struct Below {
    pub(super) slice: Slice,
    /// The wait for a lock that it is, and who had that in turn.
    pub(super) wait: Option<(Wait, Vec<Turn>)>,
    /// Its time without what is inside of it.
    pub(super) own: i64,
    pub(super) within: Within,
}

/// The limit for intervals that wait, with the parts of each. Further ones are as if they were not inside of
/// others.
const MOST_WAITING: usize = 1 << 20;

/// Tracks are not nested deeper.
const DEEPEST: usize = 64;

/// The limit for the times in the queue that are found for one interval: the last ones.
const MOST_QUEUES: usize = 4096;

impl Below {
    fn size(&self) -> usize {
        1 + self.within.waits.len() + self.within.queues.len()
    }
}

impl Nested {
    /// Takes the intervals below one that ends. Returns them, and the interval's time without them.
    pub(super) fn take(&mut self, slice: &Slice) -> (Within, i64) {
        let (mut within, mut own) = (Within::default(), slice.duration);
        if let Some(parts) = self.queues.remove(&slice.track) {
            self.count -= parts.len();
            within.queues.extend(parts.into_iter().filter(|part| part.start >= slice.start));
        }
        let Some(mut below) = self.below.remove(&slice.track) else { return (within, own) };
        self.count -= below.iter().map(Below::size).sum::<usize>();
        // What began before it is of an earlier one on its track.
        below.retain(|one| one.slice.start >= slice.start);
        below.sort_unstable_by_key(|one| one.slice.start);
        let mut until = slice.start;
        // Those of one name at the same time count once.
        let mut until_of: HashMap<Key, i64> = HashMap::new();
        for one in below {
            let end = end(&one.slice).min(end(slice));
            let before = until_of.entry(one.slice.name).or_insert(slice.start);
            let more = end.saturating_sub(one.slice.start.max(*before)).max(0);
            *before = end.max(*before);
            own = own.saturating_sub(end.saturating_sub(one.slice.start.max(until)).max(0));
            within.children.push(Part::new(one.slice.track, one.slice.start, end));
            until = until.max(end);
            let split = Split { unknown: one.own.min(more), ..Split::default() };
            let inner = Inner { count: 1, total: one.slice.duration, own: split };
            within.inside.slices(one.slice.name, &inner);
            if let Some((wait, turns)) = one.wait {
                within.inside.wait(Wait { around: slice.name, ..wait }, &turns, &inner);
            }
            within.inside.add(&one.within.inside);
            within.waits.extend(one.within.waits);
            within.queues.extend(one.within.queues);
        }
        (within, own)
    }

    /// Adds a time in the queue of the life on its track.
    pub(super) fn add_queue(&mut self, part: Part) {
        if self.count < MOST_WAITING {
            self.count += 1;
            self.queues.entry(part.track).or_default().push(part);
        }
    }

    /// Adds an interval below another track.
    pub(super) fn add(&mut self, parent: TrackId, below: Below) {
        if self.count >= MOST_WAITING {
            return;
        }
        self.count += below.size();
        self.below.entry(parent).or_default().push(below);
    }

    /// The times in the queue of the tasks that an interval is inside of, the last one first.
    pub(super) fn queues(&self, names: &TrackNames, slice: &Slice) -> Vec<Part> {
        let above = |track: &TrackId| names.track_above(*track);
        let lives = std::iter::successors(names.track_above(slice.track), above).take(DEEPEST);
        let parts = lives.filter_map(|life| self.queues.get(&life)).flat_map(|parts| {
            let is_inside = |part: &&Part| part.end > slice.start;
            parts.iter().rev().take_while(is_inside).take(MOST_QUEUES)
        });
        let inside =
            |part: &Part| Part { start: part.start.max(slice.start), end: part.end.min(end(slice)), ..*part };
        parts.map(inside).collect()
    }
}

fn end(slice: &Slice) -> i64 {
    slice.start.saturating_add(slice.duration)
}

/// The time that parts of an interval cover. Parts at the same time count once.
pub(super) fn covered<'p>(parts: impl IntoIterator<Item = &'p Part>) -> i64 {
    let mut all: Vec<_> = parts.into_iter().map(|part| (part.start, part.end)).collect();
    all.sort_unstable();
    let (mut sum, mut until) = (0_i64, i64::MIN);
    for (start, end) in all {
        sum = sum.saturating_add(end.saturating_sub(start.max(until)).max(0));
        until = until.max(end);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(track: u32, start: i64, end: i64) -> Slice {
        let (name, duration) = (Key::OTHER, end - start);
        let (self_time, busy) = (duration, duration);
        Slice { track: TrackId(track), name, category: name, start, duration, self_time, busy, tag: 0 }
    }

    #[test]
    fn the_time_of_an_interval_is_that_of_those_below_it_and_its_own() {
        let mut nested = Nested::default();
        let mut add = |parent, slice: Slice| {
            let (within, own) = nested.take(&slice);
            nested.add(TrackId(parent), Below { slice, wait: None, own, within });
        };
        add(1, slice(2, 10, 20)); // of an earlier one on the track
        add(2, slice(3, 50, 60));
        add(1, slice(2, 40, 70));
        add(1, slice(4, 60, 90)); // at the same time
        let (within, own) = nested.take(&slice(1, 30, 100));
        assert_eq!(own, 70 - 50);
        let all = within.inside.names.values().next().expect("a name");
        assert_eq!((all.count, all.total, all.own.unknown), (3, 10 + 30 + 30, 10 + 20 + 20));
        assert_eq!(nested.count, 0);
    }

    #[test]
    fn parts_at_the_same_time_count_once() {
        let part = |start, end| Part::new(TrackId(1), start, end);
        assert_eq!(covered(&[part(10, 20), part(40, 50), part(15, 30), part(16, 17)]), 30);
        assert_eq!(covered(&[]), 0);
    }
}
