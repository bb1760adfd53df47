//! Reads the packets that Hairline writes for most events: a row of them belongs to one sequence, and differs
//! in few bytes.

use crate::proto::{WireType, tag};
use crate::track_event::SequenceId;
use crate::track_event::fields::{EventType, trace};
use crate::track_event::read::short_tags::{
    ANNOTATION, BEGIN, CATEGORY, END, HEAD, INSTANT, NAME, TIMESTAMP, TYPE,
};

/// The first eight bytes of a packet with its tag, as Hairline writes it: its length, and its `HEAD`, each
/// number in one byte.
const WHOLE: u64 = tag(trace::PACKET, WireType::Bytes) as u64 | HEAD << 16;
const WHOLE_MASK: u64 = 0x80ff_80ff_80ff_80ff;
const WHOLE_LEN: usize = 8;

/// The limit for a packet and the eight bytes after it, which are loaded together with its last ones.
pub(super) const LONGEST: usize = 2 + 0x7f + 8;

/// A row of packets of one sequence, with equal flags, that
/// [`InternedEvent::decode_short`](crate::track_event::InternedEvent::decode_short) can read.
///
/// ```
/// use hairline_formats::track_event::{Event, EventType, Name, SequenceId, ShortRow, event};
///
/// let mut trace = Vec::new();
/// for time in 1..=20 {
///     let begin = Event::new(SequenceId(1), EventType::SliceBegin, time);
///     event(&mut trace, &Event { name: Some(Name::Iid(3)), ..begin });
/// }
/// let row = ShortRow::of(&trace).unwrap();
/// let (mut rest, mut events) = (&trace[..], 0);
/// while let Some((event, size)) = row.event(rest) {
///     assert_eq!((row.sequence(), event.name, event.timestamp), (SequenceId(1), 3, events + 1));
///     (rest, events) = (&rest[size..], events + 1);
/// }
/// assert!(events > 5); // the last ones are not followed by enough bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortRow(u64);

/// An event of a [`ShortRow`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ShortRowEvent<'a> {
    /// The time, on the sequence's default clock.
    pub timestamp: u64,
    /// The type: a begin or an end of a slice, or an instant.
    pub kind: EventType,
    /// The id of the name; 0 if it is missing.
    pub name: u64,
    /// The id of the only category; 0 if it is missing.
    pub category: u64,
    /// The event's bytes from its first argument on, as
    /// [`InternedEvent::annotated`](crate::track_event::InternedEvent::annotated).
    pub annotated: &'a [u8],
}

/// The bits of a packet's first eight bytes that a row has in common: all but the sizes.
const ROW_MASK: u64 = WHOLE_MASK | 0x7f << 24 | 0x7f << 40;

impl ShortRow {
    /// The row that begins with the first packet of a part of a trace. Returns `None` if that is another
    /// packet.
    #[inline]
    #[must_use]
    pub fn of(trace: &[u8]) -> Option<Self> {
        let head = u64::from_le_bytes(*trace.first_chunk()?);
        (head & WHOLE_MASK == WHOLE).then_some(Self(head & ROW_MASK))
    }

    /// The sequence.
    #[inline]
    #[must_use]
    pub fn sequence(self) -> SequenceId {
        SequenceId((self.0 >> 24) as u32 & 0x7f)
    }

    /// Bits of [`sequence_flags`](crate::track_event::fields::sequence_flags).
    #[inline]
    #[must_use]
    pub fn flags(self) -> u32 {
        (self.0 >> 40) as u32 & 0x7f
    }

    /// Reads the event at the begin of a part of a trace, if it is one of this row. Returns it with the size
    /// of its packet.
    ///
    /// An event that a zero follows is none: its last bytes may be of a hole of zeros, which only the general way
    /// can tell.
    ///
    /// It loads eight bytes at a time and finds the size of a number without a branch, because sizes of names
    /// and times have no order that a processor could learn.
    #[inline(always)] // as `InternedEvent::decode`
    #[must_use]
    pub fn event(self, trace: &[u8]) -> Option<(ShortRowEvent<'_>, usize)> {
        let bytes: &[u8; LONGEST] = trace.first_chunk()?;
        let load =
            |at: usize| bytes.get(at..at + 8).map(|w| u64::from_le_bytes(w.try_into().unwrap_or([0; 8])));
        let head = load(0)?;
        let size = |at: u32| (head >> (8 * at)) as usize & 0x7f;
        let (end, event_end) = (2 + size(1), WHOLE_LEN + size(7));
        let mut word = load(WHOLE_LEN)?;
        if head & ROW_MASK != self.0 || word as u8 != TYPE || event_end >= end {
            return None;
        }
        let kind = (word >> 8) as u8;
        let (mut category, mut name, mut at) = (0, 0, WHOLE_LEN + 2);
        word >>= 16;
        if word as u8 == CATEGORY && at < event_end {
            let (value, len) = short_id(word >> 8)?;
            (category, at) = (value, at + 1 + len);
            word = load(at)?;
        }
        if word as u8 == NAME && at < event_end {
            let (value, len) = short_id(word >> 8)?;
            (name, at) = (value, at + 1 + len);
        }
        let annotated_from = at;
        while at < event_end {
            if bytes[at] != ANNOTATION || bytes[at + 1] >= 0x80 {
                return None;
            }
            at += 2 + usize::from(bytes[at + 1]);
        }
        let time = load(event_end)?;
        let (timestamp, len) = short_number(time >> 8)?;
        let is_last = time as u8 == TIMESTAMP && event_end + 1 + len == end;
        if at != event_end || !is_last || bytes[end] == 0 {
            return None;
        }
        let kind = match u64::from(kind) {
            BEGIN => EventType::SliceBegin,
            END => EventType::SliceEnd,
            INSTANT => EventType::Instant,
            _ => return None,
        };
        let annotated = bytes.get(annotated_from..event_end)?;
        Some((ShortRowEvent { timestamp, kind, name, category, annotated }, end))
    }
}

/// Reads an id, which is not 0, as [`short_number`] does.
#[inline(always)] // as `event`
fn short_id(word: u64) -> Option<(u64, usize)> {
    short_number(word).filter(|(id, _)| *id != 0)
}

/// Reads a varint of at most four bytes from the low bytes of a word. Returns it with its size.
#[inline(always)] // as `event`
fn short_number(word: u64) -> Option<(u64, usize)> {
    let stops = !word & 0x8080_8080;
    if stops == 0 {
        return None;
    }
    let bits = word & (stops ^ (stops - 1)) & 0x7f7f_7f7f; // up to the first byte without its top bit
    let value = bits & 0x7f | (bits & 0x7f00) >> 1 | (bits & 0x7f_0000) >> 2 | (bits & 0x7f00_0000) >> 3;
    Some((value, stops.trailing_zeros() as usize / 8 + 1))
}
