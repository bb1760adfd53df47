//! Intervals of async tasks below others: the life of a future is on a track below that of the future which
//! polls it.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::{Key, Slice};
use hairline_convert::timeline::Split;

use crate::explain::target::{Inner, MOST};

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
    names: HashMap<Key, Inner>,
}

/// The limit for intervals that wait. Further ones are as if they were not inside of others.
const MOST_WAITING: usize = 1 << 20;

/// The names inside of an interval, and its time without them.
pub(super) struct Inside {
    pub(super) names: HashMap<Key, Inner>,
    pub(super) own: i64,
}

impl Nested {
    /// Takes the intervals below one that ends.
    pub(super) fn take(&mut self, slice: &Slice) -> Inside {
        let mut inside = Inside { names: HashMap::new(), own: slice.duration };
        let Some(mut below) = self.below.remove(&slice.track) else { return inside };
        self.count -= below.len();
        // What began before it is of an earlier one on its track.
        below.retain(|one| one.start >= slice.start);
        below.sort_unstable_by_key(|one| one.start);
        let mut until = slice.start;
        for one in below {
            let end = one.end.min(slice.start.saturating_add(slice.duration));
            inside.own = inside.own.saturating_sub(end.saturating_sub(one.start.max(until)).max(0));
            until = until.max(end);
            for (name, inner) in one.names {
                add(&mut inside.names, name, &inner);
            }
        }
        inside
    }

    /// Adds an interval, with what is inside of it, below another track.
    pub(super) fn add(&mut self, parent: TrackId, slice: &Slice, mut inside: Inside) {
        if self.count >= MOST_WAITING {
            return;
        }
        let own = Split { unknown: inside.own, ..Split::default() };
        add(&mut inside.names, slice.name, &Inner { count: 1, total: slice.duration, own });
        let end = slice.start.saturating_add(slice.duration);
        self.below.entry(parent).or_default().push(Below { start: slice.start, end, names: inside.names });
        self.count += 1;
    }
}

fn add(names: &mut HashMap<Key, Inner>, name: Key, inner: &Inner) {
    let name = if names.len() < MOST || names.contains_key(&name) { name } else { Key::OTHER };
    names.entry(name).or_default().add(inner);
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
        let mut add = |parent, one: Slice| {
            let inside = nested.take(&one);
            nested.add(TrackId(parent), &one, inside);
        };
        add(1, slice(2, 10, 20)); // of an earlier one on the track
        add(2, slice(3, 50, 60));
        add(1, slice(2, 40, 70));
        add(1, slice(4, 60, 90)); // at the same time
        let inside = nested.take(&slice(1, 30, 100));
        assert_eq!(inside.own, 70 - 50);
        let all = inside.names.values().next().expect("a name");
        assert_eq!((all.count, all.total, all.own.unknown), (3, 10 + 30 + 30, 10 + 20 + 30));
        assert_eq!(nested.count, 0);
    }
}
