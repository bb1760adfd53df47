//! Writes the records that give strings and threads an index.

use crate::fxt::header::header;
use crate::fxt::layout::{MAX_STRING, RecordType, string, thread, words};
use crate::fxt::put::PutWords;
use crate::truncate_utf8;

/// Returns the number of words that [`string_record`] writes for `text`.
#[must_use]
pub fn string_record_words(text: &str) -> usize {
    1 + words(truncate_utf8(text, MAX_STRING).len())
}

/// Writes a "String record": from here on, `index` refers to `text`.
///
/// Indices are 1 to [`MAX_STRING_INDEX`](crate::fxt::MAX_STRING_INDEX). The text is cut to [`MAX_STRING`]
/// bytes.
///
/// ```text
///   63 47   46         32   31   30 16   15        4   3   0
/// +-------+---------------+----+-------+-------------+-------+
/// | 0     | length, bytes | 0  | index | size, words |   2   |
/// +-------+---------------+----+-------+-------------+-------+
/// | the string                                               |
/// +----------------------------------------------------------+
/// ```
///
/// ```
/// use hairline_formats::fxt;
///
/// let mut trace = Vec::new();
/// fxt::string_record(&mut trace, 1, "a long name");
/// assert_eq!(trace.len(), fxt::string_record_words("a long name") * 8);
/// assert_eq!(&trace[8..], b"a long name\0\0\0\0\0");
/// ```
pub fn string_record(out: &mut impl PutWords, index: u16, text: &str) {
    let text = truncate_utf8(text, MAX_STRING);
    out.word(
        header(RecordType::String, string_record_words(text))
            | string::INDEX.set(u64::from(index))
            | string::LENGTH.set(text.len() as u64),
    );
    out.stream(text.as_bytes());
}

/// Writes a "Thread record": from here on, `index`, 1 to 255, refers to this thread.
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
///
/// ```
/// use hairline_formats::fxt::{self, ThreadRef};
///
/// let mut trace = Vec::new();
/// fxt::thread_record(&mut trace, 1, 70, 71); // process 70, thread 71
/// assert_eq!(trace[8..16], 70_u64.to_le_bytes());
/// let event_of_this_thread = ThreadRef::Index(1);
/// assert_eq!(event_of_this_thread.words(), 0); // an inline reference takes two words in each event
/// ```
pub fn thread_record(out: &mut impl PutWords, index: u8, process: u64, thread: u64) {
    out.word(header(RecordType::Thread, 3) | thread::INDEX.set(u64::from(index)));
    out.word(process);
    out.word(thread);
}
