//! The state of a TrackEvent reader.

use std::collections::VecDeque;

use hairline_formats::track_event::{CounterValue, SequenceId, TrackUuid};

use crate::Report;
use crate::track_event::read::clocks::Clocks;
use crate::track_event::read::current::Current;
use crate::track_event::read::pending::Pending;
use crate::track_event::read::sequence::{Sequence, SharedTexts};
use crate::track_event::read::table::Table;
use crate::track_event::read::tracks::Tracks;

/// The limit for packet sequences. A sequence is a thread, but a packet of 6 bytes can create one.
const MOST_SEQUENCES: usize = 1 << 18;

/// The state of a TrackEvent reader, without its input.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sequences: Vec<Sequence>,
    /// The indices of sequences, by id.
    places: Table<usize>,
    pub(super) tracks: Tracks,
    pub(super) clocks: Clocks,
    pub(super) texts: SharedTexts,
    pub(super) current: Current,
    pub(super) pending: VecDeque<Pending>,
    pub(super) report: Report,
    /// The lost events in the latest statistics.
    pub(super) lost: u64,
    /// The program that wrote the trace, and the machine as in `uname`.
    pub(super) writer: String,
    pub(super) system: [String; 4],
    pub(super) foreign: Vec<u8>,
}

impl State {
    #[inline]
    pub(super) fn sequence(&mut self, number: SequenceId) -> Option<usize> {
        if self.sequences.get(self.current.sequence).is_some_and(|last| last.number == number) {
            return Some(self.current.sequence);
        }
        let new = self.sequences.len();
        let index = match self.places.get(u64::from(number.0)) {
            Some(index) => *index,
            None if new == MOST_SEQUENCES => return None,
            None => {
                self.places.set(u64::from(number.0), new);
                self.sequences.push(Sequence { number, ..Sequence::default() });
                new
            }
        };
        self.current.sequence = index;
        Some(index)
    }

    /// Counts the undefined references of the last event's arguments.
    #[inline]
    pub(super) fn settle_undefined(&mut self) {
        if let Some(sequence) = self.sequences.get_mut(self.current.sequence) {
            sequence.undefined.settle(&mut self.report);
        }
    }

    /// The absolute value of a counter. Returns `None` if the track is no counter.
    pub(super) fn counter(
        &mut self,
        index: usize,
        track: u32,
        uuid: TrackUuid,
        value: CounterValue,
    ) -> Option<CounterValue> {
        if !self.tracks.get(track).counter()?.is_incremental {
            return Some(value);
        }
        let sum = self.sequences[index].counters.entry(uuid).or_insert(CounterValue::Int(0));
        *sum = match (*sum, value) {
            (CounterValue::Int(a), CounterValue::Int(b)) => CounterValue::Int(a.wrapping_add(b)),
            (a, b) => CounterValue::Double(double(a) + double(b)),
        };
        Some(*sum)
    }
}

#[allow(clippy::cast_precision_loss)] // importers use doubles
fn double(value: CounterValue) -> f64 {
    match value {
        CounterValue::Int(value) => value as f64,
        CounterValue::Double(value) => value,
    }
}
