//! What a file says of the session that wrote it.

use crate::fxt;
use crate::track_event::{SYNCHRONIZATION_MARKER, SessionEnd};

/// The bytes at the begin of a file that [`is_of_session`] needs.
pub const FIRST: usize = 4096;

/// Whether a file that begins with these bytes is the trace of a session of Hairline, as the session, a
/// recovery or `hairline record` wrote it. A converted one is not. `first`: the first [`FIRST`] bytes, or
/// all.
///
/// Such a trace ends with a [`SessionEnd`]. Without one, its process was killed, or still runs.
///
/// ```
/// use hairline_formats::is_of_session;
///
/// assert!(!is_of_session(b"[{\"ph\": \"X\"}]"));
/// ```
#[must_use]
pub fn is_of_session(first: &[u8]) -> bool {
    let has = |text: &[u8]| first.windows(text.len()).any(|part| part == text);
    // A packet's tag, its length, its sequence's number and the tag and length of the marker come first.
    let begins_with_marker = first.get(7..23).is_some_and(|bytes| bytes == SYNCHRONIZATION_MARKER);
    has(b"hairline ") && (begins_with_marker || fxt::begins_with_section(first))
}

/// The last bytes of a file that [`SessionEnd::at_end_of`] needs.
pub const LAST: usize = SessionEnd::LEN + 7;
