//! Intervals of async tasks below others: the life of a future is on a track below that of the future which
//! polls it.

use std::collections::{HashMap, HashSet};

use hairline_convert::TrackId;
use hairline_convert::slices::{Frame, Key, Slice};
use hairline_convert::timeline::Split;

use crate::explain::lost::lost;
use crate::explain::own_polls::{Poll, is_in};
use crate::explain::target::{Inner, Inside, Part, Wait};
use crate::explain::waited::{Child, Waited, waited};
use crate::inside::Open;
use crate::stretches::{apart, in_common, merged, sum};
use crate::track_names::TrackNames;

/// The intervals that wait for the end of the one around them, by the track that they are below, or on.
#[derive(Default)]
pub(super) struct Nested<'s> {
    below: HashMap<TrackId, Vec<Below<'s>>>,
    /// The times in the queue of the open life on a track, by their ends.
    queues: HashMap<TrackId, Vec<Part>>,
    /// The times for which the next item of an open stream on a track was waited for.
    nexts: HashMap<TrackId, Vec<(i64, i64)>>,
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
    /// How many intervals of each name, without their own time, and what was dropped.
    pub(super) inside: Inside,
    /// When it waited for what an interval does in itself, by the name of that. Of several that are open, it
    /// waits for the one that ends last, unless it is polled and that one is not.
    pub(super) own: Vec<Own>,
    /// The waits for locks and the times in the queue then, those of nested intervals too.
    pub(super) waits: Vec<Part>,
    pub(super) queues: Vec<Part>,
    /// When it waited for the intervals directly below it, the waits too.
    pub(super) waited: Vec<(i64, i64)>,
    /// Of a stream, when its next item is waited for: between two items it waits for its consumer.
    pub(super) nexts: Option<Vec<(i64, i64)>>,
    /// Those without which the one around them went on, those of nested intervals too.
    pub(super) left: Vec<Part>,
}

/// A time that an interval of a name has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) name: Key,
    pub(super) stretch: (i64, i64),
}

impl Within {
    /// Adds an interval for which the one around it, of this name, waited at these times.
    fn wait_for(&mut self, one: Below<'_>, around: Key, times: &[(i64, i64)]) {
        self.inside.slices(one.slice.name, &Inner::without_own(one.slice.duration));
        self.inside.add(&one.within.inside);
        self.left.extend(one.within.left);
        let wait = one.wait.map(|part| Part { wait: Wait { around, ..part.wait }, ..part });
        self.waits.extend(wait.into_iter().chain(one.within.waits).flat_map(|part| part.during(times)));
        self.queues.extend(one.within.queues.into_iter().flat_map(|part| part.during(times)));
        let own = one.within.own.into_iter();
        self.own.extend(own.flat_map(|Own { name, stretch }| {
            in_common(stretch, times).map(move |stretch| Own { name, stretch })
        }));
    }

    /// Adds an interval without which the one around it, of this name, went on. It may have waited for a lock in
    /// there at these times, in which it waited for nothing that was ready.
    fn leave(&mut self, one: Below<'_>, around: Key, alone: &[(i64, i64)]) {
        self.left.push(Part::new(one.slice.track, one.slice.start, end(&one.slice)));
        self.inside.leave(one.slice.name, &Inner::without_own(one.slice.duration));
        let wait = one.wait.map(|part| Part { wait: Wait { around, ..part.wait }, ..part });
        let waits = wait.into_iter().chain(one.within.waits).map(Part::dropped);
        self.waits.extend(waits.flat_map(|part| part.during(alone)));
    }

    /// Whether nothing is inside of it.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.waits.is_empty() && self.left.is_empty()
    }

    /// What is inside of it, by name, with the time for which it waited for that.
    pub(super) fn inside(&self) -> Inside {
        let mut inside = self.inside.clone();
        for own in &self.own {
            let own_time = Split { unknown: sum([own.stretch]), ..Split::default() };
            inside.slices(own.name, &Inner { own: own_time, ..Inner::default() });
        }
        inside
    }
}

/// An interval that is over.
pub(super) struct Below<'s> {
    pub(super) slice: Slice,
    /// The wait for a lock that it is, up to the wake that ended it.
    pub(super) wait: Option<Part>,
    /// Its polls, if they are known.
    pub(super) polls: &'s [Poll],
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

impl Below<'_> {
    fn size(&self) -> usize {
        let Within { own, waits, queues, left, .. } = &self.within;
        1 + own.len() + waits.len() + queues.len() + left.len()
    }

    /// Whether the interval around it, of which something begins last at `last`, went on without it: what is
    /// inside of it took none of the time. An interval that is dropped itself drops what it waits for.
    fn is_left(&self, is_around_dropped: bool, last: i64) -> bool {
        self.is_dropped && !(is_around_dropped && end(&self.slice) > last)
    }
}

impl<'s> Nested<'s> {
    /// Takes the intervals inside of one that ends, maybe because its future is dropped, and that has these
    /// polls. Returns them, and when the interval did not wait for them.
    pub(super) fn take(
        &mut self,
        slice: &Slice,
        depth: usize,
        is_dropped: bool,
        polls: &[Poll],
    ) -> (Within, Vec<Own>) {
        let mut within = Within::default();
        let own = |stretch| Own { name: slice.name, stretch };
        let whole = (slice.start, end(slice));
        if depth == 0 {
            self.take_parts(slice, &mut within);
        }
        self.leave_open(slice, &mut within);
        let mut below = self.inside_of(slice, depth, polls);
        if below.is_empty() {
            return (within, vec![own(whole)]);
        }
        // From the last end to the first.
        below.sort_unstable_by_key(|one| {
            (std::cmp::Reverse(end(&one.slice).min(end(slice))), one.slice.start)
        });
        let begins =
            below.iter().map(|one| one.slice.start).chain(within.queues.iter().map(|queue| queue.start));
        let last = begins.max().unwrap_or(slice.start);
        let queued = merged(within.queues.iter().map(|queue| (queue.start, queue.end)));
        let mut wakes: Vec<i64> = within.queues.iter().map(|queue| queue.start).collect();
        wakes.sort_unstable();
        let mut lost = lost(&children(&below, whole.1), polls).into_iter();
        let (left, below): (Vec<_>, Vec<_>) =
            below.into_iter().partition(|one| lost.next() == Some(true) || one.is_left(is_dropped, last));
        let Waited { of_each, beside, in_doubt, alone } =
            waited(whole, polls, &wakes, &children(&below, whole.1), &children(&left, whole.1));
        within.inside.in_doubt = in_doubt;
        for ((one, times), beside) in below.into_iter().zip(of_each).zip(beside) {
            let Some(times) = times else { continue };
            within.inside.beside(one.slice.name, beside);
            within.waited.extend(&times);
            within.wait_for(one, slice.name, &times);
        }
        left.into_iter().for_each(|one| within.leave(one, slice.name, &alone));
        let of_queue = std::mem::take(&mut within.own).into_iter();
        within.own = of_queue
            .flat_map(|Own { name, stretch }| {
                apart(stretch, &queued).map(move |stretch| Own { name, stretch })
            })
            .collect();
        (within, alone.into_iter().map(own).collect())
    }

    /// Takes the times in the queue of the outermost interval of a track, and for a stream its waits for items.
    fn take_parts(&mut self, slice: &Slice, within: &mut Within) {
        if let Some(parts) = self.queues.remove(&slice.track) {
            self.count -= parts.len();
            within.queues.extend(parts.into_iter().filter(|part| part.start >= slice.start));
        }
        if let Some(nexts) = self.nexts.remove(&slice.track) {
            self.count -= nexts.len();
            within.nexts = Some(merged(nexts.into_iter().filter(|(start, _)| *start >= slice.start)));
        }
    }

    /// Takes those that are directly inside of an interval: on the tracks below its own, and on its own. Those on
    /// the tracks below one that is not the outermost of its track are inside of that if its polls have theirs.
    fn inside_of(&mut self, slice: &Slice, depth: usize, polls: &[Poll]) -> Vec<Below<'s>> {
        let Some(below) = self.below.get_mut(&slice.track) else { return Vec::new() };
        let mut inside = if depth == 0 {
            self.below.remove(&slice.track).unwrap_or_default()
        } else {
            let is_inside = |one: &mut Below<'_>| {
                let first = one.polls.first();
                one.slice.start >= slice.start
                    && (one.slice.track == slice.track
                        || first.is_some_and(|first| is_in(polls, first).is_some()))
            };
            // They come in the order of their ends.
            let before =
                below.iter().rposition(|one| end(&one.slice) < slice.start).map_or(0, |before| before + 1);
            below.extract_if(before.., is_inside).collect()
        };
        self.count -= inside.iter().map(Below::size).sum::<usize>();
        // What began before it is of an earlier one on its track.
        inside.retain(|one| one.slice.start >= slice.start);
        inside
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
                within.left.push(Part::new(track, start, end(slice)));
                within.inside.leave(*name, &Inner::without_own(end(slice).saturating_sub(start)));
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

    /// Adds a time for which the next item of the stream on a track was waited for.
    pub(super) fn add_next(&mut self, stream: TrackId, part: &Part) {
        if self.count < MOST_WAITING {
            self.count += 1;
            self.nexts.entry(stream).or_default().push((part.start, part.end));
        }
    }

    /// Adds an interval below another track, or inside of another one on its own.
    pub(super) fn add(&mut self, parent: TrackId, below: Below<'s>) {
        if self.count >= MOST_WAITING {
            return;
        }
        self.count += below.size();
        self.below.entry(parent).or_default().push(below);
    }

    /// The times in the queue of the tasks that an interval is inside of, the last one first.
    pub(super) fn queues(&self, names: &TrackNames, slice: &Slice, depth: usize) -> Vec<Part> {
        let above = |track: &TrackId| names.track_above(*track);
        let around = if depth == 0 { names.track_above(slice.track) } else { Some(slice.track) };
        let lives = std::iter::successors(around, above).take(DEEPEST);
        let parts = lives.filter_map(|life| self.queues.get(&life)).flat_map(|parts| {
            let is_inside = |part: &&Part| part.end > slice.start;
            parts.iter().rev().take_while(is_inside).take(MOST_QUEUES)
        });
        let inside =
            |part: &Part| Part { start: part.start.max(slice.start), end: part.end.min(end(slice)), ..*part };
        parts.map(inside).collect()
    }
}

/// What they are for the interval around them, which ends then.
fn children<'b>(below: &'b [Below<'_>], end_around: i64) -> Vec<Child<'b>> {
    let child = |Below { slice, polls, within, .. }: &'b Below<'_>| {
        let (start, end) = (slice.start, end(slice).min(end_around));
        Child { start, end, polls, nexts: within.nexts.as_deref(), left: &within.left }
    };
    below.iter().map(child).collect()
}

fn end(slice: &Slice) -> i64 {
    slice.start.saturating_add(slice.duration)
}

/// The time that parts of an interval cover. Parts at the same time count once.
pub(super) fn covered<'p>(parts: impl IntoIterator<Item = &'p Part>) -> i64 {
    let parts = parts.into_iter().map(|part| (part.start, part.end));
    sum(merged(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(track: u32, start: i64, end: i64) -> Slice {
        let (name, duration) = (Key::OTHER, end - start);
        let (self_time, busy) = (duration, duration);
        Slice { track: TrackId(track), name, category: name, start, duration, self_time, busy, tag: 0 }
    }

    /// Takes what is inside of an interval that ends, and adds the interval below another one.
    fn end_below(nested: &mut Nested<'_>, parent: u32, slice: Slice, is_dropped: bool) {
        let (mut within, own) = nested.take(&slice, 0, is_dropped, &[]);
        within.own.extend(own);
        nested.add(TrackId(parent), Below { slice, wait: None, polls: &[], is_dropped, within });
    }

    fn time(own: &[Own]) -> i64 {
        sum(own.iter().map(|own| own.stretch))
    }

    #[test]
    fn the_time_of_an_interval_is_that_of_those_below_it_and_its_own() {
        let mut nested = Nested::default();
        let mut add = |parent, slice| end_below(&mut nested, parent, slice, false);
        add(1, slice(2, 10, 20)); // of an earlier one on the track
        add(2, slice(3, 50, 60));
        add(1, slice(2, 40, 70));
        add(1, slice(4, 60, 90)); // at the same time
        let (within, own) = nested.take(&slice(1, 30, 100), 0, false, &[]);
        assert_eq!(time(&own), 70 - 50);
        let all = within.inside();
        let all = all.names.values().next().expect("a name");
        assert_eq!((all.count, all.total, all.own.unknown), (3, 10 + 30 + 30, 10 + 10 + 30));
        assert_eq!(nested.count, 0);
    }

    #[test]
    fn of_intervals_at_the_same_time_the_one_that_ends_last_is_waited_for() {
        let mut nested = Nested::default();
        end_below(&mut nested, 2, slice(3, 10, 40), false); // inside of the shorter one
        end_below(&mut nested, 1, slice(2, 10, 50), false);
        end_below(&mut nested, 1, slice(4, 30, 90), false);
        let (within, own) = nested.take(&slice(1, 0, 100), 0, false, &[]);
        let times = |own: &[Own]| own.iter().map(|own| own.stretch).collect::<Vec<_>>();
        assert_eq!(times(&own), [(0, 10), (90, 100)]);
        assert_eq!(
            times(&within.own),
            [(30, 90), (10, 30)],
            "the second one up to the begin of the longer one"
        );
    }

    #[test]
    fn what_is_dropped_took_no_time_of_an_interval_that_went_on() {
        let of = |is_dropped| {
            let mut nested = Nested::default();
            let mut add = |slice, is_dropped| end_below(&mut nested, 1, slice, is_dropped);
            add(slice(2, 10, 20), true);
            add(slice(3, 20, 40), false);
            add(slice(4, 5, 99), true);
            let (within, own) = nested.take(&slice(1, 0, 100), 0, is_dropped, &[]);
            (time(&own), within.inside.dropped.values().map(|inner| inner.total).sum::<i64>())
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
