//! Arguments of records, written and read.
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
//! The traced program waits while an argument is written. [`argument_words`] and [`put_argument`] are inlined
//! at callsites that know the value's variant, so that only the stores remain. Both use [`shape`], so they
//! agree.

use crate::fxt::cursor::Cursor;
use crate::fxt::layout::{ArgumentType, MAX_ARGS, MAX_STRING, MAX_STRING_INDEX, argument, string_ref, words};
use crate::fxt::put::PutWords;
use crate::fxt::refs::StringRef;
use crate::{DecodeError, Value};

/// Names and values to be written, at most [`MAX_ARGS`].
pub type ArgumentSlice<'a> = &'a [(StringRef<'a>, Value<'a>)];

/// The part of an argument that follows its header and name.
#[derive(Clone, Copy)]
enum Tail<'a> {
    None,
    Word(u64),
    Stream(&'a [u8]),
}

/// Returns the argument's type, the value's bits of the header, and the tail.
#[inline(always)]
fn shape<'a>(value: &Value<'a>) -> (ArgumentType, u64, Tail<'a>) {
    match *value {
        // The caller flattens nested values: it knows the argument's name.
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
        Value::Str(v) => inline_string(v),
        Value::Interned { iid, .. } if iid <= u64::from(MAX_STRING_INDEX) => {
            (ArgumentType::String, argument::STRING.set(StringRef::Index(iid as u16).bits()), Tail::None)
        }
        Value::Interned { text, .. } => inline_string(text),
        Value::Pointer(v) => (ArgumentType::Pointer, 0, Tail::Word(v)),
        Value::Koid(v) => (ArgumentType::Koid, 0, Tail::Word(v)),
        Value::Blob(v) => {
            let v = &v[..v.len().min(MAX_STRING)];
            (ArgumentType::Blob, argument::BLOB_LENGTH.set(v.len() as u64), Tail::Stream(v))
        }
    }
}

#[inline(always)]
fn inline_string(text: &str) -> (ArgumentType, u64, Tail<'_>) {
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

/// Returns the number of words that [`put_argument`] writes.
#[inline(always)]
#[must_use]
pub fn argument_words(name: StringRef<'_>, value: &Value<'_>) -> usize {
    let (_, _, tail) = shape(value);
    total(name, tail)
}

/// Writes one argument, with the shortest of the "Argument types" that holds the value.
///
/// A string or blob is cut to [`MAX_STRING`] bytes. FXT has no nested values: a dict or an array is written
/// as null, so flatten it first with [`Value::flatten`].
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::fxt::{StringRef, argument_words, put_argument};
///
/// let (name, value) = (StringRef::Inline("bytes"), Value::I64(512));
/// let mut out = Vec::new();
/// put_argument(&mut out, name, &value);
/// assert_eq!(out.len(), 16); // the header holds the value, the second word the name
/// assert_eq!(argument_words(name, &value), 2);
/// assert_eq!(&out[8..], b"bytes\0\0\0");
/// ```
#[inline(always)]
pub fn put_argument(out: &mut impl PutWords, name: StringRef<'_>, value: &Value<'_>) {
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

/// The name of an argument by its index, as the argument's header has it: a program composes it once.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::fxt::{IndexedName, StringRef, put_argument};
///
/// let (mut one, mut other) = (Vec::new(), Vec::new());
/// for value in [Value::I64(-1), Value::U64(1 << 32), Value::Str("text"), Value::Str("")] {
///     IndexedName::new(7).put(&mut one, &value);
///     put_argument(&mut other, StringRef::Index(7), &value);
/// }
/// assert_eq!(one, other);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedName(u32);

impl IndexedName {
    /// Returns the name with this index, at most [`MAX_STRING_INDEX`].
    #[must_use]
    pub const fn new(index: u16) -> Self {
        Self(argument::NAME.set(string_ref::INDEX.set(index as u64)) as u32)
    }

    /// Returns the name as a number, for [`from_bits`](Self::from_bits).
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the name that had these [`bits`](Self::bits).
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Writes an argument with this name. A text or a blob has at most [`MAX_STRING`] bytes. A null, a dict
    /// and an array are omitted.
    #[inline(always)]
    pub fn put(self, out: &mut impl PutWords, value: &Value<'_>) {
        let name = u64::from(self.0);
        let header = |kind: ArgumentType, words: usize| {
            argument::TYPE.set(kind as u64) + argument::SIZE.set(words as u64) + name
        };
        match *value {
            Value::Null | Value::Dict(_) | Value::Array(_) => {}
            Value::Str(text) if !text.is_empty() => {
                debug_assert!(text.len() <= MAX_STRING, "a text to be cut");
                let length = text.len() as u64 + string_ref::INLINE.set(1);
                // The size is at most 4001, within its field.
                let size = argument::SIZE.set(1) + (((text.len() as u64 + 7) & !7) << 1);
                let kind = argument::TYPE.set(ArgumentType::String as u64);
                out.word((length << 32) + name + size + kind);
                out.stream(text.as_bytes());
            }
            Value::I64(v) if i32::try_from(v).is_ok() => {
                out.word(header(ArgumentType::I32, 1) + argument::INTEGER.set(v.cast_unsigned()));
            }
            Value::U64(v) if u32::try_from(v).is_ok() => {
                out.word(header(ArgumentType::U32, 1) + argument::INTEGER.set(v));
            }
            _ => {
                let (kind, bits, tail) = shape(value);
                out.word(header(kind, total(StringRef::Empty, tail)) + bits);
                match tail {
                    Tail::None => {}
                    Tail::Word(word) => out.word(word),
                    Tail::Stream(bytes) => out.stream(bytes),
                }
            }
        }
    }
}

/// Writes an argument whose name is in it, of `name_len` bytes, 1 to [`MAX_STRING`]. `put_name` writes the
/// name, padded with zeros to a multiple of 8. A text or a blob has at most [`MAX_STRING`] bytes.
#[inline(always)]
pub fn put_with_name<O: PutWords>(
    out: &mut O,
    name_len: usize,
    put_name: impl FnOnce(&mut O),
    value: &Value<'_>,
) {
    debug_assert!((1..=MAX_STRING).contains(&name_len), "a name to be cut");
    let name = argument::NAME.set(string_ref::INLINE.set(1) + name_len as u64);
    let header = |kind: ArgumentType, words: usize| {
        argument::TYPE.set(kind as u64) + argument::SIZE.set((words + self::words(name_len)) as u64) + name
    };
    match *value {
        Value::I64(v) if i32::try_from(v).is_ok() => {
            out.word(header(ArgumentType::I32, 1) + argument::INTEGER.set(v.cast_unsigned()));
            put_name(out);
        }
        Value::U64(v) if u32::try_from(v).is_ok() => {
            out.word(header(ArgumentType::U32, 1) + argument::INTEGER.set(v));
            put_name(out);
        }
        _ => {
            let (kind, bits, tail) = shape(value);
            out.word(header(kind, total(StringRef::Empty, tail)) + bits);
            put_name(out);
            match tail {
                Tail::None => {}
                Tail::Word(word) => out.word(word),
                Tail::Stream(bytes) => out.stream(bytes),
            }
        }
    }
}

/// Writes an argument whose name is in it. The name has 1 to [`MAX_STRING`] bytes. The value is a number, a
/// boolean or a pointer.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::fxt::{StringRef, put_argument, put_number};
///
/// let (mut number, mut argument) = (Vec::new(), Vec::new());
/// put_number(&mut number, "rows", &Value::U64(3));
/// put_argument(&mut argument, StringRef::Inline("rows"), &Value::U64(3));
/// assert_eq!(number, argument);
/// ```
#[inline(always)]
pub fn put_number(out: &mut impl PutWords, name: &str, value: &Value<'_>) {
    debug_assert!((1..=MAX_STRING).contains(&name.len()), "a name to be cut");
    let (kind, bits, tail) = shape(value);
    let (word, has_word) = if let Tail::Word(word) = tail { (word, true) } else { (0, false) };
    let name_len = name.len() as u64;
    let size = argument::SIZE.set(1 + u64::from(has_word)) + (((name_len + 7) & !7) << 1); // in words, from bit 4 on
    let name_bits = argument::NAME.set(string_ref::INLINE.set(1) + name_len);
    out.word(argument::TYPE.set(kind as u64) + size + name_bits + bits);
    out.stream(name.as_bytes());
    if has_word {
        out.word(word);
    }
}

/// Returns the first arguments that together fit into `room` words, and their size in words.
///
/// Ends before the 16th argument and before one whose size does not fit its header.
pub(super) fn fitting<'s, 'a>(
    args: &'s [(StringRef<'a>, Value<'a>)],
    room: usize,
) -> (&'s [(StringRef<'a>, Value<'a>)], usize) {
    let (mut count, mut total) = (0, 0);
    for (name, value) in args.iter().take(MAX_ARGS) {
        let words = argument_words(*name, value);
        if words > argument::SIZE.max() as usize || total + words > room {
            break;
        }
        (count, total) = (count + 1, total + words);
    }
    (&args[..count], total)
}

pub(super) fn put_arguments(out: &mut impl PutWords, args: &[(StringRef<'_>, Value<'_>)]) {
    for (name, value) in args {
        put_argument(out, *name, value);
    }
}

/// The value of an argument that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgumentValue<'a> {
    /// A value. A string that is not UTF-8 is a [`Value::Blob`].
    Value(Value<'a>),
    /// A string, by the index of its String record.
    StringIndex(u16),
}

/// The arguments of a record that was read: names and values in their order.
///
/// An error concerns one argument only; the arguments after it are still read. Arguments of an unknown type
/// are passed over and [counted](Self::skipped).
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::fxt::{self, ArgumentValue, EventKind, StringRef, ThreadRef};
///
/// let mut record = Vec::new();
/// fxt::event(&mut record, &fxt::Event {
///     kind: EventKind::Instant,
///     timestamp: 1,
///     thread: ThreadRef::Index(1),
///     category: StringRef::Empty,
///     name: StringRef::Index(1),
///     args: &[
///         (StringRef::Index(2), Value::I64(-1)),
///         (StringRef::Index(3), Value::Interned { iid: 4, text: "GET" }),
///     ],
///     payload: None,
/// });
/// let (event, _) = fxt::event_record(&record).unwrap();
/// let args: Vec<_> = event.args().collect::<Result<_, _>>()?;
/// assert_eq!(args[0], (StringRef::Index(2), ArgumentValue::Value(Value::I64(-1))));
/// assert_eq!(args[1], (StringRef::Index(3), ArgumentValue::StringIndex(4)));
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Arguments<'a> {
    cursor: Cursor<'a>,
    skipped: usize,
}

impl<'a> Arguments<'a> {
    /// Takes the next `count` arguments off the cursor. Checks only their sizes.
    #[inline]
    pub(super) fn take(cursor: &mut Cursor<'a>, count: u64) -> Result<Self, DecodeError> {
        let start = cursor.clone();
        for _ in 0..count {
            cursor.argument()?;
        }
        Ok(Self { cursor: start.until(cursor), skipped: 0 })
    }

    /// Returns the number of arguments passed over so far.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = Result<(StringRef<'a>, ArgumentValue<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.cursor.is_at_end() {
            let (header, mut body) = match self.cursor.argument() {
                Ok(argument) => argument,
                // `take` has checked the sizes, so this cannot fail and repeat for ever.
                Err(e) => {
                    self.cursor = Cursor::new(&[], 0);
                    return Some(Err(e));
                }
            };
            match ArgumentType::from_number(argument::TYPE.get(header)) {
                Some(kind) => return Some(read(kind, header, &mut body)),
                None => self.skipped += 1,
            }
        }
        None
    }
}

fn read<'a>(
    kind: ArgumentType,
    header: u64,
    body: &mut Cursor<'a>,
) -> Result<(StringRef<'a>, ArgumentValue<'a>), DecodeError> {
    const WHAT: &str = "an argument's value";
    let name = body.string(argument::NAME.get(header), "an argument's name")?;
    let integer = argument::INTEGER.get(header) as u32;
    let value = match kind {
        ArgumentType::Null => Value::Null,
        ArgumentType::I32 => Value::I64(i64::from(integer.cast_signed())),
        ArgumentType::U32 => Value::U64(u64::from(integer)),
        ArgumentType::I64 => Value::I64(body.word(WHAT)?.cast_signed()),
        ArgumentType::U64 => Value::U64(body.word(WHAT)?),
        ArgumentType::F64 => Value::F64(f64::from_bits(body.word(WHAT)?)),
        ArgumentType::Pointer => Value::Pointer(body.word(WHAT)?),
        ArgumentType::Koid => Value::Koid(body.word(WHAT)?),
        ArgumentType::Bool => Value::Bool(argument::BOOL.get(header) != 0),
        ArgumentType::Blob => Value::Blob(body.stream(argument::BLOB_LENGTH.get(header), WHAT)?),
        ArgumentType::String => return Ok((name, string_value(argument::STRING.get(header), body)?)),
    };
    Ok((name, ArgumentValue::Value(value)))
}

fn string_value<'a>(bits: u64, body: &mut Cursor<'a>) -> Result<ArgumentValue<'a>, DecodeError> {
    if string_ref::INLINE.get(bits) == 0 {
        return Ok(match string_ref::INDEX.get(bits) as u16 {
            0 => ArgumentValue::Value(Value::Str("")),
            index => ArgumentValue::StringIndex(index),
        });
    }
    let bytes = body.stream(string_ref::LENGTH.get(bits), "an argument's value")?;
    Ok(ArgumentValue::Value(std::str::from_utf8(bytes).map_or(Value::Blob(bytes), Value::Str)))
}
