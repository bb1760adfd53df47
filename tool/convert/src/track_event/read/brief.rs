//! Events in brief: the fastest path, for all of a row.

use hairline_formats::proto::Fields;
use hairline_formats::track_event::{
    EventType, InternedEvent, ShortRow, ends_like_cut, fields::sequence_flags,
};

use crate::track_event::read::pending::Interned;
use crate::track_event::read::state::{State, double};
use crate::track_event::read::table::Table;
use crate::track_event::read::texts::InternedText;
use crate::{BriefEvent, BriefKind, BriefUse, MOST_BRIEF};

/// Why a row of events ends.
#[derive(PartialEq, Eq)]
enum End {
    /// The next packet is of another row, has another layout, or is not there.
    Layout,
    /// The next packet has arguments, which are wanted.
    Arguments,
    /// More is to be said of the next packet, or there are enough events.
    Item,
}

/// An event that is in no row.
enum Other {
    Brief(BriefEvent),
    /// One of which a brief event does not say everything.
    Whole(Interned),
}

impl State {
    /// Reads events from the begin of `trace`, up to the first packet that is none or of which more is to be
    /// said. If that is an event, reads it too: it is then [`ready`](State::ready). Returns the size of their
    /// packets, and the place of the last one in brief. `trace` is at `offset` of the input.
    pub(super) fn briefs(
        &mut self,
        (offset, trace): (u64, &[u8]),
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
            let other = match end {
                End::Arguments => self.with_arguments(&trace[at..]),
                _ if read == 0 => self.other(&trace[at..], wanted),
                _ => continue, // after a row there may be one of another sequence
            };
            let place = at;
            match other {
                Some((Other::Brief(brief), size)) => {
                    briefs.push(brief);
                    (last, at) = (place, place + size);
                }
                Some((Other::Whole(event), size)) => {
                    self.ready = Some((event, offset + place as u64));
                    at += size;
                    break;
                }
                None => break,
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
        let track = tracks.find_again(sequence.track_of(None));
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
            if briefs.len() == MOST_BRIEF {
                break End::Item;
            }
            if wanted == BriefUse::Writing && !event.annotated.is_empty() {
                break End::Arguments;
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

    /// Reads an event that is of a row, but for its arguments.
    #[inline(never)]
    fn with_arguments(&mut self, trace: &[u8]) -> Option<(Other, usize)> {
        let (event, size) = InternedEvent::decode_short(trace)?;
        Some((Other::Whole(self.interned(&event)?), size))
    }

    /// Reads an event from a packet of another layout: of an SDK, of another track, or of a counter.
    #[inline(never)]
    fn other(&mut self, trace: &[u8], wanted: BriefUse) -> Option<(Other, usize)> {
        let (message, size) = Fields::short_packet(trace)?;
        if ends_like_cut(&trace[..size]) && trace.get(size).is_none_or(|follow| *follow == 0) {
            return None; // perhaps a hole of zeros begins in it
        }
        let event = InternedEvent::decode(&message)?;
        let has_more = event.counter.is_some() || !event.annotated.is_empty();
        let other = match wanted {
            BriefUse::Writing if has_more => Other::Whole(self.interned_too(&event)?),
            _ => Other::Brief(self.interned_brief(&event)?),
        };
        Some((other, size))
    }

    fn interned_brief(&mut self, event: &InternedEvent<'_>) -> Option<BriefEvent> {
        let (index, place, uuid) = self.place(event)?;
        let sequence = self.sequences.get_mut(index)?;
        let name = given_number(&sequence.names, event.name)?;
        let category = given_number(&sequence.categories, event.category)?;
        // From here on the event is read.
        let time = self.clocks.time(sequence, None, event.timestamp)?;
        let track = self.tracks.get(place).id();
        if let Some(value) = event.counter {
            let value = double(self.counter(index, place, uuid, value)?);
            return Some(BriefEvent::counter(time, track, value));
        }
        Some(BriefEvent { time, track, kind: kind(event.kind), name, category })
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
