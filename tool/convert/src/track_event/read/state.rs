//! The state of a TrackEvent reader.

use std::collections::VecDeque;

use hairline_formats::track_event::{CounterValue, Packet, PacketData, PacketReader, SequenceId, TrackUuid};

use hairline_formats::DecodeError;

use crate::flow_ids::FlowIds;
use crate::starts::Starts;
use crate::track_event::read::ahead::{LookAhead, with_description};
use crate::track_event::read::clocks::Clocks;
use crate::track_event::read::current::Current;
use crate::track_event::read::pending::{Interned, Pending};
use crate::track_event::read::scheduling::Scheduler;
use crate::track_event::read::sequence::{Sequence, UndefinedArguments};
use crate::track_event::read::stacks::{CurrentSample, CurrentStack};
use crate::track_event::read::table::Table;
use crate::track_event::read::texts::SharedTexts;
use crate::track_event::read::tracks::{MOST_ANCESTORS, Tracks};
use crate::{Context, Report};

/// The limit for packet sequences, some 130 bytes each. A sequence is a thread, but a packet of 6 bytes can
/// create one. No Linux has more threads at once.
const MOST_SEQUENCES: usize = 1 << 22;

/// The state of a TrackEvent reader, without its input.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sequences: Vec<Sequence>,
    /// The indices of sequences, by id.
    places: Table<u32>,
    pub(super) tracks: Tracks,
    pub(super) ahead: LookAhead,
    pub(super) clocks: Clocks,
    pub(super) texts: SharedTexts,
    pub(super) current: Current,
    pub(super) undefined: UndefinedArguments,
    pub(super) flows: FlowIds,
    pub(super) pending: VecDeque<Pending>,
    /// The event after those in brief, which is read already, and its place in the input.
    pub(super) ready: Option<(Interned, u64)>,
    pub(super) starts: Starts,
    pub(super) report: Report,
    /// The lost events in the latest statistics.
    pub(super) lost: u64,
    /// The program that wrote the trace, and the machine as in `uname`.
    pub(super) writer: String,
    pub(super) system: [String; 4],
    /// A packet in its own format; empty if it is not valid by itself.
    pub(super) foreign: Vec<u8>,
    pub(super) scheduler: Scheduler,
    pub(super) sample: CurrentSample,
    pub(super) stack: CurrentStack,
}

impl State {
    #[inline]
    pub(super) fn sequence(&mut self, number: SequenceId) -> Option<usize> {
        if self.sequences.get(self.current.sequence).is_some_and(|last| last.number == number) {
            return Some(self.current.sequence);
        }
        let new = self.sequences.len();
        let index = match self.places.get(u64::from(number.0)) {
            Some(index) => *index as usize,
            None if new == MOST_SEQUENCES => return None,
            None => {
                self.places.set(u64::from(number.0), new as u32); // at most MOST_SEQUENCES
                self.sequences.push(Sequence::new(number));
                new
            }
        };
        self.current.sequence = index;
        Some(index)
    }

    /// The index of an event's track. Adds the track if it has no description.
    #[inline]
    pub(super) fn track(&mut self, uuid: TrackUuid, context: &mut Context) -> Result<u32, DecodeError> {
        self.look_for(uuid, context)?;
        Ok(self.tracks.used(uuid, context, &mut self.pending))
    }

    /// Reads the description of a track that is not described yet, and those of its ancestors, if they follow
    /// in the input.
    #[inline]
    pub(super) fn look_for(&mut self, uuid: TrackUuid, context: &mut Context) -> Result<(), DecodeError> {
        if uuid == TrackUuid(0) || self.tracks.find_again(uuid).or_else(|| self.tracks.find(uuid)).is_some() {
            Ok(())
        } else {
            self.look_ahead(uuid, context)
        }
    }

    #[cold]
    fn look_ahead(&mut self, uuid: TrackUuid, context: &mut Context) -> Result<(), DecodeError> {
        let Self { tracks, ahead, texts, pending, report, .. } = self;
        let (mut branch, mut next) = (Vec::new(), Some(uuid));
        while let Some(uuid) = next
            && branch.len() < MOST_ANCESTORS
            && tracks.find(uuid).is_none()
            && let Some(packet) = ahead.take(uuid, |uuid| tracks.find(uuid).is_some(), report)
        {
            next = with_description(&packet, |track| Ok(track.parent_uuid))?;
            branch.push(packet);
        }
        for packet in branch.iter().rev() {
            with_description(packet, |track| tracks.describe(track, texts, context, pending, report))?;
        }
        Ok(())
    }

    /// The trace time of a packet. `None` for an unknown clock.
    pub(super) fn time(
        &mut self,
        index: usize,
        id: Option<u32>,
        timestamp: u64,
    ) -> Result<Option<i64>, DecodeError> {
        if let Some(time) = self.clocks.time(&mut self.sequences[index], id, timestamp) {
            return Ok(Some(time));
        }
        self.look_for_clock(index, id)?;
        Ok(self.clocks.time(&mut self.sequences[index], id, timestamp))
    }

    /// Reads the clock in its first snapshot, if that follows in the input.
    #[cold]
    fn look_for_clock(&mut self, index: usize, id: Option<u32>) -> Result<(), DecodeError> {
        let Some(clock) = self.clocks.missing(&self.sequences[index], id) else { return Ok(()) };
        let Self { tracks, ahead, clocks, report, .. } = self;
        if let Some(packet) = ahead.take_snapshot(clock, |uuid| tracks.find(uuid).is_some(), report) {
            let mut reader = PacketReader::new(&packet[..]);
            if let Some((_, Packet { sequence, data: Some(PacketData::Clocks(readings)), .. })) =
                reader.next()?
            {
                clocks.reading_ahead(sequence, readings, clock)?;
            }
        }
        Ok(())
    }

    /// Counts the undefined references of the last event's arguments.
    #[inline]
    pub(super) fn settle_undefined(&mut self) {
        self.undefined.settle(&mut self.report);
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
        let sum = self.sequences[index].rest_mut().counters.entry(uuid).or_insert(CounterValue::Int(0));
        *sum = match (*sum, value) {
            (CounterValue::Int(a), CounterValue::Int(b)) => CounterValue::Int(a.wrapping_add(b)),
            (a, b) => CounterValue::Double(double(a) + double(b)),
        };
        Some(*sum)
    }
}

#[allow(clippy::cast_precision_loss)] // importers use doubles
pub(super) fn double(value: CounterValue) -> f64 {
    match value {
        CounterValue::Int(value) => value as f64,
        CounterValue::Double(value) => value,
    }
}
