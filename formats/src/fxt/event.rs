//! Event records, written and read.

use crate::DecodeError;
use crate::fxt::argument::{ArgumentSlice, Arguments, argument_words, fitting, put_arguments};
use crate::fxt::cursor::Cursor;
use crate::fxt::header::record_words;
use crate::fxt::layout::{EventKind, MAX_ARGS, MAX_RECORD_WORDS, RecordType, event as fields, record};
use crate::fxt::put::PutWords;
use crate::fxt::refs::{StringRef, ThreadRef};

/// An event to be written: "Event record".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// The kind of event.
    pub kind: EventKind,
    /// The time, in ticks.
    pub timestamp: u64,
    /// The thread on which the event happened.
    pub thread: ThreadRef,
    /// The category, a group of events that are enabled together.
    pub category: StringRef<'a>,
    /// The name that viewers show.
    pub name: StringRef<'a>,
    /// The arguments: names and values, at most [`MAX_ARGS`].
    pub args: ArgumentSlice<'a>,
    /// The counter id, end time or correlation id. It is written if the kind [has
    /// one](EventKind::has_payload); `None` is written as 0.
    pub payload: Option<u64>,
}

impl Event<'_> {
    /// Words of the header, the timestamp, the thread and the payload.
    fn fixed_words(&self) -> usize {
        2 + self.thread.words() + usize::from(self.kind.has_payload())
    }
}

/// Returns the number of words that the complete record takes.
///
/// If the result exceeds [`MAX_RECORD_WORDS`], [`event`] drops arguments.
///
/// ```
/// use hairline_formats::fxt::{self, EventKind, StringRef, ThreadRef};
///
/// let slice = fxt::Event {
///     kind: EventKind::DurationComplete,
///     timestamp: 10,
///     thread: ThreadRef::Index(1),
///     category: StringRef::Index(1),
///     name: StringRef::Index(2),
///     args: &[],
///     payload: Some(25), // the end
/// };
/// let mut out = Vec::new();
/// fxt::event(&mut out, &slice);
/// assert_eq!(fxt::event_words(&slice), 3); // header, begin and end
/// assert_eq!(out.len(), 24);
/// ```
#[must_use]
pub fn event_words(event: &Event<'_>) -> usize {
    let args: usize =
        event.args.iter().take(MAX_ARGS).map(|(name, value)| argument_words(*name, value)).sum();
    event.fixed_words() + event.category.words() + event.name.words() + args
}

/// Returns the header of an event record, which is the same for all events of one kind at one callsite.
///
/// `words` is the record's size and `args` its number of arguments; `thread`, `category` and `name` are the
/// bits of references.
///
/// ```
/// use hairline_formats::fxt::{self, EventKind, StringRef, ThreadRef};
///
/// let (thread, category, name) = (ThreadRef::Index(1), StringRef::Index(2), StringRef::Index(3));
/// let kind = EventKind::Instant;
/// let mut record = Vec::new();
/// let event = fxt::Event { kind, timestamp: 9, thread, category, name, args: &[], payload: None };
/// fxt::event(&mut record, &event);
/// let header = fxt::event_header(kind, 2, 0, thread.bits(), category.bits(), name.bits());
/// assert_eq!(record[..8], header.to_le_bytes());
/// ```
#[inline]
#[must_use]
pub const fn event_header(
    kind: EventKind,
    words: u64,
    args: u64,
    thread: u64,
    category: u64,
    name: u64,
) -> u64 {
    record::TYPE.set(RecordType::Event as u64)
        | record::SIZE.set(words)
        | fields::KIND.set(kind as u64)
        | fields::ARGS.set(args)
        | fields::THREAD.set(thread)
        | fields::CATEGORY.set(category)
        | fields::NAME.set(name)
}

/// Writes an "Event record".
///
/// A record that would exceed [`MAX_RECORD_WORDS`] loses arguments from its end, then the end of its name.
///
/// ```text
///   63      48   47          32   31        24   23 20   19 16   15        4   3   0
/// +------------+----------------+--------------+-------+-------+-------------+-------+
/// | name (ref) | category (ref) | thread (ref) | args  | kind  | size, words |   4   |
/// +------------+----------------+--------------+-------+-------+-------------+-------+
/// | timestamp                                                                        |
/// +----------------------------------------------------------------------------------+
/// | process's and thread's koids, if they are inline                                 |
/// +----------------------------------------------------------------------------------+
/// | the category, if it is inline                                                    |
/// +----------------------------------------------------------------------------------+
/// | the name, if it is inline                                                        |
/// +----------------------------------------------------------------------------------+
/// | arguments                                                                        |
/// +----------------------------------------------------------------------------------+
/// | counter id, end time or correlation id, if the kind has one                      |
/// +----------------------------------------------------------------------------------+
/// ```
///
/// ```
/// use hairline_formats::fxt::{self, Event, EventKind, StringRef, ThreadRef};
///
/// let begin = Event {
///     kind: EventKind::DurationBegin,
///     timestamp: 1_000,
///     thread: ThreadRef::Index(1),
///     category: StringRef::Index(1),
///     name: StringRef::Inline("read"),
///     args: &[],
///     payload: None,
/// };
/// let mut out = Vec::new();
/// fxt::event(&mut out, &begin);
/// assert_eq!(out.len(), 8 * fxt::event_words(&begin));
/// assert_eq!(fxt::event_record(&out).unwrap().0.name, begin.name);
/// ```
pub fn event(out: &mut impl PutWords, event: &Event<'_>) {
    let mut room = MAX_RECORD_WORDS - event.fixed_words();
    let category = event.category.within(room);
    room -= category.words();
    let name = event.name.within(room);
    room -= name.words();
    let (args, words) = fitting(event.args, room);
    let size = MAX_RECORD_WORDS - room + words;
    let header = event_header(
        event.kind,
        size as u64,
        args.len() as u64,
        event.thread.bits(),
        category.bits(),
        name.bits(),
    );
    out.word(header);
    out.word(event.timestamp);
    event.thread.put(out);
    out.stream(category.text().as_bytes());
    out.stream(name.text().as_bytes());
    put_arguments(out, args);
    if event.kind.has_payload() {
        out.word(event.payload.unwrap_or(0));
    }
}

/// An event that was read.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::fxt::{self, ArgumentValue, EventKind, StringRef, ThreadRef};
///
/// let mut trace = Vec::new();
/// fxt::event(&mut trace, &fxt::Event {
///     kind: EventKind::Instant,
///     timestamp: 1_000,
///     thread: ThreadRef::Index(1),
///     category: StringRef::Inline("net"),
///     name: StringRef::Inline("retry"),
///     args: &[(StringRef::Inline("attempt"), Value::I64(3))],
///     payload: None,
/// });
/// let (event, size) = fxt::event_record(&trace).unwrap();
/// assert_eq!((event.timestamp, event.name, size), (1_000, StringRef::Inline("retry"), trace.len()));
/// let (name, value) = event.args().next().unwrap()?;
/// assert_eq!((name, value), (StringRef::Inline("attempt"), ArgumentValue::Value(Value::I64(3))));
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventRecord<'a> {
    /// The kind of event.
    pub kind: EventKind,
    /// The time, in ticks.
    pub timestamp: u64,
    /// The thread on which the event happened.
    pub thread: ThreadRef,
    /// The category.
    pub category: StringRef<'a>,
    /// The name.
    pub name: StringRef<'a>,
    /// The counter id, end time or correlation id, if the kind [has one](EventKind::has_payload).
    pub payload: Option<u64>,
    args: Arguments<'a>,
}

impl<'a> EventRecord<'a> {
    /// Returns the arguments.
    #[must_use]
    pub fn args(&self) -> Arguments<'a> {
        self.args.clone()
    }
}

/// Reads the event record at the beginning of `bytes`. Returns the event and the record's size in bytes.
///
/// Returns `None` if the bytes begin with another record, or with one that is cut off or malformed.
#[must_use]
pub fn event_record(bytes: &[u8]) -> Option<(EventRecord<'_>, usize)> {
    let header = u64::from_le_bytes(bytes.first_chunk().copied()?);
    let len = usize::try_from(record_words(header)).ok()? * 8;
    parse_event_only(bytes.get(..len)?, 0).ok()?.map(|event| (event, len))
}

/// Reads one whole record. Returns `None` if it is not an event.
#[inline]
pub(super) fn parse_event_only(bytes: &[u8], offset: u64) -> Result<Option<EventRecord<'_>>, DecodeError> {
    let mut cursor = Cursor::new(bytes, offset);
    let header = cursor.word("a record's header")?;
    if record::TYPE.get(header) == RecordType::Event as u64 { parse(header, &mut cursor) } else { Ok(None) }
}

/// Whether a whole record is an event and has no words that belong to no part of it.
#[cfg(feature = "read")]
pub(super) fn is_exact_event(bytes: &[u8]) -> bool {
    let mut cursor = Cursor::new(bytes, 0);
    let Ok(header) = cursor.word("a record's header") else { return false };
    record::TYPE.get(header) == RecordType::Event as u64
        && matches!(parse(header, &mut cursor), Ok(Some(_)))
        && cursor.is_at_end()
}

/// Reads the rest of an event record. Returns `None` for a kind that the document does not define.
#[inline]
pub(super) fn parse<'a>(
    header: u64,
    cursor: &mut Cursor<'a>,
) -> Result<Option<EventRecord<'a>>, DecodeError> {
    let Some(kind) = EventKind::from_number(fields::KIND.get(header)) else {
        return Ok(None);
    };
    // Each of these moves the cursor, so they follow the order of the words.
    let timestamp = cursor.word("a timestamp")?;
    let thread = cursor.thread(fields::THREAD.get(header))?;
    let category = cursor.string(fields::CATEGORY.get(header), "a category")?;
    let name = cursor.string(fields::NAME.get(header), "a name")?;
    let args = Arguments::take(cursor, fields::ARGS.get(header))?;
    let payload = kind.has_payload().then(|| cursor.word("an event's last word")).transpose()?;
    Ok(Some(EventRecord { kind, timestamp, thread, category, name, payload, args }))
}
