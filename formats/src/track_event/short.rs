//! Writes the smallest events: slices and instants whose name and category are interned ids. Nearly all
//! events of a trace are of this kind. And their arguments, if they are numbers and short texts.

use crate::Value;
use crate::proto::{PutBytes, WireType, tag, varint_in_8, varint_up_to_8};
use crate::track_event::annotation::{AnnotationHead, put_annotation};
use crate::track_event::event::{Event, event_with};
use crate::track_event::fields::{
    EventType, sequence_flags, trace, trace_packet as packet, track_event as event,
};
use crate::track_event::ids::SequenceId;
use crate::track_event::sequence::Name;

/// An event that relies on the state of its sequence: its clock, its track and its strings.
///
/// ```
/// use hairline_formats::track_event::{Event, EventType, Name, SequenceId, ShortEvent, event};
///
/// let kind = EventType::SliceBegin;
/// let short = ShortEvent { sequence: SequenceId(1), timestamp: 5, kind, category: 0, name: 3 };
/// let (mut one, mut other) = (Vec::new(), Vec::new());
/// short.put(&mut one, &[]);
/// event(&mut other, &Event { name: Some(Name::Iid(3)), ..Event::new(SequenceId(1), kind, 5) });
/// assert_eq!(one, other);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortEvent {
    /// The sequence's id.
    pub sequence: SequenceId,
    /// The time on the sequence's clock.
    pub timestamp: u64,
    /// The type of the event.
    pub kind: EventType,
    /// The id of the only category; 0 is none.
    pub category: u64,
    /// The id of the name; 0 is none.
    pub name: u64,
}

/// The tag of a field; one byte.
const fn short_tag(field: u32, wire: WireType) -> u64 {
    let tag = tag(field, wire);
    assert!(tag < 0x80);
    tag as u64
}

const PACKET: u64 = short_tag(trace::PACKET, WireType::Bytes);
const SEQUENCE: u64 = short_tag(packet::TRUSTED_PACKET_SEQUENCE_ID, WireType::Varint);
const FLAGS: u64 = short_tag(packet::SEQUENCE_FLAGS, WireType::Varint);
const EVENT: u64 = short_tag(packet::TRACK_EVENT, WireType::Bytes);
const TIMESTAMP: u64 = short_tag(packet::TIMESTAMP, WireType::Varint);
const TYPE: u64 = short_tag(event::TYPE, WireType::Varint);
const CATEGORY: u64 = short_tag(event::CATEGORY_IIDS, WireType::Varint);
const NAME: u64 = short_tag(event::NAME_IID, WireType::Varint);

/// The bytes of a packet without further fields: at most 7, 6, 5, 5 and 9, and eight are stored at once.
const MOST: usize = 40;

/// Room for a packet at the end of an output. Eight bytes are stored at a time, and not loaded again before
/// the packet is done: loading bytes that were stored in other pieces takes as long as all else.
struct Room<'a> {
    bytes: &'a mut [u8; MOST],
    len: usize,
}

impl Room<'_> {
    /// Appends the low `len` bytes of a word.
    #[inline(always)] // the length stays in a register
    fn put(&mut self, word: u64, len: usize) {
        self.bytes[self.len..self.len + 8].copy_from_slice(&word.to_le_bytes());
        self.len += len;
    }
}

impl PutBytes for Room<'_> {
    #[inline(always)] // as `Room::put`
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    #[inline(always)]
    fn word(&mut self, word: u64, len: usize) {
        self.put(word, len);
    }

    #[inline(always)]
    fn varint(&mut self, value: u64) {
        let (high, low) = (value >> 56, value & u64::MAX >> 8);
        if high == 0 {
            let (bytes, len) = varint_up_to_8(low);
            return self.put(bytes, len);
        }
        self.put(varint_in_8(low) | 1 << 63, 8);
        match high {
            0..0x80 => self.put(high, 1),
            _ => self.put(high | 1 << 8, 2),
        }
    }
}

/// Appends what `write` stores.
#[inline(always)] // as `Room::put`
fn with_room(out: &mut Vec<u8>, write: impl FnOnce(&mut Room<'_>)) {
    let start = out.len();
    out.extend_from_slice(&[0; MOST]);
    let Some(bytes) = out[start..].first_chunk_mut() else { return };
    let mut room = Room { bytes, len: 0 };
    write(&mut room);
    let len = room.len;
    out.truncate(start + len);
}

/// A field of one number below 2^28, in the low bytes of a word, and its size; 0 is no field.
#[inline(always)]
fn id(tag: u64, id: u64) -> (u64, usize) {
    if id == 0 {
        return (0, 0);
    }
    let (bytes, len) = varint_up_to_8(id);
    (tag | bytes << 8, 1 + len)
}

/// As `varint_up_to_8`, for numbers that nearly always have one byte.
#[inline(always)]
fn varint_mostly_1(value: u64) -> (u64, usize) {
    if value < 0x80 { (value, 1) } else { varint_up_to_8(value) }
}

impl ShortEvent {
    /// Writes the packet as [`event_with`] does. `fields` are further fields of the event.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>, fields: &[u8]) {
        let has_short_ids = (self.name | self.category | u64::from(self.sequence.0)) >> 28 == 0;
        if !has_short_ids || self.timestamp >> 56 != 0 || fields.len() > 0x7f {
            return self.put_long(out, fields);
        }
        let (sequence, sequence_len) = varint_mostly_1(u64::from(self.sequence.0));
        let (category, category_len) = match self.category {
            few @ 1..0x80 => (CATEGORY | few << 8, 2),
            category => id(CATEGORY, category),
        };
        let (name, name_len) = id(NAME, self.name);
        let (time, time_len) = varint_up_to_8(self.timestamp);
        let event_len = 2 + category_len + name_len + fields.len();
        let packet_len = 1 + sequence_len + 2 + 2 + event_len + 1 + time_len;
        if packet_len > 0x7f {
            return self.put_long(out, fields);
        }
        let flags = FLAGS | u64::from(sequence_flags::NEEDS) << 8;
        let head = |room: &mut Room<'_>| {
            room.put(PACKET | (packet_len as u64) << 8 | SEQUENCE << 16 | sequence << 24, 3 + sequence_len);
            let event = EVENT << 16 | (event_len as u64) << 24 | TYPE << 32 | (self.kind as u64) << 40;
            room.put(flags | event, 6);
            room.put(category, category_len);
            room.put(name, name_len);
        };
        let tail = |room: &mut Room<'_>| {
            room.put(TIMESTAMP, 1);
            room.put(time, time_len);
        };
        if fields.is_empty() {
            return with_room(out, |room| {
                head(room);
                tail(room);
            });
        }
        with_room(out, head);
        out.extend_from_slice(fields);
        with_room(out, tail);
    }

    #[cold]
    fn put_long(&self, out: &mut Vec<u8>, fields: &[u8]) {
        let categories = [Name::Iid(self.category)];
        let event = Event {
            categories: if self.category == 0 { &[] } else { &categories },
            name: (self.name != 0).then_some(Name::Iid(self.name)),
            ..Event::new(self.sequence, self.kind, self.timestamp)
        };
        event_with(out, &event, |out| out.extend_from_slice(fields));
    }
}

/// The limit for texts whose length, and that of their annotation, has one byte.
const LONGEST_TEXT: usize = 0x70;

/// Writes an argument as [`put_annotation`] does, at the end of an output that grows.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::track_event::{put_annotation, put_short_annotation};
///
/// let (mut one, mut other) = (Vec::new(), Vec::new());
/// put_short_annotation(&mut one, 300, &Value::Str("text"));
/// put_annotation(&mut other, 300, &Value::Str("text"));
/// assert_eq!(one, other);
/// ```
#[inline]
pub fn put_short_annotation(out: &mut Vec<u8>, name_iid: u64, value: &Value<'_>) {
    use Value::{Bool, F64, I64, Interned, Koid, Pointer, U64};
    match (AnnotationHead::new(name_iid), value) {
        (Some(head), Value::Str(text)) if text.len() <= LONGEST_TEXT => {
            with_room(out, |room| head.put_head_of_text(room, text.len()));
            out.extend_from_slice(text.as_bytes());
        }
        (Some(head), Bool(_) | I64(_) | U64(_) | Koid(_) | Pointer(_) | F64(_) | Interned { .. }) => {
            with_room(out, |room| head.put(room, value));
        }
        _ => put_annotation(out, name_iid, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_has_the_bytes_that_it_always_has() {
        let texts: Vec<_> = [0, 1, 0x6f, 0x70, 0x71, 0x80, 0x4000].map(|len| "x".repeat(len)).into();
        let mut values: Vec<_> = texts.iter().map(|text| Value::Str(text)).collect();
        values.extend([Value::Bool(true), Value::F64(-0.5), Value::Null, Value::Blob(&[1; 60])]);
        for number in (0..64).flat_map(|n| [(1_u64 << n) - 1, 1 << n]).chain([u64::MAX]) {
            let of_text = Value::Interned { iid: number, text: "" };
            let signed = Value::I64(number.cast_signed());
            values.extend([signed, Value::U64(number), Value::Koid(number), Value::Pointer(number), of_text]);
        }
        for name in [1, 0x7f, 0x80, 0x3fff, (1 << 28) - 1, 1 << 28, u64::MAX] {
            for value in &values {
                let (mut one, mut other) = (vec![7], vec![7]);
                put_short_annotation(&mut one, name, value);
                put_annotation(&mut other, name, value);
                assert_eq!(one, other, "{name}: {value:?}");
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_any_event() {
        let ids = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, (1 << 28) - 1, 1 << 28, u64::from(u32::MAX)];
        let times = [0, 0x7f, 0x80, 1 << 49, (1 << 56) - 1, 1 << 56, u64::MAX];
        let fields = [0x55; 300];
        for (n, sequence) in ids.into_iter().enumerate() {
            for name in ids {
                for timestamp in times {
                    for len in [0, 1, 80, 100, 101, 102, 103, 104, 105, 106, 110, 127, 128, 300] {
                        let short = ShortEvent {
                            sequence: SequenceId(sequence as u32),
                            timestamp,
                            kind: [EventType::SliceBegin, EventType::SliceEnd, EventType::Instant][n % 3],
                            category: ids[(n + len) % ids.len()],
                            name,
                        };
                        let (mut one, mut other) = (vec![7], vec![7]);
                        short.put(&mut one, &fields[..len]);
                        short.put_long(&mut other, &fields[..len]);
                        assert_eq!(one, other, "{short:?}, {len}");
                    }
                }
            }
        }
    }
}
