//! The stream of a trace. This is the only file of the layer that looks at the format: each function here
//! calls its twin for FXT records or TrackEvent packets.

#[cfg(feature = "recovery")]
use std::ops::Range;
use std::ops::{Deref, DerefMut};

use hairline_formats::track_event::{SequenceId, SessionEnd, TrackUuid};
use hairline_perf::{Change, Named};

use crate::builder::Detail;
use crate::on::base::clock;
use crate::on::base::memory::{Bytes, Own};
use crate::on::base::platform::process;
use crate::on::callsite::Epoch;
use crate::on::encode::fxt::sequence::FxtSequence;
use crate::on::encode::scheduling::Scheduling;
use crate::on::encode::sequence::Sequence;
use crate::on::encode::tail::Tail;
use crate::on::encode::track_event::sequence::TrackEventSequence;
use crate::on::encode::{OWN_SEQUENCE, fxt, track_event};
use crate::on::event::Event;
use crate::options::Format;

/// Returns the head of the stream: the bytes that a reader needs before the first record. `uuid` is the
/// trace's own number.
pub(crate) fn head(format: Format, uuid: u128) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        Format::Fxt => fxt::stream::put_head(&mut out, uuid),
        Format::TrackEvent => track_event::stream::put_head(&mut out, uuid),
    }
    out
}

/// Whether `head` can be the head of the trace with this number. The head of an FXT stream has it too, in a
/// blob.
#[cfg(feature = "recovery")]
pub(crate) fn is_head(head: &[u8], uuid: u128) -> bool {
    let number = encoded(uuid);
    head.windows(number.len()).any(|window| window == number)
}

/// Makes the head of a session's first file that of a further file of a rotated output, which is a trace of
/// its own: with the number of the file in the lowest 32 bits of the UUID. No byte moves, because the UUID of
/// a session has [`VARIANT`].
pub(crate) fn set_part(head: &mut [u8], uuid: u128, part: u64) {
    let own = encoded(uuid);
    let new = encoded(uuid ^ u128::from(part & u64::from(u32::MAX)));
    if let Some(at) =
        head.windows(own.len()).position(|window| window == own).filter(|_| own.len() == new.len())
    {
        head[at..at + new.len()].copy_from_slice(&new);
    }
}

/// The highest bit of the lower half of a UUID: set in all of RFC 9562. So the half has ten bytes as a
/// varint.
pub(crate) const VARIANT: u128 = 1 << 63;

/// The bytes of a head that are different in each file of a rotated output.
#[cfg(feature = "recovery")]
pub(crate) fn part_bytes(head: &[u8], uuid: u128) -> Range<usize> {
    let (own, other) = (encoded(uuid), encoded(uuid ^ u128::from(u32::MAX)));
    let differ = |at: &usize| own.get(*at) != other.get(*at);
    let at = head.windows(own.len()).position(|window| window == own).filter(|_| own.len() == other.len());
    let first_and_last = (0..own.len()).find(differ).zip((0..own.len()).rfind(differ));
    at.zip(first_and_last).map_or(0..0, |(at, (first, last))| at + first..at + last + 1)
}

fn encoded(uuid: u128) -> Vec<u8> {
    let mut number = Vec::new();
    track_event::stream::put_uuid(&mut number, uuid);
    number
}

/// The sequence of one thread, in its format.
pub(crate) enum AnySequence {
    Fxt(Own<FxtSequence>),
    TrackEvent(Own<TrackEventSequence>),
}

impl AnySequence {
    /// Creates the sequence. `number` is its id in the stream. It is in memory of its own, and not on the
    /// stack of a thread's first event.
    #[inline(never)]
    pub(crate) fn new(epoch: Epoch, number: SequenceId, thread: process::Thread, detail: Detail) -> Self {
        match epoch.format() {
            Format::Fxt => Self::Fxt(Own::new(FxtSequence::new(epoch, number, thread, detail))),
            Format::TrackEvent => {
                Self::TrackEvent(Own::new(TrackEventSequence::new(epoch, number, thread, detail)))
            }
        }
    }
}

impl Deref for AnySequence {
    type Target = dyn Sequence;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Fxt(sequence) => &**sequence,
            Self::TrackEvent(sequence) => &**sequence,
        }
    }
}

impl DerefMut for AnySequence {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Fxt(sequence) => &mut **sequence,
            Self::TrackEvent(sequence) => &mut **sequence,
        }
    }
}

/// Returns the bytes that a stream repeats from time to time, so that a reader can begin in a long trace. FXT
/// has none.
pub(crate) fn heartbeat(format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        Format::Fxt => {}
        Format::TrackEvent => track_event::stream::put_heartbeat(&mut out),
    }
    out
}

/// Writes the end of a slice on a track for a thread that has no room for the end. `scratch` is a buffer to
/// work in. Returns the number of arguments that are left out.
pub(crate) fn put_late_end(
    format: Format,
    out: &mut Bytes,
    scratch: &mut Bytes,
    event: &Event<'_>,
    now: u64,
) -> u64 {
    match format {
        Format::Fxt => fxt::stream::put_late_end(out, scratch, event, now),
        Format::TrackEvent => {
            track_event::stream::put_late_end(out, event, now);
            0
        }
    }
}

/// Writes the names and the states of threads.
fn put_scheduling(format: Format, out: &mut Vec<u8>, of: &Scheduling<'_>) {
    match format {
        Format::Fxt => fxt::scheduling::put(out, of),
        Format::TrackEvent => track_event::scheduling::put(out, of),
    }
}

/// The most changes in one write, so that a rotated file is not much longer than its size.
const PIECE: usize = 1024;

/// Writes the names of threads that have these changes. Returns the number of bytes.
pub(crate) fn put_state_names<E>(
    format: Format,
    names: &[Named],
    changes: &[Change],
    write: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    // Importers sort the names by time too, and take one after a thread's death for another thread's.
    let time = changes.iter().map(|change| change.time).min().unwrap_or_else(clock::boottime);
    let encoded = |names| Scheduling { names, changes: &[], time };
    put_pieces(format, names.chunks(PIECE).map(encoded), write)
}

/// Writes the changes of threads. Returns the number of bytes.
pub(crate) fn put_states<E>(
    format: Format,
    changes: &[Change],
    write: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let encoded = |changes| Scheduling { names: &[], changes, time: 0 };
    put_pieces(format, changes.chunks(PIECE).map(encoded), write)
}

fn put_pieces<'a, E>(
    format: Format,
    pieces: impl Iterator<Item = Scheduling<'a>>,
    write: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let (mut out, mut bytes) = (Vec::new(), 0);
    for piece in pieces {
        out.clear();
        put_scheduling(format, &mut out, &piece);
        write(&out)?;
        bytes += out.len() as u64;
    }
    Ok(bytes)
}

/// Writes the last names of threads, each with its track.
pub(crate) fn put_names(format: Format, out: &mut Bytes, threads: &[(process::Thread, TrackUuid)]) {
    for (thread, track) in threads {
        match format {
            Format::Fxt => fxt::sequence::put_thread(out, thread),
            Format::TrackEvent => {
                track_event::tracks::put_thread(out, OWN_SEQUENCE, *track, thread);
            }
        }
    }
}

/// Returns the tail of the stream.
pub(crate) fn tail(format: Format, tail: &Tail) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        Format::Fxt => fxt::stream::put_tail(&mut out, tail),
        Format::TrackEvent => track_event::stream::put_tail(&mut out, tail),
    }
    out
}

/// Returns the last record of a session's trace: the session has ended, and nothing was cut off. `pid` is 0
/// if another process has completed the trace.
pub(crate) fn session_end(format: Format, pid: u32, now: u64) -> Vec<u8> {
    let (mut out, end) = (Vec::new(), SessionEnd { pid: pid.cast_signed(), timestamp_ns: now });
    match format {
        Format::Fxt => hairline_formats::fxt::session_end(&mut out, end),
        Format::TrackEvent => track_event::stream::put_session_end(&mut out, end),
    }
    out
}
