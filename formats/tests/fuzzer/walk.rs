//! Looks at everything that a decoder gives, and checks what must hold for any input.

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

/// How an input was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Records or packets.
    pub(crate) items: u64,
    /// What their iterators gave.
    pub(crate) parts: u64,
    /// By [kind](ERRORS).
    pub(crate) errors: [u64; ERRORS.len()],
    /// Of everything that was given, in its order; 0 if nobody asked for it.
    pub(crate) hash: u64,
    /// What the reader passed over between the items.
    pub(crate) skipped: u64,
    /// Where the input was found to end too early, and the hash of what came before.
    pub(crate) truncated: Option<(u64, u64)>,
}

/// A walk through one input.
#[derive(Debug)]
pub(crate) struct Walk {
    len: u64,
    /// Calls of the reader, and of the iterators of what it gives, that may give something.
    max_steps: u64,
    max_parts: u64,
    steps: u64,
    hasher: Option<Hash>,
    /// Where the item begins that was given last.
    item: u64,
    /// No item may begin before this.
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
    /// Through an input of `len` bytes, of whose items each takes at least `min_item`.
    pub(crate) fn new(len: usize, min_item: usize, hashed: bool) -> Self {
        Self {
            len: len as u64,
            max_steps: (len / min_item) as u64 + 1,
            // Several iterators pass over the same bytes, and each may end with an error.
            max_parts: len as u64 * 8 + 16,
            steps: 0,
            hasher: hashed.then(Hash::default),
            item: 0,
            free: 0,
            outcome: Outcome::default(),
        }
    }

    /// A record or packet at byte `offset`.
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

    /// What an iterator of an item gave.
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

    /// The reader found no record or packet, but this.
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

    /// Something else that must be the same however the input is read.
    pub(crate) fn show(&mut self, what: &dyn Debug) {
        if let Some(hasher) = &mut self.hasher {
            // Writing to a hasher does not fail.
            let _ = write!(hasher, "{what:?};");
        }
    }

    /// The reader passed over so much between the items.
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

/// Gives one to seven bytes at a time, and is interrupted now and then.
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
