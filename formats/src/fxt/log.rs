//! Writes log records.

use crate::fxt::header::header;
use crate::fxt::layout::{MAX_STRING, RecordType, log as fields, words};
use crate::fxt::put::PutWords;
use crate::fxt::refs::ThreadRef;
use crate::truncate_utf8;

/// Writes a "Log record": a log message of a thread, cut to [`MAX_STRING`] bytes.
///
/// ```text
///  63        40 39       32  31  30     16 15          4 3      0
/// +------------+-----------+---+----------+-------------+--------+
/// | 0          | thread    | 0 | length,  | size, words |   9    |
/// |            | (ref)     |   | bytes    |             |        |
/// +------------+-----------+---+----------+-------------+--------+
/// | timestamp                                                    |
/// +--------------------------------------------------------------+
/// | process's and thread's koids, if they are inline             |
/// +--------------------------------------------------------------+
/// | the message                                                  |
/// +--------------------------------------------------------------+
/// ```
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{self, Record, RecordReader, ThreadRef};
///
/// let mut trace = Vec::new();
/// fxt::log(&mut trace, 1_000, ThreadRef::Inline { process: 1, thread: 2 }, "cache is full");
/// let mut reader = RecordReader::new(&trace[..]);
/// let Some((_, Record::Log { timestamp, message, .. })) = reader.next()? else { panic!() };
/// assert_eq!((timestamp, message), (1_000, &b"cache is full"[..]));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn log(out: &mut impl PutWords, timestamp: u64, thread: ThreadRef, message: &str) {
    let message = truncate_utf8(message, MAX_STRING);
    out.word(
        header(RecordType::Log, 2 + thread.words() + words(message.len()))
            | fields::LENGTH.set(message.len() as u64)
            | fields::THREAD.set(thread.bits()),
    );
    out.word(timestamp);
    thread.put(out);
    out.stream(message.as_bytes());
}
