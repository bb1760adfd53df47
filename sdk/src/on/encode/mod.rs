//! Events as bytes, in both formats.

pub(crate) mod again;
pub(crate) mod constants;
pub(crate) mod fit;
pub(crate) mod fxt;
pub(crate) mod late;
pub(crate) mod no_room;
pub(crate) mod sequence;
pub(crate) mod stream;
pub(crate) mod strings;
pub(crate) mod tail;
pub(crate) mod track_event;

use hairline_formats::truncate_utf8;

/// Each chunk's context defines this index as its thread.
pub(crate) const FXT_THREAD: u8 = 1;

/// Bytes of the longest name, category or key that is written; longer ones are cut at a character.
pub(crate) const MAX_NAME: usize = 1000;

/// FXT counters are told apart by name; their id is the same for all.
pub(crate) const COUNTER_ID: u64 = 0;

/// A name as long as names may be.
pub(crate) fn cut(name: &str) -> &str {
    truncate_utf8(name, MAX_NAME)
}
