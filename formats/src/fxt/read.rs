//! Streams the records of a trace. Memory: a buffer of 64 KiB, or the largest record that is returned.

use std::io::Read;

use crate::DecodeError;
use crate::fxt::event::{EventRecord, is_exact_event, parse_event_only};
use crate::fxt::header::{is_large, record_words};
use crate::fxt::layout::record;
use crate::fxt::plain::PlainEvent;
use crate::fxt::record::{Record, parse};
use crate::fxt::tables::{string_record, thread_record};
use crate::fxt::texts::valid_texts;
use crate::input::Input;
use crate::zeros::{Begin, Zeros};

/// The default of [`RecordReader::large_limit`], in bytes.
pub const LARGE_LIMIT: usize = 1 << 20;

/// Reads a trace, record by record.
///
/// ```
/// use hairline_formats::fxt::{self, Record, RecordReader};
///
/// let mut trace = Vec::new();
/// fxt::magic(&mut trace);
/// fxt::initialization(&mut trace, 1_000_000_000);
///
/// let mut reader = RecordReader::new(&trace[..]);
/// while let Some((offset, record)) = reader.next()? {
///     if let Record::Initialization { ticks_per_second } = record {
///         assert_eq!((offset, ticks_per_second), (8, 1_000_000_000));
///     }
/// }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct RecordReader<R> {
    input: Input<R>,
    /// Bytes of the current record; 0 if it was too large and is passed over.
    current: usize,
    /// Words of the current record if it was too large, else 0.
    too_large: u64,
    large_limit: usize,
    zeros: Zeros,
    /// The current record, if the input has it with texts that are not UTF-8; else empty.
    valid: Vec<u8>,
    wrong_texts: u64,
    ended: bool,
}

impl<R: Read> RecordReader<R> {
    /// Creates a reader of `reader`, which needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self {
            input: Input::new(reader),
            current: 0,
            too_large: 0,
            large_limit: LARGE_LIMIT,
            zeros: Zeros::default(),
            valid: Vec::new(),
            wrong_texts: 0,
            ended: false,
        }
    }

    /// Limits the large records that are returned to `bytes`. The default is [`LARGE_LIMIT`].
    ///
    /// A larger one, of up to 32 GiB, is passed over and returned as [`Record::TooLarge`]. The reader's
    /// buffer grows to the largest record that it returns.
    ///
    /// ```
    /// use hairline_formats::fxt::{self, LargeBlob, Record, RecordReader, StringRef};
    ///
    /// let (category, name) = (StringRef::Empty, StringRef::Empty);
    /// let mut trace = Vec::new();
    /// fxt::large_blob(&mut trace, &LargeBlob { category, name, metadata: None, bytes: &[0; 4096] });
    /// let mut reader = RecordReader::new(&trace[..]).large_limit(1024);
    /// assert!(matches!(reader.next()?, Some((0, Record::TooLarge { .. }))));
    /// # Ok::<(), hairline_formats::DecodeError>(())
    /// ```
    #[must_use]
    pub fn large_limit(mut self, bytes: usize) -> Self {
        self.large_limit = bytes;
        self
    }

    /// Returns the next record and the offset of its first byte; `None` at the end.
    ///
    /// # Errors
    /// * The record is malformed. The next call returns the record after it.
    /// * The input ends inside a record ([`DecodeError::is_truncated`]), a record has size 0, or the input
    ///   cannot be read. The next call returns `None`.
    #[allow(clippy::should_implement_trait)] // an Iterator's item cannot borrow from the reader
    pub fn next(&mut self) -> Result<Option<(u64, Record<'_>)>, DecodeError> {
        let Some(offset) = self.advance()? else {
            return Ok(None);
        };
        Ok(Some((offset, self.record()?)))
    }

    /// Advances to the next record and returns the offset of its first byte; `None` at the end.
    ///
    /// [`record`](Self::record) and [`event`](Self::event) read the record, any number of times. A caller
    /// that looks at a record before it decides about it uses these instead of [`next`](Self::next).
    ///
    /// ```
    /// use hairline_formats::fxt::{self, RecordReader};
    ///
    /// let mut trace = Vec::new();
    /// fxt::magic(&mut trace);
    /// fxt::string_record(&mut trace, 1, "net");
    /// let (mut reader, mut copy) = (RecordReader::new(&trace[..]), Vec::new());
    /// while reader.advance()?.is_some() {
    ///     if reader.event()?.is_none() {
    ///         copy.extend_from_slice(reader.bytes()); // copies all records but events, without reading them
    ///     }
    /// }
    /// assert_eq!(copy, trace);
    /// # Ok::<(), hairline_formats::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`next`](Self::next), except for malformed records.
    pub fn advance(&mut self) -> Result<Option<u64>, DecodeError> {
        self.input.consume(std::mem::take(&mut self.current));
        if self.ended {
            return Ok(None);
        }
        self.ended = true; // until a whole record is found
        let found = self.find()?;
        self.ended = found.is_none();
        Ok(found)
    }

    fn find(&mut self) -> Result<Option<u64>, DecodeError> {
        loop {
            self.valid.clear();
            let Some(offset) = self.find_record()? else {
                return Ok(None);
            };
            let is_cut = self.bytes().ends_with(&[0; 8]) && self.is_cut_by_zeros()?;
            if !is_cut {
                self.set_valid();
                return Ok(Some(offset));
            }
            self.zeros.cut += 1;
            self.input.consume(std::mem::take(&mut self.current));
        }
    }

    fn set_valid(&mut self) {
        // A malformed record stays as it is: the place of its error is one of the input.
        if let Some((valid, wrong)) = valid_texts(self.bytes())
            && is_well_formed(self.bytes())
        {
            self.valid = valid;
            self.wrong_texts += wrong;
        }
    }

    #[cold]
    fn is_cut_by_zeros(&mut self) -> Result<bool, DecodeError> {
        let (offset, size) = (self.input.offset(), self.current);
        let bytes = self.input.fill(size as u64 + 8)?;
        Ok(offset > 0 && bytes[size..].starts_with(&[0; 8]) && ends_in_hole(&bytes[..size], offset))
    }

    fn find_record(&mut self) -> Result<Option<u64>, DecodeError> {
        let mut header = self.header()?;
        if header == Some(0) && self.input.offset() > 0 {
            self.zeros.pass(&mut self.input, 8, begin)?;
            header = self.header()?;
        }
        let offset = self.input.offset();
        let Some(header) = header else {
            return Ok(None);
        };
        let words = record_words(header);
        if words == 0 {
            return Err(DecodeError::zero_size(offset, "a record"));
        }
        let truncated = || DecodeError::truncated(offset, "a record");
        let limit = if is_large(header) { self.large_limit } else { usize::MAX };
        self.too_large = 0;
        let Some(size) = usize::try_from(words * 8).ok().filter(|size| *size <= limit) else {
            if !self.input.skip(words * 8)? {
                return Err(truncated());
            }
            self.too_large = words;
            return Ok(Some(offset));
        };
        if self.input.fill(size as u64)?.len() < size {
            return Err(truncated());
        }
        self.current = size;
        Ok(Some(offset))
    }

    /// Advances to the next record if that is a plain event in memory, and returns its offset and content.
    ///
    /// Otherwise returns `None`, and [`advance`](Self::advance) comes to that record.
    ///
    /// ```
    /// use hairline_formats::fxt::{self, Event, EventKind, RecordReader, StringRef, ThreadRef};
    ///
    /// let (thread, category, name) = (ThreadRef::Index(1), StringRef::Index(2), StringRef::Index(3));
    /// let kind = EventKind::DurationBegin;
    /// let mut trace = Vec::new();
    /// fxt::magic(&mut trace);
    /// let event = Event { kind, timestamp: 7, thread, category, name, args: &[], payload: None };
    /// fxt::event(&mut trace, &event);
    ///
    /// let mut reader = RecordReader::new(&trace[..]);
    /// assert!(reader.advance_plain().is_none()); // the magic number
    /// reader.advance()?;
    /// let (offset, plain) = reader.advance_plain().unwrap();
    /// assert_eq!((offset, plain.timestamp, plain.thread, plain.category, plain.name), (8, 7, 1, 2, 3));
    /// # Ok::<(), hairline_formats::DecodeError>(())
    /// ```
    #[inline]
    pub fn advance_plain(&mut self) -> Option<(u64, PlainEvent)> {
        self.input.consume(std::mem::take(&mut self.current));
        if self.ended {
            return None;
        }
        let (event, size) = PlainEvent::decode(self.input.available())?;
        self.valid.clear();
        self.current = size;
        Some((self.input.offset(), event))
    }

    /// Returns the stretches of zeros that were passed over so far, and the records that end in them and were
    /// left out. The zeros of a trace are not its first
    /// bytes.
    #[must_use]
    pub fn zeros(&self) -> Zeros {
        self.zeros
    }

    /// Returns the number of inline texts of events that were not UTF-8 so far.
    #[must_use]
    pub fn wrong_texts(&self) -> u64 {
        self.wrong_texts
    }

    /// The offset of the next record, and the bytes in memory from there on. They remain the next ones until
    /// [`pass`](Self::pass). None after an error.
    #[inline]
    pub fn buffered(&mut self) -> (u64, &[u8]) {
        self.input.consume(std::mem::take(&mut self.current));
        (self.input.offset(), if self.ended { &[] } else { self.input.available() })
    }

    /// Passes over whole records that [`buffered`](Self::buffered) returned, of this size in all.
    #[inline]
    pub fn pass(&mut self, size: usize) {
        self.valid.clear();
        self.current = size.min(self.input.available().len());
    }

    /// Reads the current record. Before the first and after the last one, returns a [`Record::TooLarge`] of 0
    /// words.
    ///
    /// # Errors
    /// The record is malformed.
    pub fn record(&self) -> Result<Record<'_>, DecodeError> {
        match self.bytes() {
            [] => Ok(Record::TooLarge { words: self.too_large }),
            bytes => parse(bytes, self.input.offset()),
        }
    }

    /// Reads the current record if it is an event. Returns `None` for other records.
    ///
    /// # Errors
    /// The record is malformed.
    #[inline]
    pub fn event(&self) -> Result<Option<EventRecord<'_>>, DecodeError> {
        parse_event_only(self.bytes(), self.input.offset())
    }

    /// Returns the current record's bytes; none if it is too large. Inline texts of an event that are not UTF-8
    /// have U+FFFD in the place of what is wrong.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        if !self.valid.is_empty() {
            return &self.valid;
        }
        self.input.available().get(..self.current).unwrap_or_default()
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

/// Whether a record is an event of which all parts can be read.
fn is_well_formed(bytes: &[u8]) -> bool {
    let event = parse_event_only(bytes, 0).ok().flatten();
    event.is_some_and(|event| event.args().all(|argument| argument.is_ok()))
}

/// Whether bytes begin with an event, and another record, more zeros or the end of the input follows; or with
/// the definition of a string or a thread that leads to an event. Arguments have the size where records have
/// it, so other records are too much like them.
fn begin(bytes: &[u8], is_end: bool) -> Begin {
    let event = match whole_record(bytes) {
        Ok(record) if is_exact_event(record) => record,
        Ok(record) if is_definition(record) => return leads_to_event(bytes, record.len()),
        Ok(_) => return Begin::Other,
        Err(begin) => return begin,
    };
    match bytes.get(event.len()..).unwrap_or_default() {
        [] if is_end => Begin::Record,
        [] => Begin::Needs(event.len() + 8),
        next if next.starts_with(&[0; 8]) => Begin::Record,
        next => match whole_record(next) {
            Ok(record) if is_known(record) => Begin::Record,
            Ok(_) => Begin::Other,
            Err(Begin::Needs(len)) => Begin::Needs(event.len() + len),
            Err(begin) => begin,
        },
    }
}

/// So many records behind a definition show that it is one, if no event comes earlier.
const SHOWN: usize = 64;

/// Whether the records from a place on, of which there is one at least, are known ones up to an event.
fn leads_to_event(bytes: &[u8], mut at: usize) -> Begin {
    for _ in 0..SHOWN {
        match whole_record(bytes.get(at..).unwrap_or_default()) {
            Ok(record) if is_exact_event(record) => return Begin::Record,
            Ok(record) if is_known(record) => at += record.len(),
            Ok(_) => return Begin::Other,
            Err(Begin::Needs(len)) => return Begin::Needs(at + len),
            Err(begin) => return begin,
        }
    }
    Begin::Record
}

fn is_known(record: &[u8]) -> bool {
    !matches!(parse(record, 0), Err(_) | Ok(Record::Unknown { .. }))
}

/// Whether a record defines a string or a thread, and has the bytes that a writer gives it. No argument has
/// them too.
fn is_definition(record: &[u8]) -> bool {
    let mut same = Vec::new();
    match parse(record, 0) {
        Ok(Record::String { index: index @ 1.., value: value @ [_, ..] }) => match std::str::from_utf8(value)
        {
            Ok(text) => string_record(&mut same, index, text),
            Err(_) => return false,
        },
        Ok(Record::Thread { index: index @ 1.., process, thread }) => {
            thread_record(&mut same, index, process, thread);
        }
        _ => return false,
    }
    same == record
}

/// The record that bytes begin with. It is no large one, whose size would be any number.
fn whole_record(bytes: &[u8]) -> Result<&[u8], Begin> {
    let Some(header) = bytes.first_chunk().map(|word| u64::from_le_bytes(*word)) else {
        return Err(Begin::Needs(8));
    };
    let size = record::SIZE.get(header) as usize * 8;
    if is_large(header) || size == 0 {
        return Err(Begin::Other);
    }
    bytes.get(..size).ok_or(Begin::Needs(size))
}

/// A hole begins where a block of a disk does.
const BLOCK: u64 = 512;
/// So many zeros at the end of a record can be its content: the value of an argument, and a counter's id.
const CONTENT: usize = 16;

/// Whether a record that zeros follow ends in a hole: from a block's begin on, without any content, or with
/// more zeros than a record has at its end.
fn ends_in_hole(record: &[u8], offset: u64) -> bool {
    let zeros = record.iter().rev().take_while(|byte| **byte == 0).count() / 8 * 8;
    let end = offset + record.len() as u64;
    let has_block = (end - 1) / BLOCK * BLOCK >= end - zeros as u64;
    zeros > 0 && (has_block || zeros > CONTENT || zeros >= record.len() - 8)
}
