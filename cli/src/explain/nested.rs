//! Intervals of async tasks below others: the life of a future is on a track below that of the future which
//! polls it.

use std::collections::{HashMap, HashSet};

use hairline_convert::TrackId;
use hairline_convert::slices::{Frame, Key, Slice};
use hairline_convert::timeline::Split;

use crate::explain::target::{Inner, Inside, Part, Wait};
use crate::explain::turns::Turn;
use crate::inside::Open;
use crate::track_names::TrackNames;

/// The intervals that wait for the end of the one around them, by the track that they are below.
#[derive(Default)]
pub(super) struct Nested {
    below: HashMap<TrackId, Vec<Below>>,
    /// The times in the queue of the open life on a track, by their ends.
    queues: HashMap<TrackId, Vec<Part>>,
    count: usize,
    /// The open intervals, with their names.
    open: Open,
    names: HashMap<(TrackId, i64), Key>,
    /// The names of polls that were inside of other polls, with the names of those.
    polled: HashSet<(Key, Key)>,
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
    /// Those without which the one around them went on, those of nested intervals too.
    pub(super) left: Vec<Part>,
}

impl Within {
    /// Adds an interval without which the one around it, of this name, went on.
    fn leave(&mut self, one: Below, around: Key) {
        let own = Split { unknown: one.slice.duration, ..Split::default() };
        let inner = Inner { count: 1, total: one.slice.duration, own };
        self.left.push(Part::new(one.slice.track, one.slice.start, end(&one.slice)));
        self.inside.leave(one.slice.name, &inner);
        if let Some((wait, turns)) = one.wait {
            self.inside.wait(Wait { around, ..wait }.dropped(), &turns, &inner);
        }
        self.inside.leave_all(&one.within.inside);
        self.waits.extend(one.within.waits.into_iter().map(Part::dropped));
    }
}

/// An interval that is over.
pub(super) struct Below {
    pub(super) slice: Slice,
    /// The wait for a lock that it is, and who had that in turn.
    pub(super) wait: Option<(Wait, Vec<Turn>)>,
    /// Its time without what is inside of it.
    pub(super) own: i64,
    /// Whether its future was dropped before it was ready.
    pub(super) is_dropped: bool,
    pub(super) within: Within,
}

/// The limit for intervals that wait, with the parts of each. Further ones are as if they were not inside of
/// others.
const MOST_WAITING: usize = 1 << 20;

/// The limit for pairs of names of polls.
const MOST_POLLED: usize = 1 << 14;

/// Tracks are not nested deeper.
const DEEPEST: usize = 64;

/// The limit for the times in the queue that are found for one interval: the last ones.
const MOST_QUEUES: usize = 4096;

impl Below {
    fn size(&self) -> usize {
        1 + self.within.waits.len() + self.within.queues.len() + self.within.left.len()
    }

    /// Whether the interval around it, of which something begins last at `last`, went on without it: what is
    /// inside of it took none of the time. An interval that is dropped itself drops what it waits for.
    fn is_left(&self, is_around_dropped: bool, last: i64) -> bool {
        self.is_dropped && !(is_around_dropped && end(&self.slice) > last)
    }
}

impl Nested {
    /// Takes the intervals below one that ends, maybe because its future is dropped. Returns them, and the
    /// interval's time without them.
    pub(super) fn take(&mut self, slice: &Slice, is_dropped: bool) -> (Within, i64) {
        let (mut within, mut own) = (Within::default(), slice.duration);
        if let Some(parts) = self.queues.remove(&slice.track) {
            self.count -= parts.len();
            within.queues.extend(parts.into_iter().filter(|part| part.start >= slice.start));
        }
        self.leave_open(slice, &mut within);
        let Some(mut below) = self.below.remove(&slice.track) else { return (within, own) };
        self.count -= below.iter().map(Below::size).sum::<usize>();
        // What began before it is of an earlier one on its track.
        below.retain(|one| one.slice.start >= slice.start);
        below.sort_unstable_by_key(|one| one.slice.start);
        let begins =
            below.iter().map(|one| one.slice.start).chain(within.queues.iter().map(|queue| queue.start));
        let last = begins.max().unwrap_or(slice.start);
        let mut until = slice.start;
        // Those of one name at the same time count once.
        let mut until_of: HashMap<Key, i64> = HashMap::new();
        for one in below {
            let end = end(&one.slice).min(end(slice));
            if one.is_left(is_dropped, last) {
                within.leave(one, slice.name);
                continue;
            }
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
            within.left.extend(one.within.left);
            within.queues.extend(one.within.queues);
        }
        (within, own)
    }

    /// An outermost interval begins.
    pub(super) fn begin(&mut self, track: TrackId, slice: &Frame, names: &TrackNames) {
        if self.names.len() < MOST_WAITING {
            self.open.begin(track, slice.start, names);
            self.names.insert((track, slice.start), slice.name);
        }
    }

    /// An outermost interval ends.
    pub(super) fn end(&mut self, slice: &Slice, names: &TrackNames) {
        self.open.end(slice, names);
        self.names.remove(&(slice.track, slice.start));
    }

    /// A poll of this name is inside of others.
    pub(super) fn polled(&mut self, name: Key, above: impl Iterator<Item = Key>) {
        for above in above {
            if self.polled.len() < MOST_POLLED {
                self.polled.insert((above, name));
            }
        }
    }

    /// Adds those that began inside of an interval and are open at its end: it went on without them. One that
    /// is never polled inside of it is another task's.
    fn leave_open(&self, slice: &Slice, within: &mut Within) {
        for (start, track) in self.open.of(slice) {
            let Some(name) = self.names.get(&(track, start)) else { continue };
            if self.polled.contains(&(slice.name, *name)) {
                let duration = end(slice).saturating_sub(start);
                within.left.push(Part::new(track, start, end(slice)));
                let own = Split { unknown: duration, ..Split::default() };
                within.inside.leave(*name, &Inner { count: 1, total: duration, own });
            }
        }
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
            let (within, own) = nested.take(&slice, false);
            nested.add(TrackId(parent), Below { slice, wait: None, own, is_dropped: false, within });
        };
        add(1, slice(2, 10, 20)); // of an earlier one on the track
        add(2, slice(3, 50, 60));
        add(1, slice(2, 40, 70));
        add(1, slice(4, 60, 90)); // at the same time
        let (within, own) = nested.take(&slice(1, 30, 100), false);
        assert_eq!(own, 70 - 50);
        let all = within.inside.names.values().next().expect("a name");
        assert_eq!((all.count, all.total, all.own.unknown), (3, 10 + 30 + 30, 10 + 20 + 20));
        assert_eq!(nested.count, 0);
    }

    #[test]
    fn what_is_dropped_took_no_time_of_an_interval_that_went_on() {
        let of = |is_dropped| {
            let mut nested = Nested::default();
            let mut add = |slice: Slice, is_dropped| {
                let (within, own) = nested.take(&slice, is_dropped);
                nested.add(TrackId(1), Below { slice, wait: None, own, is_dropped, within });
            };
            add(slice(2, 10, 20), true);
            add(slice(3, 20, 40), false);
            add(slice(4, 5, 99), true);
            let (within, own) = nested.take(&slice(1, 0, 100), is_dropped);
            (own, within.inside.dropped.values().map(|inner| inner.total).sum::<i64>())
        };
        assert_eq!(of(false), (100 - 20, 10 + 94));
        assert_eq!(of(true), (100 - 94, 10), "the last one goes with it");
    }

    #[test]
    fn parts_at_the_same_time_count_once() {
        let part = |start, end| Part::new(TrackId(1), start, end);
        assert_eq!(covered(&[part(10, 20), part(40, 50), part(15, 30), part(16, 17)]), 30);
        assert_eq!(covered(&[]), 0);
    }
}
