//! Reads the smallest events: slices, instants and counter values whose name and category are interned ids.
//! Nearly all events of a trace are of this kind, and few numbers of each are needed.
//!
//! Any other packet is read as a [`PlainEvent`](crate::track_event::PlainEvent) or as any
//! [`Packet`](crate::track_event::Packet).

use crate::proto::{Fields, Varint, varint};
use crate::track_event::fields::EventType;
use crate::track_event::read::short_tags::{
    ANNOTATION, BEGIN, CATEGORY, COUNTER, DOUBLE, END, EVENT, FLAGS, HEAD, HEAD_LEN, HEAD_MASK, INSTANT,
    NAME, SEQUENCE, TIMESTAMP, TRACK, TYPE, VALUE,
};
use crate::track_event::{CounterValue, SequenceId, ShortRow, ShortRowEvent, TrackUuid};

/// A packet with an event that has only these fields.
///
/// ```
/// use hairline_formats::track_event::{
///     Event, EventType, InternedEvent, Name, PacketReader, SequenceId, event,
/// };
///
/// let mut trace = Vec::new();
/// let begin = Event::new(SequenceId(1), EventType::SliceBegin, 1_000);
/// event(&mut trace, &Event { name: Some(Name::Iid(3)), ..begin });
/// event(&mut trace, &Event { name: Some(Name::Text("read")), ..begin });
///
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, message) = reader.next_message()?.unwrap();
/// assert_eq!(InternedEvent::decode(&message).unwrap().name, 3);
/// let (_, message) = reader.next_message()?.unwrap();
/// assert!(InternedEvent::decode(&message).is_none()); // its name is a text
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct InternedEvent<'a> {
    /// The packet's sequence; 0 if it is missing.
    pub sequence: SequenceId,
    /// Bits of [`sequence_flags`](crate::track_event::fields::sequence_flags).
    pub flags: u32,
    /// The time, on the sequence's default clock.
    pub timestamp: u64,
    /// The type: a begin or an end of a slice, an instant, or a counter value.
    pub kind: EventType,
    /// The id of the name; 0 if it is missing.
    pub name: u64,
    /// The id of the only category; 0 if it is missing.
    pub category: u64,
    /// The track, unless it is the sequence's default.
    pub track_uuid: Option<TrackUuid>,
    /// The value, of a counter event only.
    pub counter: Option<CounterValue>,
    /// The event's bytes from its first argument on, as
    /// [`PlainEvent::annotated`](crate::track_event::PlainEvent::annotated).
    pub annotated: &'a [u8],
}

impl<'a> InternedEvent<'a> {
    /// Reads the event of a packet. Returns `None` if the packet has any other field.
    #[inline(always)] // the caller then keeps the fields in registers
    #[must_use]
    pub fn decode(packet: &Fields<'a>) -> Option<Self> {
        let packet = packet.rest();
        let (mut sequence, mut flags, mut timestamp, mut event, mut at) = (0, 0, None, None, 0);
        if let Some(word) = packet.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
            && word & HEAD_MASK == HEAD
        {
            (sequence, flags) = ((word >> 8) as u32 & 0x7f, (word >> 24) as u32 & 0x7f);
            at = HEAD_LEN + (word >> 40) as usize % 0x80;
            event = Some(packet.get(HEAD_LEN..at)?);
        }
        while at < packet.len() {
            let tag = packet[at];
            let (value, next) = number_at(packet, at + 1)?;
            at = next;
            match tag {
                SEQUENCE => sequence = value as u32,
                FLAGS => flags |= value as u32,
                TIMESTAMP => timestamp = Some(value),
                EVENT if event.is_none() => {
                    let end = next.checked_add(usize::try_from(value).ok()?)?;
                    event = Some(packet.get(next..end)?);
                    at = end;
                }
                _ => return None,
            }
        }
        Self::of(sequence, flags, timestamp?, event?)
    }

    #[inline(always)] // as `decode`
    fn of(sequence: u32, flags: u32, timestamp: u64, event: &'a [u8]) -> Option<Self> {
        let (mut kind, mut name, mut category, mut track_uuid, mut counter) = (0, 0, 0, None, None);
        let (mut annotated, mut at): (&[u8], usize) = (&[], 0);
        while at < event.len() {
            let tag = event[at];
            let (value, next) = number_at(event, at + 1)?;
            match tag {
                TYPE => kind = value,
                // A second one is for the general readers.
                NAME if name == 0 && value != 0 => name = value,
                CATEGORY if category == 0 && value != 0 => category = value,
                TRACK => track_uuid = Some(TrackUuid(value)),
                ANNOTATION => {
                    if annotated.is_empty() {
                        annotated = &event[at..];
                    }
                    at = next.checked_add(usize::try_from(value).ok()?).filter(|end| *end <= event.len())?;
                    continue;
                }
                _ if (tag, value) == VALUE => {
                    let (value, next) = number_at(event, next)?;
                    (counter, at) = (Some(CounterValue::Int(value.cast_signed())), next);
                    continue;
                }
                _ if (tag, value) == DOUBLE => {
                    let bits = u64::from_le_bytes(*event.get(next..)?.first_chunk()?);
                    (counter, at) = (Some(CounterValue::Double(f64::from_bits(bits))), next + 8);
                    continue;
                }
                _ => return None,
            }
            at = next;
        }
        let kind = match (kind, counter) {
            (BEGIN, None) => EventType::SliceBegin,
            (END, None) => EventType::SliceEnd,
            (INSTANT, None) => EventType::Instant,
            (COUNTER, Some(_)) => EventType::Counter,
            _ => return None,
        };
        let sequence = SequenceId(sequence);
        Some(Self { sequence, flags, timestamp, kind, name, category, track_uuid, counter, annotated })
    }
}

impl<'a> InternedEvent<'a> {
    /// Reads the event at the begin of a part of a trace, if it is one as Hairline writes it: on its thread's
    /// track, with numbers below 2^28. Returns it with the size of its packet. Returns `None` for all other
    /// packets, which [`decode`](Self::decode) may read.
    #[inline(always)] // as `decode`
    #[must_use]
    pub fn decode_short(trace: &'a [u8]) -> Option<(Self, usize)> {
        let row = ShortRow::of(trace)?;
        let (event, size) = row.event(trace)?;
        let ShortRowEvent { timestamp, kind, name, category, annotated } = event;
        let (sequence, flags) = (row.sequence(), row.flags());
        let (track_uuid, counter) = (None, None);
        let event = Self { sequence, flags, timestamp, kind, name, category, track_uuid, counter, annotated };
        Some((event, size))
    }
}

/// Reads the varint at `at`. Returns it with the place after it.
#[inline(always)] // as `decode`
fn number_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    match bytes.get(at) {
        Some(byte @ 0..0x80) => Some((u64::from(*byte), at + 1)),
        _ => match (bytes.get(at), bytes.get(at + 1)) {
            (Some(low), Some(byte @ 0..0x80)) => {
                Some((u64::from(*low & 0x7f) | u64::from(*byte) << 7, at + 2))
            }
            _ => long_number_at(bytes, at),
        },
    }
}

#[inline(never)]
fn long_number_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    match varint(bytes.get(at..)?) {
        Varint::Complete(value, len) => Some((value, at + len)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::track_event::read::short_row::LONGEST;
    use crate::track_event::{Event, Name, PacketReader, PlainEvent, event};

    /// The event's fields, read in this way and as a plain event. `None` if it is not read in this way.
    fn both_ways(written: &Event<'_>) -> Option<[String; 2]> {
        let mut trace = Vec::new();
        event(&mut trace, written);
        let mut reader = PacketReader::new(&trace[..]);
        let (_, message) = reader.next_message().unwrap().unwrap();
        let found = InternedEvent::decode(&message)?;
        let plain = PlainEvent::decode(&message).unwrap();
        let iid = |id| (id != 0).then_some(Name::Iid(id));
        Some([
            format!("{:?}", (found.sequence, found.flags, found.timestamp, found.kind, found.track_uuid))
                + &format!("{:?}", (iid(found.name), iid(found.category), found.counter, found.annotated)),
            format!("{:?}", (plain.sequence, plain.flags, plain.timestamp, plain.kind, plain.track_uuid))
                + &format!("{:?}", (plain.name, plain.category, plain.counter, plain.annotated)),
        ])
    }

    const BARE: Event<'static> = Event::new(SequenceId(7), EventType::SliceBegin, 300);

    #[test]
    fn it_has_the_fields_of_a_plain_event() {
        let arguments = [(Name::Iid(1), Value::I64(-1)), (Name::Text("b"), Value::Str("c"))];
        let counter = |value| Event { kind: EventType::Counter, counter: Some(value), ..BARE };
        for written in [
            BARE,
            Event { track_uuid: Some(TrackUuid(1 << 62)), ..counter(CounterValue::Int(-5)) },
            Event { annotations: &arguments, ..counter(CounterValue::Double(0.5)) },
            Event { kind: EventType::SliceEnd, timestamp: u64::MAX, ..BARE },
            Event { sequence: SequenceId(300), timestamp: 200, ..BARE },
            Event { name: Some(Name::Iid(2)), annotations: &[arguments[1]; 20], ..BARE },
            Event {
                categories: &[Name::Iid(3)],
                name: Some(Name::Iid(70_000)),
                annotations: &arguments,
                ..BARE
            },
            Event {
                kind: EventType::Instant,
                track_uuid: Some(TrackUuid(u64::MAX)),
                needs_state: false,
                ..BARE
            },
        ] {
            let [found, plain] = both_ways(&written).expect("all ids are interned");
            assert_eq!(found, plain);
        }
    }

    #[test]
    fn any_other_field_makes_it_another_event() {
        for written in [
            Event { name: Some(Name::Text("read")), ..BARE },
            Event { name: Some(Name::Iid(0)), ..BARE },
            Event { categories: &[Name::Text("net")], ..BARE },
            Event { categories: &[Name::Iid(1), Name::Iid(2)], ..BARE },
            Event { clock_id: Some(6), ..BARE },
            Event { flow_ids: &[1], ..BARE },
            Event { kind: EventType::Unspecified, ..BARE },
            Event { kind: EventType::Counter, ..BARE },
            Event { counter: Some(CounterValue::Int(1)), ..BARE },
        ] {
            assert_eq!(both_ways(&written), None, "{written:?}");
        }
    }

    #[test]
    fn the_short_way_reads_the_same() {
        let arguments = [(Name::Iid(1), Value::I64(-1)), (Name::Text("b"), Value::Str("c"))];
        let (mut found, mut all) = (0, 0);
        for kind in [EventType::SliceBegin, EventType::SliceEnd, EventType::Instant, EventType::Counter] {
            for timestamp in [0, 0x7f, 0x80, 0x3fff, 0x1f_ffff, (1 << 28) - 1, 1 << 28, u64::MAX] {
                for name in [None, Some(1), Some(0x7f), Some(0x80), Some(70_000), Some(1 << 28)] {
                    for (categories, sequence) in
                        [(&[][..], 1), (&[Name::Iid(300)], 127), (&[Name::Iid(3)], 128)]
                    {
                        for annotations in [&[][..], &arguments] {
                            let name = name.map(Name::Iid);
                            let sequence = SequenceId(sequence);
                            let written = Event {
                                categories,
                                name,
                                annotations,
                                ..Event::new(sequence, kind, timestamp)
                            };
                            let mut trace = Vec::new();
                            event(&mut trace, &written);
                            let len = trace.len();
                            trace.extend_from_slice(&[0xff; LONGEST]);
                            all += 1;
                            let Some((short, size)) = InternedEvent::decode_short(&trace) else { continue };
                            found += 1;
                            let whole = InternedEvent::decode(&Fields::new(&trace[2..len], 0)).unwrap();
                            assert_eq!((format!("{short:?}"), size), (format!("{whole:?}"), len));
                        }
                    }
                }
            }
        }
        assert_eq!((found, all), (3 * 6 * 5 * 2 * 2, 4 * 8 * 6 * 3 * 2), "all with numbers below 2^28");
    }

    /// As Hairline writes each time: in three bytes, of which the last one is often 0.
    #[test]
    fn the_short_way_reads_a_time_that_ends_with_a_zero_before_another_packet_only() {
        let mut trace = Vec::new();
        event(&mut trace, &Event { timestamp: (1 << 21) - 1, ..BARE });
        let len = trace.len();
        trace[len - 3..].copy_from_slice(&[0x8a, 0x81, 0]);
        trace.extend_from_slice(&[0x0a; LONGEST]);
        let (found, size) = InternedEvent::decode_short(&trace).unwrap();
        assert_eq!((found.timestamp, size), (0x8a, len));
        trace[len] = 0; // perhaps of a hole
        assert!(InternedEvent::decode_short(&trace).is_none());
    }

    /// Packets that the short way takes are read the same by the long one, whatever a byte is.
    #[test]
    fn the_short_way_takes_no_damaged_packet() {
        let annotations = [(Name::Iid(1), Value::Str("value")), (Name::Iid(2), Value::Bool(true))];
        let written = Event {
            name: Some(Name::Iid(300)),
            categories: &[Name::Iid(7)],
            annotations: &annotations,
            ..BARE
        };
        let mut trace = Vec::new();
        event(&mut trace, &written);
        let len = trace.len();
        trace.extend_from_slice(&[0x40; LONGEST]);
        for at in 0..len {
            for byte in 0..=255 {
                let mut damaged = trace.clone();
                damaged[at] = byte;
                let Some((short, size)) = InternedEvent::decode_short(&damaged) else { continue };
                let whole = InternedEvent::decode(&Fields::new(&damaged[2..size], 0));
                let whole = whole.unwrap_or_else(|| panic!("byte {at} is {byte}: {short:?}"));
                assert_eq!(format!("{short:?}"), format!("{whole:?}"));
            }
        }
    }

    #[test]
    fn a_packet_that_is_cut_off_is_none() {
        let mut trace = Vec::new();
        let annotations = [(Name::Iid(1), Value::Str("value"))];
        event(&mut trace, &Event { annotations: &annotations, categories: &[Name::Iid(300)], ..BARE });
        let body = &trace[2..];
        assert!(InternedEvent::decode(&Fields::new(body, 0)).is_some());
        for cut in 0..body.len() {
            let found = InternedEvent::decode(&Fields::new(&body[..cut], 0));
            assert!(found.is_none() || cut > body.len() - 4, "{cut}");
        }
    }
}
