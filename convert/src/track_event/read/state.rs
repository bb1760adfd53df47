//! What is known of the trace, and what is to be given out.

use std::collections::VecDeque;

use hairline_formats::track_event::CounterValue;

use crate::report::Report;
use crate::track_event::read::clocks::Clocks;
use crate::track_event::read::current::Current;
use crate::track_event::read::pending::Pending;
use crate::track_event::read::sequence::{Sequence, SharedTexts};
use crate::track_event::read::table::Table;
use crate::track_event::read::tracks::Tracks;

/// Sequences beyond these are refused: they are threads, and a packet of 6 bytes makes one.
const MOST_SEQUENCES: usize = 1 << 18;

/// All that was said so far.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sequences: Vec<Sequence>,
    /// Their places, by their numbers.
    places: Table<usize>,
    pub(super) tracks: Tracks,
    pub(super) clocks: Clocks,
    pub(super) texts: SharedTexts,
    pub(super) current: Current,
    pub(super) pending: VecDeque<Pending>,
    pub(super) report: Report,
    /// Events that statistics said were lost.
    pub(super) lost: u64,
    /// Who wrote the trace; the machine, as `uname` has it.
    pub(super) writer: String,
    pub(super) system: [String; 4],
    pub(super) foreign: Vec<u8>,
}

impl State {
    #[inline]
    pub(super) fn sequence(&mut self, number: u32) -> Option<usize> {
        if self.sequences.get(self.current.sequence).is_some_and(|last| last.number == number) {
            return Some(self.current.sequence);
        }
        let new = self.sequences.len();
        let place = match self.places.get(u64::from(number)) {
            Some(place) => *place,
            None if new == MOST_SEQUENCES => return None,
            None => {
                self.places.set(u64::from(number), new);
                self.sequences.push(Sequence { number, ..Sequence::default() });
                new
            }
        };
        self.current.sequence = place;
        Some(place)
    }

    /// What a counter shows whose track says that its values are differences, or not.
    pub(super) fn counter(
        &mut self,
        place: usize,
        track: u32,
        uuid: u64,
        value: CounterValue,
    ) -> Option<CounterValue> {
        if !self.tracks.get(track).counter()?.is_incremental {
            return Some(value);
        }
        let sum = self.sequences[place].counters.entry(uuid).or_insert(CounterValue::Int(0));
        *sum = match (*sum, value) {
            (CounterValue::Int(a), CounterValue::Int(b)) => CounterValue::Int(a.wrapping_add(b)),
            (a, b) => CounterValue::Double(double(a) + double(b)),
        };
        Some(*sum)
    }
}

#[allow(clippy::cast_precision_loss)] // importers make doubles of all
fn double(value: CounterValue) -> f64 {
    match value {
        CounterValue::Int(value) => value as f64,
        CounterValue::Double(value) => value,
    }
}
