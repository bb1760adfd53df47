//! Arguments as bytes of the trace, encoded on the stack before the chunk writer is taken.
//!
//! An array, a map and a `Serialize` are read by code of the program, which may record events itself. So such
//! values cannot be written into the chunk in place. They are encoded here first, and then copied.

#![allow(unsafe_code)] // stores into the buffer

use hairline_formats::proto::{PutBytes, PutMessages};
use hairline_formats::track_event::Name;
use hairline_formats::{Path, Value, fxt, proto, track_event};

use crate::on::base::buffer::Buffer;
use crate::on::callsite::Key;
use crate::on::encode::MAX_NAME;
use crate::on::event::argument::Visitor;
use crate::options::Format;

/// The most bytes of the arguments of an event. Longer ones take the cold path.
const ROOM: usize = 1000;

/// The most bytes of the path to a value in FXT.
const LONGEST_PATH: usize = 200;

/// The arguments of one event.
pub(crate) struct Encoded {
    out: Out,
    format: Format,
    /// The number of FXT arguments.
    count: usize,
}

impl Encoded {
    #[inline(always)]
    pub(crate) const fn new(format: Format) -> Self {
        Self { out: Out { bytes: Buffer::new(), is_complete: true }, format, count: 0 }
    }

    /// Returns the bytes and the number of FXT arguments. `None` if only the cold path can write them: they are
    /// too long or too many, or one of them is interned.
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
        } else {
            self.put_annotation(Name::Iid(key.id().iid()), value);
        }
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
            value => track_event::put_named(&mut self.out, name, value),
        }
    }

    #[inline]
    fn put_fxt(&mut self, name: fxt::StringRef<'_>, text: &str, value: &Value<'_>) {
        match value {
            Value::Null => {}
            Value::Dict(_) | Value::Array(_) => self.put_flat(text, value),
            value => self.put_fxt_scalar(name, value),
        }
    }

    #[inline]
    fn put_fxt_scalar(&mut self, name: fxt::StringRef<'_>, value: &Value<'_>) {
        let is_cold = match value {
            Value::Str(text) => text.len() > ROOM,
            Value::Blob(bytes) => bytes.len() > ROOM,
            Value::Interned { .. } => true, // its string must precede the event
            _ => false,
        };
        if is_cold {
            self.out.is_complete = false;
            return;
        }
        self.count += 1;
        fxt::put_argument(&mut self.out, name, value);
    }

    /// Adds each leaf of a nested value as an FXT argument, with the path to it as the name.
    fn put_flat(&mut self, name: &str, value: &Value<'_>) {
        let mut path = FixedPath { bytes: Buffer::new(), is_whole: true };
        path.push(name);
        value.flatten(&mut path, &mut |path, value| {
            self.put_fxt_scalar(fxt::StringRef::Inline(path), &value);
        });
        self.out.is_complete &= path.is_whole;
    }
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

/// Bytes of limited room. If something does not fit, `is_complete` becomes false.
struct Out {
    bytes: Buffer<ROOM>,
    is_complete: bool,
}

impl Out {
    #[inline(always)]
    fn push(&mut self, bytes: &[u8]) {
        self.is_complete &= self.bytes.push(bytes);
    }
}

impl fxt::PutWords for Out {
    #[inline(always)]
    fn word(&mut self, word: u64) {
        self.push(&word.to_le_bytes());
    }

    #[inline(always)]
    fn stream(&mut self, bytes: &[u8]) {
        self.is_complete &= self.bytes.push_padded(bytes);
    }
}

impl PutBytes for Out {
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        self.push(bytes);
    }
}

/// Bytes of each length of a message: the varint of a length below 2^14, padded.
const LENGTH: usize = 2;

impl PutMessages for Out {
    #[inline(always)]
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.varint(u64::from(proto::tag(field, proto::WireType::Bytes)));
        self.push(&[0; LENGTH]);
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
    use hairline_formats::Entries;

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
