//! Intervals of async tasks below others: the life of a future is on a track below that of the future which
//! polls it.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::Slice;
use hairline_convert::timeline::Split;

use crate::explain::target::{Inner, Inside, Wait};

/// The intervals that wait for the end of the one around them, by the track that they are below.
#[derive(Default)]
pub(super) struct Nested {
    below: HashMap<TrackId, Vec<Below>>,
    count: usize,
}

/// An interval that is over, and what is inside of it.
struct Below {
    start: i64,
    end: i64,
    inside: Inside,
}

/// The limit for intervals that wait. Further ones are as if they were not inside of others.
const MOST_WAITING: usize = 1 << 20;

impl Nested {
    /// Takes the intervals below one that ends. Returns them, and the interval's time without them.
    pub(super) fn take(&mut self, slice: &Slice) -> (Inside, i64) {
        let (mut inside, mut own) = (Inside::default(), slice.duration);
        let Some(mut below) = self.below.remove(&slice.track) else { return (inside, own) };
        self.count -= below.len();
        // What began before it is of an earlier one on its track.
        below.retain(|one| one.start >= slice.start);
        below.sort_unstable_by_key(|one| one.start);
        let mut until = slice.start;
        for one in below {
            let end = one.end.min(slice.start.saturating_add(slice.duration));
            own = own.saturating_sub(end.saturating_sub(one.start.max(until)).max(0));
            until = until.max(end);
            inside.add(&one.inside);
        }
        (inside, own)
    }

    /// Adds an interval, which may be a wait for a lock, below another track: with what is inside of it, and
    /// its time without that.
    pub(super) fn add(
        &mut self,
        parent: TrackId,
        (slice, wait): (&Slice, Option<Wait>),
        (mut inside, own): (Inside, i64),
    ) {
        if self.count >= MOST_WAITING {
            return;
        }
        let own = Split { unknown: own, ..Split::default() };
        inside.slices(slice.name, wait, &Inner { count: 1, total: slice.duration, own });
        let end = slice.start.saturating_add(slice.duration);
        self.below.entry(parent).or_default().push(Below { start: slice.start, end, inside });
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use hairline_convert::slices::Key;

    use super::*;

    fn slice(track: u32, start: i64, end: i64) -> Slice {
        let (name, duration) = (Key::OTHER, end - start);
        let (self_time, busy) = (duration, duration);
        Slice { track: TrackId(track), name, category: name, start, duration, self_time, busy, tag: 0 }
    }

    #[test]
    fn the_time_of_an_interval_is_that_of_those_below_it_and_its_own() {
        let mut nested = Nested::default();
        let mut add = |parent, one: Slice| {
            let inside = nested.take(&one);
            nested.add(TrackId(parent), (&one, None), inside);
        };
        add(1, slice(2, 10, 20)); // of an earlier one on the track
        add(2, slice(3, 50, 60));
        add(1, slice(2, 40, 70));
        add(1, slice(4, 60, 90)); // at the same time
        let (inside, own) = nested.take(&slice(1, 30, 100));
        assert_eq!(own, 70 - 50);
        let all = inside.names.values().next().expect("a name");
        assert_eq!((all.count, all.total, all.own.unknown), (3, 10 + 30 + 30, 10 + 20 + 30));
        assert_eq!(nested.count, 0);
    }
}
