//! Writes whole records, each function one (but [`blob`], as many as its bytes need).
//!
//! Nothing here can fail or write a record that is not well-formed: what a field has no room for is cut, and
//! an event that would exceed [`MAX_RECORD_WORDS`] loses arguments from its end. Who would rather know asks
//! [`event_words`] first.

use super::argument::{ArgumentSlice, argument_words, put_argument};
use super::layout::{
    EventKind, MAGIC, MAX_ARGS, MAX_PROVIDER_NAME, MAX_RECORD_WORDS, MAX_STRING, MetadataKind, RecordType,
    argument, blob as blob_fields, event as event_fields, metadata, record, string as string_fields,
    thread as thread_fields, words,
};
use super::refs::{StringRef, ThreadRef};
use crate::{Value, truncate_utf8};

/// Where records are written to. "Atoms": words, and streams of bytes.
pub trait Put {
    /// Appends a word, little-endian.
    fn word(&mut self, w: u64);

    /// Appends the bytes, and zeros up to a multiple of 8.
    fn stream(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    #[inline]
    fn word(&mut self, w: u64) {
        self.extend_from_slice(&w.to_le_bytes());
    }

    #[inline]
    fn stream(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
        self.extend_from_slice(&[0; 8][..bytes.len().next_multiple_of(8) - bytes.len()]);
    }
}

pub(super) const fn header(kind: RecordType, words: usize) -> u64 {
    record::TYPE.set(kind as u64) | record::SIZE.set(words as u64)
}

/// "Magic number record": must be the trace's first.
///
/// ```text
///   63 56   55      24   23  20   19  16   15        4   3   0
/// +-------+------------+--------+--------+-------------+-------+
/// | 0     | 0x16547846 | info 0 | kind 4 | size 1      |   0   |
/// +-------+------------+--------+--------+-------------+-------+
/// ```
pub fn magic(out: &mut impl Put) {
    out.word(MAGIC);
}

/// "Initialization record": what a unit of the timestamps that follow is worth.
///
/// ```text
///   63                16   15        4   3   0
/// +----------------------+-------------+-------+
/// | 0                    | size, words |   1   |
/// +----------------------+-------------+-------+
/// | ticks per second                           |
/// +--------------------------------------------+
/// ```
pub fn initialization(out: &mut impl Put, ticks_per_second: u64) {
    out.word(header(RecordType::Initialization, 2));
    out.word(ticks_per_second);
}

const fn about_provider(kind: MetadataKind, words: usize, id: u32) -> u64 {
    header(RecordType::Metadata, words) | metadata::KIND.set(kind as u64) | metadata::PROVIDER.set(id as u64)
}

/// "Provider info metadata": names a provider, in at most [`MAX_PROVIDER_NAME`] bytes; what follows is its own.
///
/// ```text
///   63 60   59       52   51         20   19  16   15        4   3   0
/// +-------+-------------+---------------+--------+-------------+-------+
/// | 0     | name, bytes | provider id   | kind 1 | size, words |   0   |
/// +-------+-------------+---------------+--------+-------------+-------+
/// | the name                                                           |
/// +--------------------------------------------------------------------+
/// ```
pub fn provider_info(out: &mut impl Put, id: u32, name: &str) {
    let name = truncate_utf8(name, MAX_PROVIDER_NAME);
    let about = about_provider(MetadataKind::ProviderInfo, 1 + words(name.len()), id);
    out.word(about | metadata::NAME_LENGTH.set(name.len() as u64));
    out.stream(name.as_bytes());
}

/// "Provider section metadata": what follows is that provider's.
///
/// ```text
///   63 52   51         20   19  16   15        4   3   0
/// +-------+---------------+--------+-------------+-------+
/// | 0     | provider id   | kind 2 | size, words |   0   |
/// +-------+---------------+--------+-------------+-------+
/// ```
pub fn provider_section(out: &mut impl Put, id: u32) {
    out.word(about_provider(MetadataKind::ProviderSection, 1, id));
}

/// "Provider event metadata": 0 is [`PROVIDER_EVENT_BUFFER_FULL`](super::PROVIDER_EVENT_BUFFER_FULL); 15 is the most.
///
/// ```text
///   63 56   55 52   51         20   19  16   15        4   3   0
/// +-------+-------+---------------+--------+-------------+-------+
/// | 0     | event | provider id   | kind 3 | size, words |   0   |
/// +-------+-------+---------------+--------+-------------+-------+
/// ```
pub fn provider_event(out: &mut impl Put, id: u32, event: u8) {
    out.word(about_provider(MetadataKind::ProviderEvent, 1, id) | metadata::EVENT.set(u64::from(event)));
}

/// Words that [`string_record`] will write.
#[must_use]
pub fn string_record_words(text: &str) -> usize {
    1 + words(truncate_utf8(text, MAX_STRING).len())
}

/// "String record": from here on `index`, 1 to [`MAX_STRING_INDEX`](super::MAX_STRING_INDEX), means `text`.
///
/// ```text
///   63 47   46         32   31   30 16   15        4   3   0
/// +-------+---------------+----+-------+-------------+-------+
/// | 0     | length, bytes | 0  | index | size, words |   2   |
/// +-------+---------------+----+-------+-------------+-------+
/// | the string                                               |
/// +----------------------------------------------------------+
/// ```
pub fn string_record(out: &mut impl Put, index: u16, text: &str) {
    let text = truncate_utf8(text, MAX_STRING);
    out.word(
        header(RecordType::String, string_record_words(text))
            | string_fields::INDEX.set(u64::from(index))
            | string_fields::LENGTH.set(text.len() as u64),
    );
    out.stream(text.as_bytes());
}

/// "Thread record": from here on `index`, 1 to 255, means this thread.
///
/// ```text
///   63             24   23 16   15        4   3   0
/// +-------------------+-------+-------------+-------+
/// | 0                 | index | size, words |   3   |
/// +-------------------+-------+-------------+-------+
/// | process's koid                                  |
/// +-------------------------------------------------+
/// | thread's koid                                   |
/// +-------------------------------------------------+
/// ```
pub fn thread_record(out: &mut impl Put, index: u8, process: u64, thread: u64) {
    out.word(header(RecordType::Thread, 3) | thread_fields::INDEX.set(u64::from(index)));
    out.word(process);
    out.word(thread);
}

/// "Event record": something that happened at a time on a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// What happened.
    pub kind: EventKind,
    /// When, in ticks.
    pub timestamp: u64,
    /// Where.
    pub thread: ThreadRef,
    /// A group of events that are switched on together.
    pub category: StringRef<'a>,
    /// What to show.
    pub name: StringRef<'a>,
    /// Names and values; at most [`MAX_ARGS`].
    pub args: ArgumentSlice<'a>,
    /// Counter id, end time or correlation id; written if the kind [has one](EventKind::has_payload), and 0 if it is missing.
    pub payload: Option<u64>,
}

impl Event<'_> {
    /// Header, timestamp, thread and payload.
    fn fixed_words(&self) -> usize {
        2 + self.thread.words() + usize::from(self.kind.has_payload())
    }
}

/// Words that the event's record takes. Above [`MAX_RECORD_WORDS`] there is none that holds all of it.
#[must_use]
pub fn event_words(event: &Event<'_>) -> usize {
    let args: usize =
        event.args.iter().take(MAX_ARGS).map(|(name, value)| argument_words(*name, value)).sum();
    event.fixed_words() + event.category.words() + event.name.words() + args
}

/// The header of an event record: what is the same for every event of a kind at one place in a program.
///
/// `words` is the record's size, `args` the number of arguments, the others are the bits of references.
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
        | event_fields::KIND.set(kind as u64)
        | event_fields::ARGS.set(args)
        | event_fields::THREAD.set(thread)
        | event_fields::CATEGORY.set(category)
        | event_fields::NAME.set(name)
}

/// "Event record". One that takes more than [`MAX_RECORD_WORDS`] loses arguments from its end, then the end of
/// its name.
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
pub fn event(out: &mut impl Put, event: &Event<'_>) {
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
    put_thread(out, event.thread);
    out.stream(category.text().as_bytes());
    out.stream(name.text().as_bytes());
    put_arguments(out, args);
    if event.kind.has_payload() {
        out.word(event.payload.unwrap_or(0));
    }
}

/// The header of a BLOB record without a name: `words` is the record's size, `length` that of its bytes.
#[inline]
#[must_use]
pub const fn blob_header(words: usize, length: usize, kind: u8) -> u64 {
    header(RecordType::Blob, words)
        | blob_fields::LENGTH.set(length as u64)
        | blob_fields::KIND.set(kind as u64)
}

/// "BLOB record": bulk data. What one record has no room for goes into further ones of the same name, which
/// readers append to each other.
///
/// ```text
///   63 56   55 48   47   46         32   31      16   15        4   3   0
/// +-------+-------+----+---------------+------------+-------------+-------+
/// | 0     | kind  | 0  | length, bytes | name (ref) | size, words |   5   |
/// +-------+-------+----+---------------+------------+-------------+-------+
/// | the name, if it is inline                                             |
/// +-----------------------------------------------------------------------+
/// | the bytes                                                             |
/// +-----------------------------------------------------------------------+
/// ```
pub fn blob(out: &mut impl Put, name: StringRef<'_>, kind: u8, bytes: &[u8]) {
    let fixed = 1 + name.words();
    let most = (MAX_RECORD_WORDS - fixed) * 8;
    let mut put = |part: &[u8]| {
        out.word(
            blob_header(fixed + words(part.len()), part.len(), kind) | blob_fields::NAME.set(name.bits()),
        );
        out.stream(name.text().as_bytes());
        out.stream(part);
    };
    if bytes.is_empty() {
        put(&[]);
    }
    bytes.chunks(most).for_each(put);
}

/// What follows of a thread that is inline.
#[inline]
pub(super) fn put_thread(out: &mut impl Put, thread: ThreadRef) {
    if let Some(ids) = thread.inline() {
        ids.into_iter().for_each(|id| out.word(id));
    }
}

/// The arguments, from the first, that fit `room` words, a record's count and the size in their header; and their
/// words.
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

pub(super) fn put_arguments(out: &mut impl Put, args: &[(StringRef<'_>, Value<'_>)]) {
    for (name, value) in args {
        put_argument(out, *name, value);
    }
}
