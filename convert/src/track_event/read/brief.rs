//! Events in brief: the fastest path, for all of a row.

use hairline_formats::proto::Fields;
use hairline_formats::track_event::{
    EventType, InternedEvent, Name, PlainEvent, ShortRow, ends_like_cut, fields::sequence_flags,
};

use crate::track_event::read::state::{State, double};
use crate::track_event::read::table::Table;
use crate::track_event::read::texts::InternedText;
use crate::{BriefEvent, BriefKind, BriefUse, MOST_BRIEF};

/// Why a row of events ends.
#[derive(PartialEq, Eq)]
enum End {
    /// The next packet is of another row, has another layout, or is not there.
    Layout,
    /// More is to be said of the next packet, or there are enough events.
    Item,
}

impl State {
    /// Reads events from the begin of `trace`, up to the first packet that is none or of which more is to be
    /// said. Returns the size of their packets, and the place of the last one.
    pub(super) fn briefs(
        &mut self,
        trace: &[u8],
        wanted: BriefUse,
        briefs: &mut Vec<BriefEvent>,
    ) -> (usize, usize) {
        let (mut at, mut last) = (0, 0);
        loop {
            let (read, size, end) = match row_at(&trace[at..]) {
                Some(row) => self.row(row, &trace[at..], wanted, briefs),
                None => (0, 0, End::Layout),
            };
            at += read;
            last = if read > 0 { at - size } else { last };
            if end == End::Item || briefs.len() == MOST_BRIEF {
                break;
            }
            // After a row there may be one of another sequence.
            if read == 0 {
                let Some((brief, size)) = self.other_brief(&trace[at..], wanted) else { break };
                briefs.push(brief);
                (last, at) = (at, at + size);
            }
        }
        (at, last)
    }

    /// Reads the events of a row. Returns the size of their packets, and that of the last one.
    fn row(
        &mut self,
        row: ShortRow,
        trace: &[u8],
        wanted: BriefUse,
        briefs: &mut Vec<BriefEvent>,
    ) -> (usize, usize, End) {
        let Some(index) = self.sequence(row.sequence()) else { return (0, 0, End::Item) };
        let Self { sequences, tracks, clocks, .. } = self;
        let sequence = &mut sequences[index];
        let track = tracks.find_again(sequence.track.unwrap_or_default());
        let (Some(track), Some(mut clock)) = (track, clocks.of(sequence, None)) else {
            return (0, 0, End::Layout);
        };
        let (track, sequence) = (tracks.get(track).id(), &*sequence);
        let is_known = row.flags() & sequence_flags::NEEDS == 0 || sequence.is_valid;
        if row.flags() & sequence_flags::CLEARED != 0 || !is_known {
            return (0, 0, End::Item);
        }
        let (mut rest, mut size) = (trace, 0);
        let end = loop {
            let Some((event, len)) = row.event(rest) else { break End::Layout };
            let is_whole = wanted == BriefUse::Counting || event.annotated.is_empty();
            if !is_whole || briefs.len() == MOST_BRIEF {
                break End::Item;
            }
            let Some(name) = given_number(&sequence.names, event.name) else { break End::Item };
            let Some(category) = given_number(&sequence.categories, event.category) else { break End::Item };
            // From here on the event is read.
            let Some(time) = clock.time(event.timestamp) else { break End::Item };
            briefs.push(BriefEvent { time, track, kind: kind(event.kind), name, category });
            (rest, size) = (&rest[len..], len);
        };
        (trace.len() - rest.len(), size, end)
    }

    /// Reads an event from a packet of another layout: of an SDK, of another track, or of a counter.
    #[inline(never)]
    fn other_brief(&mut self, trace: &[u8], wanted: BriefUse) -> Option<(BriefEvent, usize)> {
        let (message, size) = Fields::short_packet(trace)?;
        if ends_like_cut(&trace[..size]) && trace.get(size).is_none_or(|follow| *follow == 0) {
            return None; // perhaps a hole of zeros begins in it
        }
        let brief = match InternedEvent::decode(&message) {
            Some(event) => self.interned_brief(&event, wanted),
            None if wanted == BriefUse::Counting => self.counter_brief(&PlainEvent::decode(&message)?),
            None => None,
        };
        Some((brief?, size))
    }

    fn interned_brief(&mut self, event: &InternedEvent<'_>, wanted: BriefUse) -> Option<BriefEvent> {
        if wanted == BriefUse::Writing && !event.annotated.is_empty() {
            return None;
        }
        let (index, track) = self.place(event)?;
        let sequence = self.sequences.get_mut(index)?;
        let name = given_number(&sequence.names, event.name)?;
        let category = given_number(&sequence.categories, event.category)?;
        // From here on the event is read.
        let time = self.clocks.time(sequence, None, event.timestamp)?;
        Some(BriefEvent { time, track: self.tracks.get(track).id(), kind: kind(event.kind), name, category })
    }

    fn counter_brief(&mut self, event: &PlainEvent<'_>) -> Option<BriefEvent> {
        let index = self.sequence(event.sequence)?;
        let sequence = self.sequences.get(index)?;
        let is_known = event.flags & sequence_flags::NEEDS == 0 || sequence.is_valid;
        let has_flows = event.flow_id.is_some() || event.terminating_flow_id.is_some();
        let is_first = event.flags & sequence_flags::CLEARED != 0;
        if event.kind != EventType::Counter || !is_known || has_flows || is_first {
            return None;
        }
        let uuid = event.track_uuid.or(sequence.track).unwrap_or_default();
        let place = self.tracks.find_again(uuid)?;
        let (value, of) = (event.counter?, self.tracks.get(place));
        let (_, track) = (of.counter()?, of.id());
        let is_defined = |name, table: &Table<InternedText>| match name {
            Some(Name::Iid(iid)) => table.get(iid).is_some(),
            _ => true,
        };
        if !is_defined(event.name, &sequence.names) || !is_defined(event.category, &sequence.categories) {
            return None;
        }
        // From here on the event is read.
        let time = self.clocks.time(&mut self.sequences[index], event.clock_id, event.timestamp)?;
        let value = double(self.counter(index, place, uuid, value)?);
        Some(BriefEvent::counter(time, track, value))
    }
}

/// The row that begins here, with at least one event.
#[inline(never)]
fn row_at(trace: &[u8]) -> Option<ShortRow> {
    ShortRow::of(trace).filter(|row| row.event(trace).is_some())
}

#[inline(always)] // as `given_number`
fn kind(kind: EventType) -> BriefKind {
    match kind {
        EventType::SliceBegin => BriefKind::Begin,
        EventType::SliceEnd => BriefKind::End,
        _ => BriefKind::Instant,
    }
}

/// The number of an interned text. `None` if it has none, or is not defined.
#[inline(always)] // for every event
fn given_number(table: &Table<InternedText>, iid: u64) -> Option<u32> {
    if iid == 0 { Some(0) } else { BriefEvent::number(table.get(iid)?.id()) }
}
