//! Finds complete slices that follow a shorter one with the same begin.
//!
//! Importers of FXT and TrackEvent take the first of two slices with equal begin as the outer one, and drop
//! the other.

use std::collections::VecDeque;

use crate::{ByTrack, TrackId};

/// The begins of each thread.
#[derive(Debug, Default)]
pub(crate) struct Starts(ByTrack<ThreadStarts>);

/// The begin and the longest duration of slices that an enclosing slice may still follow, in the order of
/// their begins. It may come after slices that began before it.
#[derive(Debug, Default)]
pub(crate) enum ThreadStarts {
    #[default]
    None,
    /// Those of a thread with one slice. There may be millions.
    One(i64, i64),
    Many(Box<Begins>),
}

#[derive(Debug, Default)]
pub(crate) struct Begins(VecDeque<(i64, i64)>);

/// The limit for the slices of one thread; 64 KiB.
const MOST: usize = 4096;

/// What reports say of such slices.
pub(crate) const LATE: &str =
    "slices that follow an inner one with the same begin, which only importers of JSON accept";

impl Starts {
    /// Returns whether the slice encloses an earlier one with the same begin.
    pub(crate) fn is_late(&mut self, thread: TrackId, time: i64, duration: i64) -> bool {
        self.0.at(thread).is_late(time, duration)
    }
}

impl ThreadStarts {
    /// As [`Starts::is_late`].
    pub(crate) fn is_late(&mut self, time: i64, duration: i64) -> bool {
        let seen = match self {
            Self::None => {
                *self = Self::One(time, duration);
                return false;
            }
            Self::One(begin, inner) => {
                *self = Self::Many(Box::new(Begins([(*begin, *inner)].into())));
                return self.is_late(time, duration);
            }
            Self::Many(seen) => &mut seen.0,
        };
        let place = match seen.back() {
            Some((latest, _)) if *latest >= time => seen.partition_point(|(begin, _)| *begin < time),
            _ => seen.len(),
        };
        if let Some((begin, inner)) = seen.get_mut(place)
            && *begin == time
        {
            let is_late = *inner < duration;
            *inner = duration.max(*inner);
            return is_late;
        }
        seen.insert(place, (time, duration));
        if seen.len() > MOST {
            seen.pop_front();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_outer_slice_that_comes_second_is_late() {
        let mut starts = Starts::default();
        let mut is_late = |time, duration| starts.is_late(TrackId(0), time, duration);
        assert!(!is_late(10, 5) && !is_late(16, 1) && is_late(10, 20), "child, sibling, parent");
        assert!(!is_late(40, 20) && !is_late(40, 5) && !is_late(41, 1), "parent, child, grandchild");
        assert!(!is_late(5, 100) && !is_late(40, 20) && is_late(40, 21), "after a slice that began before");
    }
}
