//! Flows that end at the next slice or instant of a track: Trace Event JSON has them, as `f` without `bp:
//! "e"`.
//!
//! "Next" is in order of time, and of the file where times are equal, whatever the order of the file is. So
//! the first reading collects the ends, and in the second one each begin finds the end before it:
//!
//! ```text
//! time          10      20   25   30      40
//! ends          a            b            c
//! begins                20        30            a leads to 20, b to 30, c to nothing
//! ```

use std::collections::{BTreeMap, HashMap};

use hairline_convert::TrackId;

use crate::flows::Flows;
use crate::waiting::{FlowPoint, MOST_POINTS};

/// The time of an event, and its number.
type Moment = (i64, u32);

/// The ends, by track.
#[derive(Debug, Default)]
pub(crate) struct ToNext {
    tracks: HashMap<TrackId, BTreeMap<Moment, End>>,
    /// The number of all ends.
    len: usize,
    /// The number of those for which there was no memory.
    left_out: u64,
}

#[derive(Debug)]
struct End {
    point: FlowPoint,
    /// The earliest slice or instant between this end and the next one, and whether its category is chosen.
    next: Option<(Moment, bool)>,
}

impl ToNext {
    /// Adds an end.
    pub(crate) fn add(&mut self, track: TrackId, point: FlowPoint) {
        if self.len >= MOST_POINTS {
            self.left_out += 1;
            return;
        }
        self.len += 1;
        let (ends, own) = (self.tracks.entry(track).or_default(), (point.time, point.event));
        // Between the end before it and itself there is nothing, if the earliest one after that end is after
        // itself.
        let before = ends.range_mut(..own).next_back().map(|(_, end)| end);
        let next = before.and_then(|end| end.next.take_if(|(begin, _)| *begin > own));
        ends.insert(own, End { point, next });
    }

    /// Whether flows end on a track.
    #[inline]
    pub(crate) fn has(&self, track: TrackId) -> bool {
        self.len > 0 && self.tracks.contains_key(&track)
    }

    /// Notes a slice or an instant.
    pub(crate) fn begins(&mut self, track: TrackId, begin: Moment, is_chosen: bool) {
        let Some(ends) = self.tracks.get_mut(&track) else { return };
        if let Some((_, end)) = ends.range_mut(..begin).next_back()
            && end.next.is_none_or(|(earliest, _)| begin < earliest)
        {
            end.next = Some((begin, is_chosen));
        }
    }

    /// Adds all ends to the steps of flows, when all slices are known.
    pub(crate) fn finish(&mut self, flows: &mut Flows) {
        for ends in std::mem::take(&mut self.tracks).into_values() {
            let mut next = None;
            for End { point, next: own } in ends.into_values().rev() {
                next = own.or(next);
                match next {
                    Some(((_, number), is_chosen)) => flows.add(point.at(number, is_chosen)),
                    None => flows.loose += 1,
                }
            }
        }
        flows.left_out += std::mem::take(&mut self.left_out);
    }
}
