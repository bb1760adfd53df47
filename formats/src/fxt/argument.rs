//! Writes an argument: the part of a record that the traced program waits for.
//!
//! ```text
//!  63             32 31          16 15          4 3      0
//! +-----------------+--------------+-------------+--------+
//! | the value, or 0 | name (ref)   | size, words |  type  |
//! +-----------------+--------------+-------------+--------+
//! | the name, if it is inline                             |
//! +-------------------------------------------------------+
//! | the value, if it is wider than 32 bits: a word, or a  |
//! | stream of bytes                                       |
//! +-------------------------------------------------------+
//! ```
//!
//! Both functions look at one description of the value ([`shape`]), so they cannot disagree. It is made to be
//! inlined where the value's variant is known; then nothing is left of it but its stores.

use super::layout::{ArgumentType, MAX_STRING, MAX_STRING_INDEX, argument, words};
use super::refs::StringRef;
use super::write::Put;
use crate::Value;

/// Names and values to be written; at most [`MAX_ARGS`](super::MAX_ARGS).
pub type ArgumentSlice<'a> = &'a [(StringRef<'a>, Value<'a>)];

/// What follows the header and the name.
#[derive(Clone, Copy)]
enum Tail<'a> {
    None,
    Word(u64),
    Stream(&'a [u8]),
}

/// Type, the bits of the header that are the value's, and the rest.
#[inline(always)]
fn shape<'a>(value: &Value<'a>) -> (ArgumentType, u64, Tail<'a>) {
    match *value {
        // A nested value is flattened by who knows its name.
        Value::Null | Value::Dict(_) | Value::Array(_) => (ArgumentType::Null, 0, Tail::None),
        Value::Bool(v) => (ArgumentType::Bool, argument::BOOL.set(u64::from(v)), Tail::None),
        Value::I64(v) if i32::try_from(v).is_ok() => {
            (ArgumentType::I32, argument::INTEGER.set(v.cast_unsigned()), Tail::None)
        }
        Value::I64(v) => (ArgumentType::I64, 0, Tail::Word(v.cast_unsigned())),
        Value::U64(v) if u32::try_from(v).is_ok() => {
            (ArgumentType::U32, argument::INTEGER.set(v), Tail::None)
        }
        Value::U64(v) => (ArgumentType::U64, 0, Tail::Word(v)),
        Value::F64(v) => (ArgumentType::F64, 0, Tail::Word(v.to_bits())),
        Value::Str(v) => in_full(v),
        Value::Interned { iid, .. } if iid <= u64::from(MAX_STRING_INDEX) => {
            (ArgumentType::String, argument::STRING.set(StringRef::Index(iid as u16).bits()), Tail::None)
        }
        Value::Interned { text, .. } => in_full(text),
        Value::Pointer(v) => (ArgumentType::Pointer, 0, Tail::Word(v)),
        Value::Koid(v) => (ArgumentType::Koid, 0, Tail::Word(v)),
        Value::Blob(v) => {
            let v = &v[..v.len().min(MAX_STRING)];
            (ArgumentType::Blob, argument::BLOB_LENGTH.set(v.len() as u64), Tail::Stream(v))
        }
    }
}

#[inline(always)]
fn in_full(text: &str) -> (ArgumentType, u64, Tail<'_>) {
    let text = StringRef::Inline(text);
    (ArgumentType::String, argument::STRING.set(text.bits()), Tail::Stream(text.text().as_bytes()))
}

#[inline(always)]
fn total(name: StringRef<'_>, tail: Tail<'_>) -> usize {
    1 + name.words()
        + match tail {
            Tail::None => 0,
            Tail::Word(_) => 1,
            Tail::Stream(bytes) => words(bytes.len()),
        }
}

/// Words that [`put_argument`] will write.
#[inline(always)]
#[must_use]
pub fn argument_words(name: StringRef<'_>, value: &Value<'_>) -> usize {
    let (_, _, tail) = shape(value);
    total(name, tail)
}

/// "Argument types": one argument, with the shortest type that holds the value.
///
/// A string or blob of more than [`MAX_STRING`] bytes is cut. Nested values have no type here and become null: see
/// [`Value::flatten`].
#[inline(always)]
pub fn put_argument(out: &mut impl Put, name: StringRef<'_>, value: &Value<'_>) {
    let (kind, bits, tail) = shape(value);
    let header = argument::TYPE.set(kind as u64)
        | argument::SIZE.set(total(name, tail) as u64)
        | argument::NAME.set(name.bits())
        | bits;
    out.word(header);
    if let StringRef::Inline(_) = name {
        out.stream(name.text().as_bytes());
    }
    match tail {
        Tail::None => {}
        Tail::Word(word) => out.word(word),
        Tail::Stream(bytes) => out.stream(bytes),
    }
}
