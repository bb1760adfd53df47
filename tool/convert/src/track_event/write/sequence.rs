//! The incremental state of a packet sequence.

use std::collections::{HashMap, hash_map::Entry};

use hairline_formats::track_event::{
    self as te, EventType, InternedKind, Location, LogMessage, Name, SequenceId, SequenceStart,
    SourceLocation, TrackUuid, fields::clock,
};

use crate::track_event::stacks::{Interned, Shown};
use crate::track_event::write::emitted::{Emitted, Of};
use crate::{Log, Stack, StringId, Strings, Text};

/// A packet sequence: the events of a thread, and of other tracks in between.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub(super) number: SequenceId,
    /// The default track.
    pub(super) track_uuid: TrackUuid,
    /// The default tracks of extra counter values.
    pub(super) extra_counters: Vec<TrackUuid>,
    /// Whether the sequence has begun, and whether its state is valid.
    has_begun: bool,
    is_valid: bool,
    dropped: bool,
    last: u64,
    /// The latest time of a begin or an end.
    slices_until: u64,
    log_bodies: u64,
    emitted: Emitted,
    /// The interned parts of call stacks, once there are any.
    stacks: Option<Box<Interned>>,
    /// The number of argument names that importers show differently.
    pub(super) names_shown_otherwise: u64,
}

impl Sequence {
    pub(super) fn new(number: SequenceId, track_uuid: TrackUuid) -> Self {
        Self { number, track_uuid, ..Self::default() }
    }

    /// Records a loss: the next packet starts a new state.
    pub(super) fn drop_state(&mut self) {
        (self.is_valid, self.dropped) = (false, true);
    }

    /// Changes the default tracks of extra counter values.
    pub(super) fn set_extra_counters(&mut self, uuids: Vec<TrackUuid>) {
        (self.is_valid, self.extra_counters) = (false, uuids);
    }

    /// Emits a recorded loss that no event followed.
    pub(super) fn emit_loss(&mut self, out: &mut Vec<u8>, time: u64) {
        if self.dropped {
            self.begin(out, time);
        }
    }

    /// Starts the state if it is not valid.
    #[inline]
    pub(super) fn begin(&mut self, out: &mut Vec<u8>, time: u64) {
        if !self.is_valid {
            self.begin_anew(out, time);
        }
    }

    #[cold]
    fn begin_anew(&mut self, out: &mut Vec<u8>, time: u64) {
        let start = SequenceStart {
            sequence: self.number,
            // A loss before the first packet needs the dropped flag, so that packet is not marked as the
            // first.
            first: !self.has_begun && !self.dropped,
            dropped: self.dropped,
            track_uuid: self.track_uuid,
            extra_counters: &self.extra_counters,
            timestamp_ns: time,
        };
        te::sequence_start(out, &start);
        (self.has_begun, self.is_valid, self.dropped, self.last) = (true, true, false, time);
        self.emitted.clear();
        self.stacks = None;
    }

    /// The timestamp for a time, and its clock if the time is before the last one: the incremental clock
    /// cannot go back.
    pub(super) fn timestamp(&mut self, time: u64) -> (u64, Option<u32>) {
        match time.checked_sub(self.last) {
            Some(since) => {
                self.last = time;
                (since, None)
            }
            None => (time, Some(clock::BOOTTIME)),
        }
    }

    /// The timestamp for a time on the incremental clock. `None` if the state is not valid, or the time is
    /// before the last one.
    #[inline]
    pub(super) fn since_last(&self, time: u64) -> Option<u64> {
        time.checked_sub(self.last).filter(|_| self.is_valid)
    }

    /// Records the time of an event on the incremental clock.
    #[inline]
    pub(super) fn pass(&mut self, time: u64, kind: EventType) {
        self.last = time;
        if kind != EventType::Instant {
            self.slices_until = time;
        }
    }

    /// Records the time of a begin or an end.
    pub(super) fn pass_slice(&mut self, time: i64) {
        self.slices_until = self.slices_until.max(u64::try_from(time).unwrap_or(0));
    }

    /// The latest time of a begin or an end.
    pub(super) fn slices_until(&self) -> i64 {
        self.slices_until.try_into().unwrap_or(i64::MAX)
    }

    /// Whether the strings of an event were emitted. Without a number there is no string.
    #[inline]
    pub(super) fn knows(&self, category: Option<StringId>, name: Option<StringId>) -> bool {
        category.is_none_or(|id| self.emitted.has(Of::Category, id.0))
            && name.is_none_or(|id| self.emitted.has(Of::Name, id.0))
    }

    /// A string: its id if it has a number, otherwise its text. Emits a new id.
    #[inline]
    pub(super) fn name<'a>(&mut self, out: &mut Vec<u8>, kind: InternedKind, text: Text<'a>) -> Name<'a> {
        let Some(id) = text.id else {
            if matches!(kind, InternedKind::AnnotationName) {
                self.count_name(text.text);
            }
            return Name::Text(text.text);
        };
        let of = match kind {
            InternedKind::Category => Of::Category,
            InternedKind::EventName => Of::Name,
            InternedKind::AnnotationName => Of::AnnotationName,
            InternedKind::AnnotationText => Of::AnnotationText,
            _ => return Name::Text(text.text),
        };
        let (iid, name) = (id.iid(), text.text);
        if self.emitted.add(of, id.0) {
            if matches!(kind, InternedKind::AnnotationName) {
                self.count_name(name);
            }
            te::interned(out, self.number, &[te::Interned::Text { kind, iid, name }]);
        }
        Name::Iid(iid)
    }

    fn count_name(&mut self, of_argument: &str) {
        self.names_shown_otherwise += u64::from(of_argument.contains(['.', '[', ']']));
    }

    /// Writes a log message's text and the place that its tag shows, and returns the message.
    pub(super) fn log_message(
        &mut self,
        out: &mut Vec<u8>,
        locations: &mut Locations,
        log: Log<'_>,
    ) -> LogMessage {
        let body_iid = self.log_body(out, log.body);
        let tag = log.tag.map(|tag| self.location(out, locations, tag));
        let source_location_iid = if let Some(Location::Iid(iid)) = tag { iid } else { 0 };
        LogMessage { body_iid, priority: log.priority, source_location_iid }
    }

    /// Emits the text of a log message, and returns its id, which is used once.
    fn log_body(&mut self, out: &mut Vec<u8>, name: &str) -> u64 {
        self.log_bodies += 1;
        te::interned(
            out,
            self.number,
            &[te::Interned::Text { kind: InternedKind::LogBody, iid: self.log_bodies, name }],
        );
        self.log_bodies
    }

    /// Writes the parts of a call stack that are new, and returns the stack's id; `None` if it has no frames.
    pub(super) fn callstack(
        &mut self,
        out: &mut Vec<u8>,
        stack: &dyn Stack,
        shown: &mut Shown,
    ) -> Option<u64> {
        let interned = self.stacks.get_or_insert_default();
        let iid = interned.callstack(out, self.number, stack, Some(shown));
        // The event with this id is on the sequence before it starts anew.
        self.is_valid &= !interned.is_full();
        (iid != 0).then_some(iid)
    }

    /// A source location: its id if it has one, otherwise in full.
    pub(super) fn location<'a>(
        &mut self,
        out: &mut Vec<u8>,
        locations: &mut Locations,
        at: SourceLocation<'a>,
    ) -> Location<'a> {
        let Some(number) = locations.number(at) else { return Location::At(at) };
        let iid = u64::from(number);
        if self.emitted.add(Of::Location, number) {
            te::interned(out, self.number, &[te::Interned::Location { iid, at }]);
        }
        Location::Iid(iid)
    }
}

/// The ids of source locations.
#[derive(Debug, Default)]
pub(super) struct Locations {
    names: Strings,
    numbers: HashMap<(StringId, StringId, u32), u32>,
}

/// The limit for locations with an id, some 30 bytes each. Further ones are written in full.
const MOST_LOCATIONS: usize = 1 << 18;

impl Locations {
    /// The id of a location, from 1. Returns `None` beyond the limit.
    fn number(&mut self, at: SourceLocation<'_>) -> Option<u32> {
        let key = (self.names.number(at.file)?, self.names.number(at.function)?, at.line);
        let next = u32::try_from(self.numbers.len() + 1).ok()?;
        match self.numbers.entry(key) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(_) if next as usize > MOST_LOCATIONS => None,
            Entry::Vacant(new) => Some(*new.insert(next)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_number_and_there_are_not_more_than_so_many() {
        let mut locations = Locations::default();
        let mut number = |file, function, line| locations.number(SourceLocation { file, function, line });
        let all = [("a", "f", 1), ("a", "f", 2), ("a", "g", 1), ("b", "f", 1), ("a", "f", 1)];
        assert_eq!(all.map(|(file, function, line)| number(file, function, line)), [1, 2, 3, 4, 1].map(Some));
        let more = (10..).take(MOST_LOCATIONS).filter(|line| number("a", "f", *line).is_some());
        assert_eq!(more.count(), MOST_LOCATIONS - 4);
        assert_eq!((number("a", "f", 2), number("a", "f", 9)), (Some(2), None));
    }
}
