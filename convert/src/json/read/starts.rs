//! Slices that begin together with an inner one that stands before them.
//!
//! Tracers that write a slice when it ends write it after those inside. Importers put that right by the times, but where both begin at one
//! moment: of FXT and TrackEvent, those take the one that comes first for the outer one, and drop the other. Nothing is sorted here, so it
//! is counted.

use std::collections::HashMap;

use crate::model::TrackId;

/// Of each thread, the begin and duration of slices that one around them may yet follow.
#[derive(Debug, Default)]
pub(super) struct Starts(HashMap<TrackId, Vec<(i64, i64)>>);

/// Slices that are remembered of a thread; 64 KiB.
const MOST: usize = 4096;

impl Starts {
    /// Whether a slice is around one that began together with it and was there before.
    pub(super) fn is_late(&mut self, thread: TrackId, time: i64, duration: i64) -> bool {
        let seen = self.0.entry(thread).or_default();
        while seen.pop_if(|(begin, _)| *begin > time).is_some() {}
        if seen.len() == MOST {
            seen.drain(..MOST / 2);
        }
        match seen.last_mut() {
            Some((begin, inner)) if *begin == time => {
                let is_late = *inner < duration;
                *inner = duration.max(*inner);
                is_late
            }
            _ => {
                seen.push((time, duration));
                false
            }
        }
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
        assert!(!is_late(5, 100));
    }
}
