//! Streams the records of a trace, in memory for a buffer (64 KiB) or the largest record that is handed out.

use std::io::Read;

use super::layout::{RecordType, large, record};
use super::record::{EventRecord, Record, parse, parse_event_only};
use crate::DecodeError;
use crate::input::Input;

/// The largest large record that a [`Reader`] hands out unless [told otherwise](Reader::large_limit), in bytes.
pub const LARGE_LIMIT: usize = 1 << 20;

/// Reads a trace, record by record.
///
/// ```
/// use hairline_formats::fxt::{self, Reader, Record};
///
/// let mut trace = Vec::new();
/// fxt::magic(&mut trace);
/// fxt::initialization(&mut trace, 1_000_000_000);
///
/// let mut reader = Reader::new(&trace[..]);
/// while let Some((offset, record)) = reader.next()? {
///     if let Record::Initialization { ticks_per_second } = record {
///         assert_eq!((offset, ticks_per_second), (8, 1_000_000_000));
///     }
/// }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    /// Bytes of the record that was given out last.
    given: usize,
    /// Words of the record that was not given out, but passed over; else 0.
    too_large: u64,
    large_limit: usize,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads from `reader`, which needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self { input: Input::new(reader), given: 0, too_large: 0, large_limit: LARGE_LIMIT, ended: false }
    }

    /// Hands out large records of up to this many bytes, instead of [`LARGE_LIMIT`]; for those above it, which may
    /// have 32 GiB, there is [`Record::TooLarge`]. The reader keeps as much memory as the largest it handed out.
    #[must_use]
    pub fn large_limit(mut self, bytes: usize) -> Self {
        self.large_limit = bytes;
        self
    }

    /// The next record, and the byte it begins at; None at the end.
    ///
    /// # Errors
    /// A record that contradicts itself: the next call goes on with the one after it. An input that ends inside a record
    /// ([`DecodeError::is_truncated`]), a record of size 0, or a reader that fails: the next call gives None.
    #[allow(clippy::should_implement_trait)] // the record borrows from the reader, which an Iterator's item cannot
    pub fn next(&mut self) -> Result<Option<(u64, Record<'_>)>, DecodeError> {
        let Some(offset) = self.advance()? else {
            return Ok(None);
        };
        Ok(Some((offset, self.record()?)))
    }

    /// Goes on to the next record, and gives the byte it begins at; None at the end. [`record`](Self::record) reads it, as often
    /// as it is asked to: for who must look at a record before it is known whether it is given on.
    ///
    /// # Errors
    /// Those of [`next`](Self::next), but for records that contradict themselves.
    pub fn advance(&mut self) -> Result<Option<u64>, DecodeError> {
        self.input.consume(std::mem::take(&mut self.given));
        if self.ended {
            return Ok(None);
        }
        self.ended = true; // unless a record is found, whose end is the beginning of the next
        let offset = self.input.offset();
        let Some(header) = self.header()? else {
            return Ok(None);
        };
        let is_large = record::TYPE.get(header) == RecordType::Large as u64;
        let words = if is_large { large::SIZE.get(header) } else { record::SIZE.get(header) };
        if words == 0 {
            return Err(DecodeError::zero_size(offset, "a record"));
        }
        let truncated = || DecodeError::truncated(offset, "a record");
        let limit = if is_large { self.large_limit } else { usize::MAX };
        self.too_large = 0;
        let Some(size) = usize::try_from(words * 8).ok().filter(|size| *size <= limit) else {
            if !self.input.skip(words * 8)? {
                return Err(truncated());
            }
            (self.ended, self.too_large) = (false, words);
            return Ok(Some(offset));
        };
        if self.input.fill(size as u64)?.len() < size {
            return Err(truncated());
        }
        (self.ended, self.given) = (false, size);
        Ok(Some(offset))
    }

    /// The record that was gone on to. Where there is none, it is one of no words.
    ///
    /// # Errors
    /// If it contradicts itself.
    pub fn record(&self) -> Result<Record<'_>, DecodeError> {
        match self.bytes() {
            [] => Ok(Record::TooLarge { words: self.too_large }),
            bytes => parse(bytes, self.input.offset()),
        }
    }

    /// The same, where it is an event; None where it is not.
    ///
    /// # Errors
    /// If it contradicts itself.
    #[inline]
    pub fn event(&self) -> Result<Option<EventRecord<'_>>, DecodeError> {
        parse_event_only(self.bytes(), self.input.offset())
    }

    /// Its bytes; none if it is too large.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.input.available().get(..self.given).unwrap_or_default()
    }

    fn header(&mut self) -> Result<Option<u64>, DecodeError> {
        let offset = self.input.offset();
        let bytes = self.input.fill(8)?;
        match bytes.first_chunk() {
            Some(word) => Ok(Some(u64::from_le_bytes(*word))),
            None if bytes.is_empty() => Ok(None),
            None => Err(DecodeError::truncated(offset, "a record's header")),
        }
    }
}
