//! Reads everything that a decoder returns, and checks the rules that hold for any input.

use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind, Read};

use hairline_formats::{DecodeError, DecodeErrorKind};

use super::random::Random;

/// Kinds of errors, for the summary.
pub(crate) const ERRORS: [&str; 9] = [
    "truncated",
    "size 0",
    "past end",
    "long varint",
    "wire type",
    "field number",
    "unexpected",
    "not JSON",
    "no time",
];

/// The result of reading an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The number of records or packets.
    pub(crate) items: u64,
    /// The number of results of their iterators.
    pub(crate) parts: u64,
    /// The number of errors by [kind](ERRORS).
    pub(crate) errors: [u64; ERRORS.len()],
    /// The hash of all results in their order; 0 if it is not computed.
    pub(crate) hash: u64,
    /// The number of parts that the reader passed over between the items.
    pub(crate) skipped: u64,
    /// The offset of a truncation, and the hash of the results before it.
    pub(crate) truncated: Option<(u64, u64)>,
}

/// A walk through one input.
#[derive(Debug)]
pub(crate) struct Walk {
    len: u64,
    /// The number of calls of the reader and of iterators that may return a result.
    max_steps: u64,
    max_parts: u64,
    steps: u64,
    hasher: Option<Hash>,
    /// The offset of the item that was returned last.
    item: u64,
    /// The smallest offset of the next item.
    free: u64,
    outcome: Outcome,
}

#[derive(Clone, Debug, Default)]
struct Hash(DefaultHasher);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl Walk {
    /// A walk through an input of `len` bytes, with items of at least `min_item` bytes.
    pub(crate) fn new(len: usize, min_item: usize, hashed: bool) -> Self {
        Self {
            len: len as u64,
            max_steps: (len / min_item) as u64 + 1,
            // Several iterators read the same bytes, and each can end with an error.
            max_parts: len as u64 * 8 + 16,
            steps: 0,
            hasher: hashed.then(Hash::default),
            item: 0,
            free: 0,
            outcome: Outcome::default(),
        }
    }

    /// Checks a record or packet at byte `offset`.
    pub(crate) fn item(&mut self, offset: u64, item: &dyn Debug) -> Result<(), String> {
        self.outcome.items += 1;
        self.step()?;
        if offset < self.free || offset >= self.len {
            return Err(format!("an item at {offset}, though all before {} is read", self.free));
        }
        (self.item, self.free) = (offset, offset + 1);
        self.show(&(offset, item));
        Ok(())
    }

    /// Checks a result of an item's iterator.
    pub(crate) fn part<T: Debug>(&mut self, part: Result<T, DecodeError>) -> Result<Option<T>, String> {
        self.outcome.parts += 1;
        if self.outcome.parts > self.max_parts {
            return Err(format!("more than {} parts", self.max_parts));
        }
        match part {
            Ok(part) => {
                self.show(&part);
                Ok(Some(part))
            }
            Err(e) if e.is_truncated() => Err(format!("a part of what is in memory: {e}")),
            Err(e) => self.error(&e).map(|()| None),
        }
    }

    /// Checks an error of the reader.
    pub(crate) fn failed(&mut self, e: &DecodeError) -> Result<(), String> {
        self.step()?;
        self.error(e)
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > self.max_steps {
            return Err(format!("more than {} items and errors", self.max_steps));
        }
        Ok(())
    }

    fn error(&mut self, e: &DecodeError) -> Result<(), String> {
        if e.offset < self.item || e.offset > self.len {
            return Err(format!("an error outside {}..{}: {e}", self.item, self.len));
        }
        self.free = self.free.max(e.offset);
        let kind = match e.kind {
            DecodeErrorKind::Truncated { .. } => 0,
            DecodeErrorKind::ZeroSize { .. } => 1,
            DecodeErrorKind::PastEnd { .. } => 2,
            DecodeErrorKind::LongVarint => 3,
            DecodeErrorKind::WireType(_) => 4,
            DecodeErrorKind::FieldNumber(_) => 5,
            DecodeErrorKind::Unexpected(_) => 6,
            DecodeErrorKind::Json(_) => 7,
            DecodeErrorKind::Time { .. } => 8,
            _ => return Err(format!("an error that cannot be: {e}")),
        };
        self.outcome.errors[kind] += 1;
        if e.is_truncated() {
            self.outcome.truncated = Some((e.offset, self.hash()));
        }
        self.show(e);
        Ok(())
    }

    /// Adds another value that must not depend on the pieces of the input.
    pub(crate) fn show(&mut self, what: &dyn Debug) {
        if let Some(hasher) = &mut self.hasher {
            // Writing to a hasher cannot fail.
            let _ = write!(hasher, "{what:?};");
        }
    }

    /// Notes the number of parts that the reader passed over between the items.
    pub(crate) fn skipped(&mut self, skipped: u64) -> Result<(), String> {
        self.outcome.skipped = skipped;
        if self.steps + skipped > self.max_steps { Err(format!("{skipped} fields skipped")) } else { Ok(()) }
    }

    fn hash(&self) -> u64 {
        self.hasher.as_ref().map_or(0, |hasher| hasher.0.finish())
    }

    pub(crate) fn end(mut self) -> Outcome {
        self.outcome.hash = self.hash();
        self.outcome
    }
}

/// Returns one to seven bytes at a time, and is sometimes interrupted.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) random: Random,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.random.one_in(32) {
            return Err(ErrorKind::Interrupted.into());
        }
        let most = self.random.below(7) + 1;
        let len = self.bytes.len().min(buffer.len()).min(most);
        let (now, later) = self.bytes.split_at(len);
        buffer[..len].copy_from_slice(now);
        self.bytes = later;
        Ok(len)
    }
}
