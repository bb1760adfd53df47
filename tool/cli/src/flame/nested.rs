//! Slices that wait for the end of the slice around them, which is on another track.
//!
//! The life of a future is on a track below that of the future which polls it. Slices come in the order of
//! their ends, so those inside of one precede it.

use std::collections::BinaryHeap;

use hairline_convert::{ByTrack, TrackId};

/// The limit for parts that wait, 32 MiB.
const MOST_WAITING: usize = 1 << 20;

/// The number of parts from which on those of one stack are added up before their track's slice ends.
const MANY: usize = 64;

/// What a stack weighs inside of a slice that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    /// The begin of the outermost slice of its track.
    pub(super) start: i64,
    /// The stack, from that slice on.
    pub(super) node: u32,
    pub(super) track: TrackId,
    /// The number of slices.
    pub(super) count: u32,
    pub(super) weight: i64,
}

/// What waits on a track.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Parts from the tracks below, whose stacks have no names of this track: those in the order of their
    /// begins, and those that began before others that ended earlier.
    below: Vec<Part>,
    late: BinaryHeap<Part>,
    /// Parts with the names around them, for the end of the track's outermost slice.
    named: Vec<Part>,
    /// The length at which those of one stack are added up.
    many: usize,
}

/// What waits, by the track of the slice that is around it.
#[derive(Debug, Default)]
pub(super) struct Nested {
    by_track: ByTrack<Option<Box<Waiting>>>,
    count: usize,
}

impl Waiting {
    fn len(&self) -> usize {
        self.below.len() + self.late.len() + self.named.len()
    }

    /// Removes a part that began at `start` or later.
    pub(super) fn pop(&mut self, start: i64) -> Option<Part> {
        self.below.pop_if(|part| part.start >= start).or_else(|| {
            self.late.peek().filter(|part| part.start >= start)?;
            self.late.pop()
        })
    }

    /// Adds a part without the names around it.
    fn push(&mut self, part: Part) {
        if self.below.last().is_none_or(|last| last.start <= part.start) {
            self.below.push(part);
        } else {
            self.late.push(part);
        }
    }

    /// Adds a part with the names around it.
    pub(super) fn push_named(&mut self, part: Part) {
        self.named.push(part);
        if self.named.len() >= self.many.max(MANY) {
            self.add_up();
            self.many = 2 * self.named.len();
        }
    }

    /// Adds up the parts of one stack.
    fn add_up(&mut self) {
        self.named.sort_unstable_by_key(|part| part.node);
        self.named.dedup_by(|part, sum| {
            let is_same = part.node == sum.node;
            if is_same {
                sum.weight = sum.weight.saturating_add(part.weight);
                sum.count = sum.count.saturating_add(part.count);
            }
            is_same
        });
    }

    /// The parts without the names around them, and those with them, one of each stack.
    pub(super) fn into_parts(mut self) -> (Vec<Part>, Vec<Part>) {
        self.add_up();
        self.below.extend(self.late);
        (self.below, self.named)
    }
}

impl Nested {
    /// The number of parts.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Removes what waits on a track.
    pub(super) fn take(&mut self, track: TrackId) -> Option<Box<Waiting>> {
        let waiting = self.by_track.get_mut(track)?.take()?;
        self.count -= waiting.len();
        Some(waiting)
    }

    /// Puts back what waits on a track. Returns what is beyond the limit.
    #[must_use]
    pub(super) fn put(&mut self, track: TrackId, waiting: Box<Waiting>) -> Vec<Waiting> {
        self.count += waiting.len();
        *self.by_track.at(track) = Some(waiting);
        self.beyond_limit()
    }

    /// Adds parts to those that wait for a slice of a track. Returns what is beyond the limit.
    #[must_use]
    pub(super) fn add(&mut self, around: TrackId, parts: impl IntoIterator<Item = Part>) -> Vec<Waiting> {
        let waiting = self.by_track.at(around).get_or_insert_default();
        let before = waiting.len();
        parts.into_iter().for_each(|part| waiting.push(part));
        self.count += waiting.len() - before;
        self.beyond_limit()
    }

    fn beyond_limit(&mut self) -> Vec<Waiting> {
        if self.count > MOST_WAITING { self.longest() } else { Vec::new() }
    }

    /// Removes the track with most parts: that of a group of tracks has no slice that takes them. If each
    /// track has few, removes all, so that the next search is far away.
    #[cold]
    fn longest(&mut self) -> Vec<Waiting> {
        let all = self.by_track.iter_mut();
        let longest = all.max_by_key(|(_, waiting)| waiting.as_ref().map_or(0, |waiting| waiting.len()));
        let longest = longest.map(|(track, _)| track).and_then(|track| self.take(track));
        let all = if self.count > MOST_WAITING / 16 * 15 { self.take_all() } else { Vec::new() };
        longest.into_iter().map(|waiting| *waiting).chain(all).collect()
    }

    /// Removes everything.
    pub(super) fn take_all(&mut self) -> Vec<Waiting> {
        self.count = 0;
        self.by_track.iter_mut().filter_map(|(_, waiting)| waiting.take()).map(|waiting| *waiting).collect()
    }
}
