//! Records of log messages.

use super::cursor::Cursor;
use super::layout::{MAX_STRING, RecordType, log as fields, words};
use super::record::Record;
use super::refs::ThreadRef;
use super::write::{Put, header, put_thread};
use crate::{DecodeError, truncate_utf8};

/// "Log record": a message that a thread wrote to the log, in at most [`MAX_STRING`] bytes.
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
pub fn log(out: &mut impl Put, timestamp: u64, thread: ThreadRef, message: &str) {
    let message = truncate_utf8(message, MAX_STRING);
    out.word(
        header(RecordType::Log, 2 + thread.words() + words(message.len()))
            | fields::LENGTH.set(message.len() as u64)
            | fields::THREAD.set(thread.bits()),
    );
    out.word(timestamp);
    put_thread(out, thread);
    out.stream(message.as_bytes());
}

pub(super) fn parse<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Record<'a>, DecodeError> {
    Ok(Record::Log {
        timestamp: cursor.word("a timestamp")?,
        thread: cursor.thread(fields::THREAD.get(header))?,
        message: cursor.stream(fields::LENGTH.get(header), "a log message")?,
    })
}
