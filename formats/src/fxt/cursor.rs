//! Reads the parts of one record: words, streams and references.

use crate::DecodeError;
use crate::fxt::layout::{argument, string_ref, words};
use crate::fxt::refs::{ProcessRef, StringRef, ThreadRef};
use crate::text::valid_prefix;

/// A position in a record. Reading past the record's end is an error.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor at the beginning of `bytes`, which begin at byte `offset` of the input.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { rest: bytes, offset }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes from here on.
    #[cfg_attr(not(feature = "read"), allow(dead_code))]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The bytes from here up to `end`, a later position in the same record.
    #[inline]
    pub(super) fn until(self, end: &Self) -> Self {
        Self { rest: &self.rest[..self.rest.len() - end.rest.len()], offset: self.offset }
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

    /// Reads `len` bytes and passes over their padding.
    #[inline]
    pub(super) fn stream(&mut self, len: u64, what: &'static str) -> Result<&'a [u8], DecodeError> {
        // Checked before it is padded: a large blob's length has 64 bits, and its padding can overflow.
        let len = match usize::try_from(len) {
            Ok(len) if len <= self.rest.len() => len,
            _ => return Err(DecodeError::past_end(self.offset, what)),
        };
        Ok(&self.take(words(len) * 8, what)?[..len])
    }

    /// Reads the string of the reference with these bits.
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

    /// Reads the thread of the reference with these bits.
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

    /// Reads the process of the reference with these bits.
    pub(super) fn process(&mut self, bits: u64) -> Result<ProcessRef, DecodeError> {
        match bits as u8 {
            0 => Ok(ProcessRef::Inline(self.word("an inline process")?)),
            index => Ok(ProcessRef::Index(index)),
        }
    }

    /// Reads an argument's header. Returns it with a cursor on the rest of the argument.
    pub(super) fn argument(&mut self) -> Result<(u64, Self), DecodeError> {
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
