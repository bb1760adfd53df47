//! Events as bytes: FXT records or TrackEvent packets.
//!
//! ```text
//! stream         head, sequences, late ends, tail: the only file that looks at the format of a trace
//! scheduling     the states of threads, as the kernel reports them
//! kept_states    those that a flight recorder keeps
//! sequence       what the records of one thread need in either format, as a trait
//! fxt/           that trait for FXT records, and the stream's own records
//! track_event/   that trait for TrackEvent packets, and the stream's own packets
//! ```

pub(crate) mod begin;
pub(crate) mod constants;
pub(crate) mod fit;
pub(crate) mod fxt;
pub(crate) mod kept_states;
pub(crate) mod no_room;
pub(crate) mod scheduling;
pub(crate) mod sequence;
pub(crate) mod stream;
pub(crate) mod tail;
pub(crate) mod track_event;

use hairline_formats::track_event::SequenceId;
use hairline_formats::truncate_utf8;

/// The index of the writing thread in FXT records: the context of each chunk defines it.
pub(crate) const FXT_THREAD: u8 = 1;

/// Bytes of the longest name, category or key in a trace. Longer ones are cut at a character.
pub(crate) const MAX_NAME: usize = 1000;

/// The id of all FXT counters. Readers distinguish them by name.
pub(crate) const COUNTER_ID: u64 = 0;

/// The packet sequence of the drain thread.
pub(crate) const OWN_SEQUENCE: SequenceId = SequenceId(1);

/// The numbers of a region's tapes.
#[cfg_attr(not(feature = "sampling"), allow(dead_code))]
pub(crate) const SAMPLES_TAPE: usize = 0;
pub(crate) const STATES_TAPE: usize = 1;
#[cfg_attr(not(feature = "sampling"), allow(dead_code))]
pub(crate) const HEAP_TAPE: usize = 2;

/// Cuts a name to [`MAX_NAME`] bytes.
pub(crate) fn cut(name: &str) -> &str {
    truncate_utf8(name, MAX_NAME)
}
