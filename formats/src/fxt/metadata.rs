//! Writes the records about the trace and its providers.

use crate::fxt::header::{header, records};
use crate::fxt::layout::{MAGIC, MAX_PROVIDER_NAME, MetadataKind, RecordType, metadata, record, words};
use crate::fxt::put::PutWords;
use crate::truncate_utf8;

/// Writes the "Magic number record", which must be the first record of a trace.
///
/// ```text
///   63 56   55      24   23  20   19  16   15        4   3   0
/// +-------+------------+--------+--------+-------------+-------+
/// | 0     | 0x16547846 | info 0 | kind 4 | size 1      |   0   |
/// +-------+------------+--------+--------+-------------+-------+
/// ```
///
/// ```
/// use hairline_formats::fxt;
///
/// let mut trace = Vec::new();
/// fxt::magic(&mut trace);
/// assert_eq!(trace, [0x10, 0, 4, 0x46, 0x78, 0x54, 0x16, 0]);
/// ```
pub fn magic(out: &mut impl PutWords) {
    out.word(MAGIC);
}

/// Writes an "Initialization record": the rate of the clock of all timestamps that follow.
///
/// ```text
///   63                16   15        4   3   0
/// +----------------------+-------------+-------+
/// | 0                    | size, words |   1   |
/// +----------------------+-------------+-------+
/// | ticks per second                           |
/// +--------------------------------------------+
/// ```
///
/// ```
/// use hairline_formats::fxt;
///
/// let mut trace = Vec::new();
/// fxt::magic(&mut trace);
/// fxt::initialization(&mut trace, 1_000_000_000); // timestamps are nanoseconds
/// assert_eq!(trace[16..], 1_000_000_000_u64.to_le_bytes());
/// ```
pub fn initialization(out: &mut impl PutWords, ticks_per_second: u64) {
    out.word(header(RecordType::Initialization, 2));
    out.word(ticks_per_second);
}

const fn about_provider(kind: MetadataKind, words: usize, id: u32) -> u64 {
    header(RecordType::Metadata, words) | metadata::KIND.set(kind as u64) | metadata::PROVIDER.set(id as u64)
}

/// Writes a "Provider info metadata" record: names a provider and begins its section.
///
/// The name is cut to [`MAX_PROVIDER_NAME`] bytes. The records that follow belong to this provider.
///
/// ```text
///   63 60   59       52   51         20   19  16   15        4   3   0
/// +-------+-------------+---------------+--------+-------------+-------+
/// | 0     | name, bytes | provider id   | kind 1 | size, words |   0   |
/// +-------+-------------+---------------+--------+-------------+-------+
/// | the name                                                           |
/// +--------------------------------------------------------------------+
/// ```
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{self, Record, RecordReader};
///
/// let mut trace = Vec::new();
/// fxt::provider_info(&mut trace, 1, "server");
/// fxt::provider_event(&mut trace, 1, fxt::PROVIDER_EVENT_BUFFER_FULL); // the buffer was full
/// fxt::provider_section(&mut trace, 2); // the next records belong to another provider
///
/// let (mut reader, mut names) = (RecordReader::new(&trace[..]), Vec::new());
/// while let Some((_, record)) = reader.next()? {
///     names.push(match record {
///         Record::ProviderInfo { id, name } => format!("{id} {name}"),
///         Record::ProviderEvent { id, event } => format!("{id} event {event}"),
///         Record::ProviderSection { id } => format!("{id}"),
///         other => panic!("{other:?}"),
///     });
/// }
/// assert_eq!(names, ["1 server", "1 event 0", "2"]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn provider_info(out: &mut impl PutWords, id: u32, name: &str) {
    let name = truncate_utf8(name, MAX_PROVIDER_NAME);
    let about = about_provider(MetadataKind::ProviderInfo, 1 + words(name.len()), id);
    out.word(about | metadata::NAME_LENGTH.set(name.len() as u64));
    out.stream(name.as_bytes());
}

/// Writes a "Provider section metadata" record: the records that follow belong to this provider.
///
/// ```text
///   63 52   51         20   19  16   15        4   3   0
/// +-------+---------------+--------+-------------+-------+
/// | 0     | provider id   | kind 2 | size, words |   0   |
/// +-------+---------------+--------+-------------+-------+
/// ```
pub fn provider_section(out: &mut impl PutWords, id: u32) {
    out.word(about_provider(MetadataKind::ProviderSection, 1, id));
}

/// Writes a "Provider event metadata" record. The document defines one event,
/// [`PROVIDER_EVENT_BUFFER_FULL`](crate::fxt::PROVIDER_EVENT_BUFFER_FULL); the field has room for numbers up
/// to 15.
///
/// ```text
///   63 56   55 52   51         20   19  16   15        4   3   0
/// +-------+-------+---------------+--------+-------------+-------+
/// | 0     | event | provider id   | kind 3 | size, words |   0   |
/// +-------+-------+---------------+--------+-------------+-------+
/// ```
pub fn provider_event(out: &mut impl PutWords, id: u32, event: u8) {
    out.word(about_provider(MetadataKind::ProviderEvent, 1, id) | metadata::EVENT.set(u64::from(event)));
}

/// Whether a trace begins with the magic number, a provider and the section of a provider, as one of a
/// session does.
pub(crate) fn begins_with_section(bytes: &[u8]) -> bool {
    let is_section = |header| {
        record::TYPE.get(header) == RecordType::Metadata as u64
            && metadata::KIND.get(header) == MetadataKind::ProviderSection as u64
    };
    bytes.starts_with(&MAGIC.to_le_bytes())
        && records(bytes).nth(2).is_some_and(|record| is_section(record.header))
}
