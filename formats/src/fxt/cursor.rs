//! Reads what stands after a record's header: words, streams, references, arguments.

use super::layout::{ArgumentType, argument, string_ref, words};
use super::refs::{ProcessRef, StringRef, ThreadRef};
use crate::text::valid_prefix;
use crate::{DecodeError, Value};

/// A place in a record, which it cannot leave.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Cursor<'a> {
    /// At the beginning of `bytes`, which stand at byte `offset` of the input.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { rest: bytes, offset }
    }

    #[inline]
    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(DecodeError::past_end(self.offset, what));
        };
        self.rest = rest;
        self.offset += len as u64;
        Ok(taken)
    }

    #[inline]
    pub(super) fn word(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let bytes = self.take(8, what)?;
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        Ok(u64::from_le_bytes(word))
    }

    /// `len` bytes and their padding.
    #[inline]
    pub(super) fn stream(&mut self, len: u64, what: &'static str) -> Result<&'a [u8], DecodeError> {
        // Checked before it is padded: a large blob's length has 64 bits, and padding it may overflow.
        let len = match usize::try_from(len) {
            Ok(len) if len <= self.rest.len() => len,
            _ => return Err(DecodeError::past_end(self.offset, what)),
        };
        Ok(&self.take(words(len) * 8, what)?[..len])
    }

    /// The string that a reference of these bits means.
    #[inline]
    pub(super) fn string(&mut self, bits: u64, what: &'static str) -> Result<StringRef<'a>, DecodeError> {
        Ok(if string_ref::INLINE.get(bits) != 0 {
            StringRef::Inline(valid_prefix(self.stream(string_ref::LENGTH.get(bits), what)?))
        } else {
            match string_ref::INDEX.get(bits) as u16 {
                0 => StringRef::Empty,
                index => StringRef::Index(index),
            }
        })
    }

    /// The thread that a reference of these bits means.
    #[inline]
    pub(super) fn thread(&mut self, bits: u64) -> Result<ThreadRef, DecodeError> {
        match bits as u8 {
            0 => Ok(ThreadRef::Inline {
                process: self.word("an inline process")?,
                thread: self.word("an inline thread")?,
            }),
            index => Ok(ThreadRef::Index(index)),
        }
    }

    /// The process that a reference of these bits means.
    pub(super) fn process(&mut self, bits: u64) -> Result<ProcessRef, DecodeError> {
        match bits as u8 {
            0 => Ok(ProcessRef::Inline(self.word("an inline process")?)),
            index => Ok(ProcessRef::Index(index)),
        }
    }

    /// The next `count` arguments, by their sizes alone.
    #[inline]
    pub(super) fn arguments(&mut self, count: u64) -> Result<Arguments<'a>, DecodeError> {
        let (rest, offset) = (self.rest, self.offset);
        for _ in 0..count {
            self.argument()?;
        }
        let len = rest.len() - self.rest.len();
        Ok(Arguments { cursor: Cursor { rest: &rest[..len], offset }, skipped: 0 })
    }

    /// The next argument's header, and what follows it in the argument.
    fn argument(&mut self) -> Result<(u64, Self), DecodeError> {
        let (rest, offset) = (self.rest, self.offset);
        let header = Cursor { rest, offset }.word("an argument")?;
        let words = argument::SIZE.get(header) as usize;
        if words == 0 {
            return Err(DecodeError::zero_size(offset, "an argument"));
        }
        let bytes = self.take(words * 8, "an argument")?;
        Ok((header, Self { rest: &bytes[8..], offset: offset + 8 }))
    }
}

/// What an argument says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgumentValue<'a> {
    /// A value. A string that is not UTF-8 is a [`Value::Blob`].
    Value(Value<'a>),
    /// A string, by the index of its String record.
    StringIndex(u16),
}

/// The arguments of a record, in their order: names and values.
///
/// An error is about one argument only; the next ones may be good. Arguments of a type that is not known are
/// passed over and [counted](Self::skipped).
#[derive(Clone, Debug)]
pub struct Arguments<'a> {
    cursor: Cursor<'a>,
    skipped: usize,
}

impl Arguments<'_> {
    /// How many were passed over so far.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = Result<(StringRef<'a>, ArgumentValue<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.cursor.rest.is_empty() {
            // The sizes were checked when the record was read, so this cannot fail and repeat for ever.
            let (header, mut body) = match self.cursor.argument() {
                Ok(argument) => argument,
                Err(e) => {
                    self.cursor.rest = &[];
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
