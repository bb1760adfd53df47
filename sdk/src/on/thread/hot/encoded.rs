//! Arguments as bytes of the trace, encoded on the stack before the chunk writer is taken.
//!
//! An array, a map and a `Serialize` are read by code of the program, which may record events itself. So such
//! values cannot be written into the chunk in place. They are encoded here first, and then copied.

#![allow(unsafe_code)] // stores into the buffer

use hairline_formats::proto::{PutBytes, PutMessages};
use hairline_formats::track_event::{LONGEST_ELEMENT, Name};
use hairline_formats::{Entries, Path, Value, fxt, proto, track_event};

use crate::on::base::buffer::Buffer;
use crate::on::callsite::{Callsite, Key};
use crate::on::encode::MAX_NAME;
use crate::on::encode::track_event::message::counter_value;
use crate::on::event::argument::Visitor;
use crate::on::session::room::OVERHANG;
use crate::on::thread::hot::packet;
use crate::on::thread::raw::{Leaf, Raw};
use crate::options::Format;
use crate::site::CallsiteKind;

/// The most bytes of the arguments of an event. Longer ones take the cold path.
const ROOM: usize = 1000;

/// The most bytes of the path to a value in FXT.
const LONGEST_PATH: usize = 200;

/// The arguments of one event.
pub(crate) struct Encoded {
    out: Out,
    format: Format,
    /// Whether the only argument is the value of a counter.
    is_counter: bool,
    /// The number of FXT arguments.
    count: usize,
}

impl Encoded {
    #[inline(always)]
    pub(crate) const fn new(format: Format) -> Self {
        Self { out: Out { bytes: Buffer::new(), is_complete: true }, format, is_counter: false, count: 0 }
    }

    /// For an event at the callsite.
    #[inline(always)]
    pub(crate) fn of(callsite: &'static Callsite, format: Format) -> Self {
        Self { is_counter: callsite.kind() == CallsiteKind::Counter, ..Self::new(format) }
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Returns the bytes and the number of FXT arguments. `None` if only the cold path can write them: they
    /// are too long or too many, or one of them is interned.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<(&[u8], u64)> {
        (self.out.is_complete && self.count <= fxt::MAX_ARGS)
            .then(|| (self.out.bytes.as_slice(), self.count as u64))
    }

    /// Adds an argument with a key of the callsite. Null is omitted.
    #[inline(never)]
    fn put_keyed(&mut self, key: &'static Key, value: &Value<'_>) {
        if self.format == Format::Fxt {
            self.put_fxt(fxt::StringRef::Index(key.id().0 as u16), key.name(), value);
        } else if self.is_counter {
            self.put_counter_value(value);
        } else {
            self.put_annotation(Name::Iid(key.id().iid()), value);
        }
    }

    /// Adds the value of a counter as a field of the event.
    fn put_counter_value(&mut self, value: &Value<'_>) {
        match counter_value(value) {
            Some(value) => self.out.put(2 + proto::MAX_VARINT, |raw| packet::put_counter_value(raw, value)),
            None => self.leave_to_cold(),
        }
    }

    /// Adds a number as a field of the event.
    #[inline(always)]
    pub(crate) fn put_field(&mut self, field: u32, number: u64) {
        self.out.put(2 + proto::MAX_VARINT, |raw| {
            raw.varint(u64::from(proto::tag(field, proto::WireType::Varint)));
            raw.varint(number);
        });
    }

    /// Adds the words of an FXT argument.
    #[inline(always)]
    pub(crate) fn put_words<const N: usize>(&mut self, words: [u64; N]) {
        self.count += 1;
        self.out.put(8 * N, |raw| words.into_iter().for_each(|word| raw.word_of(word, 8)));
    }

    /// Only the cold path can write the event.
    pub(crate) fn leave_to_cold(&mut self) {
        self.out.is_complete = false;
    }

    /// Adds an argument with a name that the callsite does not have. Null is omitted.
    #[inline]
    pub(crate) fn put_named(&mut self, name: &str, value: &Value<'_>) {
        if name.len() > MAX_NAME {
            self.out.is_complete = false; // the cold path cuts it
        } else if self.format == Format::Fxt {
            self.put_fxt(fxt::StringRef::Inline(name), name, value);
        } else {
            self.put_annotation(Name::Text(name), value);
        }
    }

    #[inline]
    fn put_annotation(&mut self, name: Name<'_>, value: &Value<'_>) {
        match value {
            Value::Null => {}
            Value::Interned { .. } => self.out.is_complete = false, // its string must precede the event
            Value::Array(entries) if self.put_annotated_numbers(name, *entries) => {}
            value => track_event::put_named(&mut self.out, name, value),
        }
    }

    #[inline]
    fn put_fxt(&mut self, name: fxt::StringRef<'_>, text: &str, value: &Value<'_>) {
        match value {
            Value::Null => {}
            Value::Array(entries) if self.put_fxt_numbers(text, *entries) => {}
            Value::Dict(_) | Value::Array(_) => self.put_flat(text, value),
            value => self.put_fxt_scalar(name, value),
        }
    }

    #[inline(always)]
    fn put_fxt_scalar(&mut self, name: fxt::StringRef<'_>, value: &Value<'_>) {
        let tail = match value {
            Value::Str(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            Value::Interned { .. } => ROOM + 1, // its string must precede the event
            _ => 8,
        };
        let name_len = if let fxt::StringRef::Inline(text) = name { text.len() } else { 0 };
        self.count += 1;
        // Not `Out::put`: its closure would be compiled as a function, with 50 instructions more.
        let Some(start) = self.out.place(8 + padded(name_len) + padded(tail)) else { return };
        // SAFETY: room for that many bytes and the overhang.
        let mut raw = unsafe { Raw::at(start) };
        fxt::put_argument(&mut Leaf(&mut raw), name, value);
        // SAFETY: all bytes from `start` to the position are stored, at most as many as there is room for.
        unsafe { self.out.bytes.add_written(raw.distance(start)) };
    }

    /// Adds each leaf of a nested value as an FXT argument, with the path to it as the name.
    fn put_flat(&mut self, name: &str, value: &Value<'_>) {
        let mut path = FixedPath { bytes: Buffer::new(), is_whole: true };
        path.push(name);
        value.flatten(&mut path, &mut |path, value| match value {
            number if is_number(&number) && !path.is_empty() => {
                self.count += 1;
                self.out.put(16 + padded(path.len()), |raw| fxt::put_number(&mut Leaf(raw), path, &number));
            }
            value => self.put_fxt_scalar(fxt::StringRef::Inline(path), &value),
        });
        self.out.is_complete &= path.is_whole;
    }
}

/// Arrays of numbers: nearly all arrays are. Each function returns false, and adds nothing, if the array has
/// others, or none.
impl Encoded {
    /// Adds at most ten numbers as FXT arguments. Their paths differ in one digit.
    #[inline(never)]
    fn put_fxt_numbers(&mut self, name: &str, entries: &dyn Entries) -> bool {
        const INDEX: &str = "[0]";
        let mut path = Buffer::<32>::new();
        if name.is_empty() || !path.push(name.as_bytes()) || !path.push(INDEX.as_bytes()) {
            return false;
        }
        let before = (self.count, self.out.bytes.len());
        let (mut index, mut are_numbers) = (0, true);
        entries.each(&mut |_, value| {
            are_numbers &= is_number(&value) && index < 10;
            if are_numbers {
                path.as_mut_slice()[name.len() + 1] = b'0' + index;
                // SAFETY: two `str`s, of which a digit was replaced by another.
                let path = unsafe { std::str::from_utf8_unchecked(path.as_slice()) };
                self.out.put(16 + padded(path.len()), |raw| fxt::put_number(&mut Leaf(raw), path, &value));
                index += 1;
            }
        });
        if !are_numbers || index == 0 {
            self.out.bytes.truncate(before.1);
            return false;
        }
        self.count += usize::from(index);
        true
    }

    /// Adds numbers as an annotation.
    #[inline(never)]
    fn put_annotated_numbers(&mut self, name: Name<'_>, entries: &dyn Entries) -> bool {
        let before = self.out.bytes.len();
        let (mut is_empty, mut are_numbers) = (true, true);
        track_event::put_array(&mut self.out, name, |out| {
            entries.each(&mut |_, value| {
                is_empty = false;
                are_numbers &= is_number(&value);
                if are_numbers {
                    out.put(LONGEST_ELEMENT, |raw| track_event::put_element(&mut Leaf(raw), &value));
                }
            });
        });
        if !are_numbers || is_empty {
            self.out.bytes.truncate(before);
            return false;
        }
        true
    }
}

#[inline(always)]
fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Bool(_) | Value::I64(_) | Value::U64(_) | Value::F64(_))
}

/// Encodes the values of a callsite's keys.
pub(crate) struct Keyed<'e> {
    pub(crate) keys: &'static [Key],
    pub(crate) encoded: &'e mut Encoded,
}

impl Visitor<'_> for Keyed<'_> {
    #[inline(always)]
    fn visit(&mut self, at: usize, value: Value<'_>) {
        if let Some(key) = self.keys.get(at) {
            self.encoded.put_keyed(key, &value);
        }
    }
}

/// Returns the length of a stream of as many bytes.
#[inline(always)]
fn padded(len: usize) -> usize {
    (len & !7) + 8
}

/// Bytes of limited room. If something does not fit, `is_complete` becomes false.
struct Out {
    bytes: Buffer<{ ROOM + OVERHANG }>,
    is_complete: bool,
}

impl Out {
    /// Returns a place for at most `most` bytes and the overhang, if there is room.
    #[inline(always)]
    fn place(&mut self, most: usize) -> Option<*mut u8> {
        let place = self.bytes.room_for(most + OVERHANG);
        self.is_complete &= place.is_some();
        place
    }

    /// Calls `write` with a place for at most `most` bytes.
    #[inline(always)]
    fn put(&mut self, most: usize, write: impl FnOnce(&mut Raw)) {
        let Some(start) = self.place(most) else { return };
        // SAFETY: room for `most` bytes and the overhang.
        let mut raw = unsafe { Raw::at(start) };
        write(&mut raw);
        // SAFETY: `write` has stored all bytes from `start` to its position, at most `most`.
        unsafe { self.bytes.add_written(raw.distance(start)) };
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8]) {
        self.put(bytes.len(), |raw| Leaf(raw).bytes(bytes));
    }
}

impl PutBytes for Out {
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        self.push(bytes);
    }

    #[inline(always)]
    fn varint(&mut self, value: u64) {
        let Some(start) = self.bytes.room_for(proto::MAX_VARINT + OVERHANG) else {
            self.is_complete = false;
            return;
        };
        // SAFETY: room for the longest varint and the overhang, and all bytes up to the position are stored.
        unsafe {
            let mut raw = Raw::at(start);
            raw.varint(value);
            self.bytes.add_written(raw.distance(start));
        }
    }

    #[inline(always)]
    fn fixed64(&mut self, value: u64) {
        self.put(8, |raw| raw.word_of(value, 8));
    }
}

/// Bytes of each length of a message: the varint of a length below 2^14, padded.
const LENGTH: usize = 2;

impl PutMessages for Out {
    #[inline(always)]
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let tag = proto::tag(field, proto::WireType::Bytes);
        debug_assert!(tag < 0x80, "a tag of one byte");
        self.put(1 + LENGTH, |raw| raw.word_of(u64::from(tag), 1 + LENGTH));
        let start = self.bytes.len();
        write(self);
        let len = self.bytes.len() - start;
        if let Some(place) = self.bytes.as_mut_slice().get_mut(start - LENGTH..start) {
            place.copy_from_slice(&[len as u8 | 0x80, (len >> 7) as u8]);
        }
    }
}

/// A path of limited length. Of a longer one, a part is missing, and `is_whole` becomes false.
struct FixedPath {
    bytes: Buffer<LONGEST_PATH>,
    is_whole: bool,
}

impl Path for FixedPath {
    #[inline(always)]
    fn text(&self) -> &str {
        // SAFETY: whole `str`s, cut to an earlier length.
        unsafe { std::str::from_utf8_unchecked(self.bytes.as_slice()) }
    }

    #[inline(always)]
    fn push(&mut self, part: &str) {
        self.is_whole &= self.bytes.push(part.as_bytes());
    }

    #[inline(always)]
    fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair;
    impl Entries for Pair {
        fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
            show("one", Value::U64(1));
            show("two", Value::Str("2"));
        }
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_cold_path() {
        for format in [Format::Fxt, Format::TrackEvent] {
            let put = |name: &str, value: Value<'_>, times: usize| {
                let mut encoded = Encoded::new(format);
                (0..times).for_each(|_| encoded.put_named(name, &value));
                encoded.get().map(|(bytes, count)| (bytes.len(), count))
            };
            let text = "x".repeat(2 * ROOM);
            assert!(put("k", Value::U64(1), 15).is_some());
            assert!(put("k", Value::Dict(&Pair), 7).is_some());
            assert_eq!(put("k", Value::U64(1), 16).is_none(), format == Format::Fxt, "{format:?}");
            assert_eq!(put("k", Value::Dict(&Pair), 8).is_none(), format == Format::Fxt, "{format:?}");
            assert!(put("k", Value::Interned { iid: 1, text: "t" }, 1).is_none());
            assert_eq!(put("k", Value::Null, 3), Some((0, 0)));
            let fits = (0..text.len()).take_while(|len| put("k", Value::Str(&text[..*len]), 1).is_some());
            let longest = fits.count() - 1;
            assert!((ROOM - 32..ROOM).contains(&longest), "{format:?}: {longest}");
            assert!(put("k", Value::Str(&text), 1).is_none());
            assert!(put(&text, Value::U64(1), 1).is_none());
            assert!(put(&text[..LONGEST_PATH + 1], Value::Dict(&Pair), 1).is_none() || format != Format::Fxt);
        }
    }
}
