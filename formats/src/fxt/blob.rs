//! Writes BLOB records: bulk data in pieces.

use crate::fxt::header::header;
use crate::fxt::layout::{BLOB_PERFETTO, MAX_RECORD_WORDS, RecordType, blob as fields, words};
use crate::fxt::put::PutWords;
use crate::fxt::refs::StringRef;
use crate::track_event::{self, SessionEnd};

/// Returns the header of a BLOB record without a name. `words` is the record's size, `length` its number of
/// bytes.
#[inline]
#[must_use]
pub const fn blob_header(words: usize, length: usize, kind: u8) -> u64 {
    header(RecordType::Blob, words) | fields::LENGTH.set(length as u64) | fields::KIND.set(kind as u64)
}

/// Writes "BLOB records": bulk data, in as many records of the same name as the bytes need.
///
/// Readers append the bytes of consecutive records of one name to each other.
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
///
/// ```
/// use hairline_formats::fxt::{self, StringRef};
///
/// let mut out = Vec::new();
/// fxt::blob(&mut out, StringRef::Empty, fxt::BLOB_DATA, b"ten bytes.");
/// assert_eq!(out[..8], fxt::blob_header(3, 10, fxt::BLOB_DATA).to_le_bytes());
/// assert_eq!(&out[8..], b"ten bytes.\0\0\0\0\0\0");
/// ```
pub fn blob(out: &mut impl PutWords, name: StringRef<'_>, kind: u8, bytes: &[u8]) {
    let fixed = 1 + name.words();
    let mut put = |part: &[u8]| {
        out.word(blob_header(fixed + words(part.len()), part.len(), kind) | fields::NAME.set(name.bits()));
        out.stream(name.text().as_bytes());
        out.stream(part);
    };
    if bytes.is_empty() {
        put(&[]);
    }
    bytes.chunks((MAX_RECORD_WORDS - fixed) * 8).for_each(put);
}

/// Writes the record that ends a session's trace: the packet [`session_end`], in a blob of Perfetto.
///
/// ```
/// use hairline_formats::{fxt, track_event::SessionEnd};
///
/// let (mut out, end) = (Vec::new(), SessionEnd { pid: 4711, timestamp_ns: 1_000 });
/// fxt::session_end(&mut out, end);
/// assert_eq!(SessionEnd::at_end_of(&out), Some(end));
/// ```
pub fn session_end(out: &mut Vec<u8>, end: SessionEnd) {
    let mut packet = Vec::with_capacity(SessionEnd::LEN);
    track_event::session_end(&mut packet, 1, end);
    blob(out, StringRef::Inline("session end"), BLOB_PERFETTO, &packet);
}
