//! Reads plain events: begins, ends and instants with indices for the thread and for both strings. Nearly all
//! events of a trace are plain.
//!
//! [`EventRecord`](crate::fxt::EventRecord) reads all events and reports malformed ones. Here, a malformed
//! event is just not plain.

use crate::fxt::layout::{
    ArgumentType, EventKind, RecordType, argument, event as fields, record, string_ref,
};

/// An event of a thread that has an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlainEvent {
    /// The kind: a begin or end of a slice, or an instant.
    pub kind: EventKind,
    /// The time, in ticks.
    pub timestamp: u64,
    /// The index of the thread; not 0.
    pub thread: u8,
    /// The index of the category; 0 for none.
    pub category: u16,
    /// The index of the name; 0 for none.
    pub name: u16,
    /// Whether there are arguments.
    pub has_args: bool,
}

impl PlainEvent {
    /// Reads the record at the beginning of `bytes`. Returns the event and the record's size in bytes.
    #[inline(always)] // the caller then keeps the fields in registers
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let (header, rest) = word(bytes)?;
        let (timestamp, _) = word(rest)?;
        let thread = fields::THREAD.get(header) as u8;
        let size = record::SIZE.get(header) as usize * 8;
        let is_event = header & FIXED == RecordType::Event as u64;
        if !is_event || thread == 0 || size < 16 || size > bytes.len() {
            return None;
        }
        let kind = match fields::KIND.get(header) {
            BEGIN => EventKind::DurationBegin,
            END => EventKind::DurationEnd,
            INSTANT => EventKind::Instant,
            _ => return None,
        };
        let args = fields::ARGS.get(header);
        if args > 0 {
            fit(&bytes[16..size], args)?;
        }
        if bytes[size - 8..size] == [0; 8] && !is_followed(&bytes[size..]) {
            return None; // perhaps a hole of zeros begins in it
        }
        let (category, name) = (fields::CATEGORY.get(header) as u16, fields::NAME.get(header) as u16);
        Some((Self { kind, timestamp, thread, category, name, has_args: args > 0 }, size))
    }
}

/// Whether a record follows, and not zeros or what is not in memory.
#[inline]
fn is_followed(bytes: &[u8]) -> bool {
    word(bytes).is_some_and(|(header, _)| header != 0)
}

/// Returns `None` if so many arguments do not fit into the rest of a record, or if their texts are not ASCII.
#[inline]
fn fit(mut values: &[u8], args: u64) -> Option<()> {
    for _ in 0..args {
        let (header, rest) = word(values)?;
        let words = argument::SIZE.get(header) as usize;
        let name = argument::NAME.get(header);
        if string_ref::INLINE.get(name) != 0 {
            let text = rest.get(..string_ref::LENGTH.get(name) as usize)?;
            text.is_ascii().then_some(())?; // others may be no UTF-8
        }
        if argument::TYPE.get(header) == ArgumentType::String as u64 {
            values.get(..words * 8)?[8..].is_ascii().then_some(())?;
        }
        values = values.get(words * 8..).filter(|_| words > 0)?;
    }
    Some(())
}

/// The bits of the header that all plain events have in common: the type of the record, and that neither
/// string is inline.
const FIXED: u64 = record::TYPE.set(record::TYPE.max())
    | fields::CATEGORY.set(string_ref::INLINE.set(1))
    | fields::NAME.set(string_ref::INLINE.set(1));

const BEGIN: u64 = EventKind::DurationBegin as u64;
const END: u64 = EventKind::DurationEnd as u64;
const INSTANT: u64 = EventKind::Instant as u64;

#[inline]
fn word(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk().map(|(word, rest)| (u64::from_le_bytes(*word), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::fxt::{Event, StringRef, ThreadRef, event, event_record};

    const PLAIN: Event<'_> = Event {
        kind: EventKind::DurationBegin,
        timestamp: 9,
        thread: ThreadRef::Index(7),
        category: StringRef::Index(300),
        name: StringRef::Index(2),
        args: &[],
        payload: None,
    };

    fn bytes(of: &Event<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        event(&mut out, of);
        out
    }

    #[test]
    fn a_plain_event_has_the_content_of_its_record() {
        let args = [(StringRef::Inline("bytes"), Value::I64(1 << 40)), (StringRef::Index(1), Value::Null)];
        for written in [
            PLAIN,
            Event { kind: EventKind::DurationEnd, category: StringRef::Empty, args: &args, ..PLAIN },
            Event { kind: EventKind::Instant, name: StringRef::Empty, args: &args[..1], ..PLAIN },
        ] {
            let out = bytes(&written);
            let (plain, len) = PlainEvent::decode(&out).unwrap();
            let (read, _) = event_record(&out).unwrap();
            let index = |string| if let StringRef::Index(index) = string { index } else { 0 };
            assert_eq!((plain.kind, plain.timestamp, len), (read.kind, read.timestamp, out.len()));
            assert_eq!(ThreadRef::Index(plain.thread), read.thread);
            assert_eq!((plain.category, plain.name), (index(read.category), index(read.name)));
            assert_eq!(plain.has_args, read.args().count() > 0);
            assert!((0..out.len()).all(|cut| PlainEvent::decode(&out[..cut]).is_none()));
        }
    }

    #[test]
    fn other_events_and_malformed_ones_are_not_plain() {
        for written in [
            Event { kind: EventKind::Counter, payload: Some(1), ..PLAIN },
            Event { kind: EventKind::DurationComplete, payload: Some(10), ..PLAIN },
            Event { thread: ThreadRef::Inline { process: 1, thread: 2 }, ..PLAIN },
            Event { name: StringRef::Inline("read"), ..PLAIN },
            Event { category: StringRef::Inline("net"), ..PLAIN },
        ] {
            assert_eq!(PlainEvent::decode(&bytes(&written)), None, "{written:?}");
        }
        let args = [(StringRef::Index(1), Value::I64(3))];
        for size in [0_u8, 2, 255] {
            let mut out = bytes(&Event { args: &args, ..PLAIN });
            out[16] = out[16] & 0xf | size << 4; // the size of the argument
            assert_eq!(PlainEvent::decode(&out), None, "{size}");
        }
        let mut other = bytes(&PLAIN);
        other[0] = other[0] & 0xf0 | RecordType::Thread as u8;
        assert_eq!(PlainEvent::decode(&other), None);
    }
}
