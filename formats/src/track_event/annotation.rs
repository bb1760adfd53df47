//! Writes the arguments of events: `DebugAnnotation`.
//!
//! ```text
//! 22 LEN | 08 <name iid> | 10 <0 or 1>              bool
//!                        | 18 <varint>              unsigned integer or kernel object id
//!                        | 20 <varint>              signed integer
//!                        | 29 <8 bytes>             floating point number
//!                        | 32 LEN <bytes>           text, or a blob in hexadecimal
//!                        | 38 <varint>              pointer
//!                        | 88 01 <iid>              interned text
//!                        | 5a LEN <annotation> ...  dict
//!                        | 62 LEN <value> ...       array
//!                        |                          null: nothing
//! ```
//!
//! All tags have one byte, except that of interned text. The traced program waits while an annotation is
//! written: [`annotation_len`] and [`put_annotation`] are inlined at callsites that know the value's variant.
//! They do not write nested values; [`put_named`] writes any value.

use crate::proto::{self, PutBytes, PutMessages, WireType, put_str, put_uint, varint_len};
use crate::track_event::fields::{debug_annotation as annotation, track_event};
use crate::track_event::sequence::Name;
use crate::value::MAX_DEPTH;
use crate::{Entries, Value};

/// The size in bytes of the tag of a field below 16.
const TAG: usize = 1;

const fn one_byte(field: u32, wire: WireType) -> u8 {
    let tag = proto::tag(field, wire);
    assert!(tag < 0x80);
    tag as u8
}

const ANNOTATION: u8 = one_byte(track_event::DEBUG_ANNOTATIONS, WireType::Bytes);
const NAME: u8 = one_byte(annotation::NAME, WireType::Bytes);
const NAME_IID: u8 = one_byte(annotation::NAME_IID, WireType::Varint);
const BOOL: u8 = one_byte(annotation::BOOL_VALUE, WireType::Varint);
const UINT: u8 = one_byte(annotation::UINT_VALUE, WireType::Varint);
const INT: u8 = one_byte(annotation::INT_VALUE, WireType::Varint);
const DOUBLE: u8 = one_byte(annotation::DOUBLE_VALUE, WireType::Fixed64);
const STRING: u8 = one_byte(annotation::STRING_VALUE, WireType::Bytes);
/// The one tag of two bytes.
const STRING_IID: u64 = proto::tag(annotation::STRING_VALUE_IID, WireType::Varint) as u64;
const TAG_OF_TWO: usize = 2;
const POINTER: u8 = one_byte(annotation::POINTER_VALUE, WireType::Varint);

/// The size in bytes of the value's field in the annotation.
#[inline(always)]
fn value_len(value: &Value<'_>) -> usize {
    let bytes = |len: usize| TAG + varint_len(len as u64) + len;
    match *value {
        Value::Null | Value::Dict(_) | Value::Array(_) => 0,
        Value::Bool(_) => TAG + 1,
        Value::I64(v) => TAG + varint_len(v.cast_unsigned()),
        Value::U64(v) | Value::Koid(v) | Value::Pointer(v) => TAG + varint_len(v),
        Value::F64(_) => TAG + 8,
        Value::Str(v) => bytes(v.len()),
        Value::Interned { iid, .. } => TAG_OF_TWO + varint_len(iid),
        Value::Blob(v) => bytes(v.len() * 2),
    }
}

/// The size in bytes of the annotation's fields.
#[inline(always)]
fn content_len(name_iid: u64, value: &Value<'_>) -> usize {
    TAG + varint_len(name_iid) + value_len(value)
}

/// Returns the number of bytes that [`put_annotation`] writes.
#[inline(always)]
#[must_use]
pub fn annotation_len(name_iid: u64, value: &Value<'_>) -> usize {
    let content = content_len(name_iid, value);
    TAG + varint_len(content as u64) + content
}

/// Writes one annotation with an interned name, as a field of `TrackEvent`: tag and length included.
///
/// A blob becomes text in hexadecimal. [`Value::Null`], a dict and an array become a name without a value,
/// which importers drop. Do not write a null, and write nested values with [`put_named`].
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::track_event::{annotation_len, put_annotation};
///
/// let mut event = Vec::new(); // the bytes of a `TrackEvent`
/// put_annotation(&mut event, 1, &Value::Bool(true));
/// assert_eq!(event, [0x22, 4, 0x08, 1, 0x10, 1]); // tag, length, the name's id, the value
/// assert_eq!(annotation_len(1, &Value::Bool(true)), event.len());
/// ```
#[inline(always)]
pub fn put_annotation(out: &mut impl PutBytes, name_iid: u64, value: &Value<'_>) {
    out.bytes(&[ANNOTATION]);
    out.varint(content_len(name_iid, value) as u64);
    out.bytes(&[NAME_IID]);
    out.varint(name_iid);
    put_value(out, value);
}

/// The most bytes that [`put_number`] writes, without those of the name.
pub const LONGEST_NUMBER: usize = TAG + 1 + TAG + 1 + TAG + proto::MAX_VARINT;

/// Writes an annotation whose name is in it, as a field of `TrackEvent`. The name has at most 100 bytes. The
/// value is a number, a boolean or a pointer.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::track_event::{LONGEST_NUMBER, put_number};
///
/// let mut event = Vec::new(); // the bytes of a `TrackEvent`
/// put_number(&mut event, "rows", &Value::U64(3));
/// assert_eq!(event, [b"\x22\x08\x52\x04rows\x18".as_slice(), &[3]].concat());
/// assert!(event.len() <= LONGEST_NUMBER + "rows".len());
/// ```
#[inline(always)]
pub fn put_number(out: &mut impl PutBytes, name: &str, value: &Value<'_>) {
    debug_assert!(name.len() <= 100, "lengths of one byte");
    let (tag, bits) = match *value {
        Value::Bool(v) => (BOOL, u64::from(v)),
        Value::I64(v) => (INT, v.cast_unsigned()),
        Value::U64(v) | Value::Koid(v) => (UINT, v),
        Value::Pointer(v) => (POINTER, v),
        Value::F64(v) => (DOUBLE, v.to_bits()),
        _ => return debug_assert!(false, "no number"),
    };
    let len = if tag == DOUBLE { 8 } else { varint_len(bits) };
    put_short_head(out, name, TAG + len);
    out.word(u64::from(tag), TAG);
    if tag == DOUBLE { out.fixed64(bits) } else { out.varint(bits) }
}

/// The most bytes that [`put_short_text`] writes, without those of the name and the text.
pub const SHORT_TEXT: usize = 3 * (TAG + 1);

/// Writes an annotation whose name is in it, as a field of `TrackEvent`. Name and text have at most 100 bytes
/// together.
///
/// ```
/// use hairline_formats::track_event::{SHORT_TEXT, put_short_text};
///
/// let mut event = Vec::new(); // the bytes of a `TrackEvent`
/// put_short_text(&mut event, "state", "done");
/// assert_eq!(event, b"\x22\x0d\x52\x05state\x32\x04done");
/// assert_eq!(event.len(), SHORT_TEXT + "state".len() + "done".len());
/// ```
#[inline(always)]
pub fn put_short_text(out: &mut impl PutBytes, name: &str, text: &str) {
    debug_assert!(name.len() + text.len() <= 100, "lengths of one byte");
    put_short_head(out, name, TAG + 1 + text.len());
    out.word(u64::from(STRING) + ((text.len() as u64) << 8), TAG + 1);
    out.bytes(text.as_bytes());
}

/// Writes what precedes the value's field in an annotation of less than 128 bytes.
#[inline(always)]
fn put_short_head(out: &mut impl PutBytes, name: &str, value_len: usize) {
    let content = TAG + 1 + name.len() + value_len;
    let head = u64::from(ANNOTATION)
        + ((content as u64) << 8)
        + (u64::from(NAME) << 16)
        + ((name.len() as u64) << 24);
    out.word(head, 2 * (TAG + 1));
    out.bytes(name.as_bytes());
}

/// The constant part of the annotations with one interned name, `22 LEN 08 <name iid>`: a program composes it
/// once for each name.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::track_event::{AnnotationHead, put_annotation};
///
/// let (mut short, mut any) = (Vec::new(), Vec::new()); // the bytes of a `TrackEvent`
/// AnnotationHead::new(300).unwrap().put(&mut short, &Value::Str("text"));
/// put_annotation(&mut any, 300, &Value::Str("text"));
/// assert_eq!(short, any);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Its bytes, with the LEN of an annotation without a value. The last byte is their number.
pub struct AnnotationHead(u64);

impl AnnotationHead {
    /// The most bytes of a head.
    pub const LONGEST: usize = TAG + 1 + TAG + 4;

    /// Returns the head of annotations with this name; `None` if the id is not below 2^28.
    #[must_use]
    pub const fn new(name_iid: u64) -> Option<Self> {
        if name_iid >> 28 != 0 {
            return None;
        }
        let len = varint_len(name_iid);
        let (mut bytes, mut at) = (0, 0);
        while at < len {
            let more = if at + 1 < len { 0x80 } else { 0 };
            bytes |= (name_iid >> (7 * at) & 0x7f | more) << (8 * at);
            at += 1;
        }
        let fields = ANNOTATION as u64 | ((TAG + len) as u64) << 8 | (NAME_IID as u64) << 16 | bytes << 24;
        Some(Self(fields | ((TAG + 1 + TAG + len) as u64) << 56))
    }

    /// Returns the head as a number, for [`from_bits`](Self::from_bits).
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the head that had these [`bits`](Self::bits).
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the most bytes of an annotation with this value, of any name. A text or a blob that is longer
    /// than 2^14 bytes may take 4 more.
    #[inline(always)]
    #[must_use]
    pub fn most(value: &Value<'_>) -> usize {
        match value {
            Value::Null | Value::Dict(_) | Value::Array(_) => 0,
            Value::Str(_) | Value::Blob(_) => Self::LONGEST + 1 + most_of_value(value),
            _ => Self::LONGEST + most_of_value(value),
        }
    }

    /// Writes an annotation with this name, of less than 128 bytes. A null, a dict and an array are omitted.
    #[inline(always)]
    pub fn put(self, out: &mut impl PutBytes, value: &Value<'_>) {
        match *value {
            Value::Null | Value::Dict(_) | Value::Array(_) => {}
            Value::Bool(v) => {
                self.put_head(out, TAG + 1);
                out.bytes(&[BOOL, u8::from(v)]);
            }
            Value::I64(v) => self.put_integer(out, INT, v.cast_unsigned()),
            Value::U64(v) | Value::Koid(v) => self.put_integer(out, UINT, v),
            Value::Pointer(v) => self.put_integer(out, POINTER, v),
            Value::Str(text) => {
                self.put_head_of_text(out, text.len());
                out.bytes(text.as_bytes());
            }
            Value::F64(_) | Value::Interned { .. } | Value::Blob(_) => {
                self.put_head(out, value_len(value));
                put_value(out, value);
            }
        }
    }

    /// Writes the head alone. The content of the annotation follows, and its length is stored then: in the
    /// second byte, that of the bytes after it, less than 128.
    #[inline(always)]
    pub fn open(self, out: &mut impl PutBytes) {
        out.word(self.0, (self.0 >> 56) as usize);
    }

    #[inline(always)]
    fn put_head(self, out: &mut impl PutBytes, value_len: usize) {
        debug_assert!((self.0 >> 8 & 0xff) as usize + value_len < 0x80, "a length of one byte");
        out.word(self.0 + ((value_len as u64) << 8), (self.0 >> 56) as usize);
    }

    /// Writes what precedes a text of `len` bytes, in an annotation of less than 128 bytes.
    #[inline(always)]
    pub(super) fn put_head_of_text(self, out: &mut impl PutBytes, len: usize) {
        self.put_head(out, TAG + 1 + len);
        out.word(u64::from(STRING) | (len as u64) << 8, TAG + 1);
    }

    /// Nearly all integers have one or two bytes.
    #[inline(always)]
    fn put_integer(self, out: &mut impl PutBytes, tag: u8, value: u64) {
        if value < 0x80 {
            self.put_head(out, TAG + 1);
            out.bytes(&[tag]);
            out.word(value, 1);
        } else if value < 1 << 14 {
            self.put_head(out, TAG + 2);
            out.bytes(&[tag]);
            out.word((value + (value & !0x7f)) | 0x80, 2);
        } else {
            self.put_head(out, TAG + varint_len(value));
            out.bytes(&[tag]);
            out.varint(value);
        }
    }
}

/// Writes the value's field.
#[inline(always)]
fn put_value(out: &mut impl PutBytes, value: &Value<'_>) {
    match *value {
        Value::Null | Value::Dict(_) | Value::Array(_) => {}
        Value::Bool(v) => out.bytes(&[BOOL, u8::from(v)]),
        Value::I64(v) => put_integer(out, INT, v.cast_unsigned()),
        Value::U64(v) | Value::Koid(v) => put_integer(out, UINT, v),
        Value::Pointer(v) => put_integer(out, POINTER, v),
        Value::F64(v) => {
            out.bytes(&[DOUBLE]);
            out.fixed64(v.to_bits());
        }
        Value::Str(v) => {
            out.bytes(&[STRING]);
            out.varint(v.len() as u64);
            out.bytes(v.as_bytes());
        }
        Value::Interned { iid, .. } => {
            out.varint(STRING_IID);
            out.varint(iid);
        }
        Value::Blob(v) => put_blob(out, v),
    }
}

/// Writes one annotation of any kind, as a field of `TrackEvent`. Values nested deeper than 32 levels become
/// "...".
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::Value;
/// use hairline_formats::track_event::{Annotations, Name, put_named};
///
/// let mut event = Vec::new(); // the bytes of a `TrackEvent`
/// put_named(&mut event, Name::Text("attempt"), &Value::I64(3));
/// let annotation = Annotations::of_event(&event).next().unwrap()?;
/// assert_eq!(annotation.name, Some("attempt"));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn put_named(out: &mut impl PutMessages, name: Name<'_>, value: &Value<'_>) {
    out.message(track_event::DEBUG_ANNOTATIONS, |a| {
        put_name(a, name);
        put_any(a, value, 0);
    });
}

/// Writes an annotation that is an array, as a field of `TrackEvent`. `elements` writes its elements, with
/// [`put_element`], and at least one.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::Value;
/// use hairline_formats::track_event::{AnnotationValue, Annotations, Name, put_array, put_element};
///
/// let mut event = Vec::new(); // the bytes of a `TrackEvent`
/// put_array(&mut event, Name::Text("ports"), |out| {
///     put_element(out, &Value::U64(80));
///     put_element(out, &Value::U64(443));
/// });
/// let annotation = Annotations::of_event(&event).next().unwrap()?;
/// let AnnotationValue::Array(ports) = annotation.value else { panic!() };
/// assert_eq!(ports.count(), 2);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[inline(always)]
pub fn put_array<O: PutMessages>(out: &mut O, name: Name<'_>, elements: impl FnOnce(&mut O)) {
    out.message(track_event::DEBUG_ANNOTATIONS, |a| {
        put_name(a, name);
        elements(a);
    });
}

/// The most bytes that [`put_element`] writes for a number, if each length has one byte.
pub const LONGEST_ELEMENT: usize = TAG + 1 + TAG + proto::MAX_VARINT;

/// Returns the most bytes of a value's field. A text or a blob longer than 2^14 bytes may take 2 more.
#[inline(always)]
fn most_of_value(value: &Value<'_>) -> usize {
    match value {
        Value::Null | Value::Dict(_) | Value::Array(_) => 0,
        Value::Str(text) => TAG + 2 + text.len(),
        Value::Blob(bytes) => TAG + 2 + 2 * bytes.len(),
        Value::Bool(_) => TAG + 1,
        Value::F64(_) => TAG + 8,
        _ => TAG_OF_TWO + proto::MAX_VARINT,
    }
}

/// Returns the most bytes that [`put_entry`] writes, if each length has one byte.
#[inline(always)]
#[must_use]
pub fn most_of_entry(name: &str, value: &Value<'_>) -> usize {
    TAG + 1 + TAG + 1 + name.len() + most_of_value(value)
}

/// Writes an entry of a map, or of an array if `name` is "". Its value is no array, no dict and no null.
#[inline(always)]
pub fn put_entry<const IS_MAP: bool>(out: &mut impl PutMessages, name: &str, value: &Value<'_>) {
    let field = if IS_MAP { annotation::DICT_ENTRIES } else { annotation::ARRAY_VALUES };
    out.message(field, |entry| {
        if IS_MAP {
            put_str(entry, annotation::NAME, name);
        }
        put_value(entry, value);
    });
}

/// Writes an element of an array, which is no array and no dict.
#[inline(always)]
pub fn put_element(out: &mut impl PutMessages, value: &Value<'_>) {
    out.message(annotation::ARRAY_VALUES, |element| put_value(element, value));
}

#[inline(always)]
fn put_name(out: &mut impl PutBytes, name: Name<'_>) {
    match name {
        Name::Iid(iid) => put_uint(out, annotation::NAME_IID, iid),
        Name::Text(text) => put_str(out, annotation::NAME, text),
    }
}

fn put_any(out: &mut impl PutMessages, value: &Value<'_>, depth: usize) {
    match value {
        Value::Dict(_) | Value::Array(_) if depth == MAX_DEPTH => put_value(out, &Value::Str("...")),
        Value::Dict(entries) => put_entries(out, annotation::DICT_ENTRIES, *entries, depth),
        Value::Array(entries) => put_entries(out, annotation::ARRAY_VALUES, *entries, depth),
        scalar => put_value(out, scalar),
    }
}

fn put_entries(out: &mut impl PutMessages, field: u32, entries: &dyn Entries, depth: usize) {
    let mut is_empty = true;
    entries.each(&mut |name, value| {
        // Importers refuse an entry without a value. A null is not written in a dict; in an array it is
        // "null", so that the other values keep their indices.
        let value = match value {
            Value::Null if field == annotation::DICT_ENTRIES => return,
            Value::Null => Value::Str("null"),
            Value::Interned { text, .. } => Value::Str(text),
            value => value,
        };
        is_empty = false;
        out.message(field, |entry| {
            if field == annotation::DICT_ENTRIES {
                put_str(entry, annotation::NAME, name);
            }
            match value {
                Value::Dict(_) | Value::Array(_) => put_any(entry, &value, depth + 1),
                scalar => put_value(entry, &scalar), // nearly all, and without a call
            }
        });
    });
    if is_empty {
        put_value(out, &Value::Str(if field == annotation::DICT_ENTRIES { "{}" } else { "[]" }));
    }
}

#[inline(always)]
fn put_integer(out: &mut impl PutBytes, tag: u8, value: u64) {
    out.bytes(&[tag]);
    out.varint(value);
}

#[cold]
fn put_blob(out: &mut impl PutBytes, bytes: &[u8]) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    out.bytes(&[STRING]);
    out.varint(bytes.len() as u64 * 2);
    for byte in bytes {
        out.bytes(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
    }
}
