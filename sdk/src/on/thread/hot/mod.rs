//! The hot path: an event of a thread that is set up, at a callsite it has seen, with room in its chunk.
//!
//! Everything it needs is in one thread-local struct without a destructor, so the access is an
//! offset from the thread pointer; and in the thread's lease, a cache line in memory that outlives the thread
//! (`hairline_shm::Lease`), since the drain thread reads it. In order:
//!
//! 1. the writer is **taken**: found free, and marked busy, so that an event which interrupts this one from now on
//!    (a signal handler) is counted by the cold path. One that came between the two has run to its end; all else is
//!    read after the mark;
//! 2. the callsite's word equals the thread's epoch: the session is the one this thread writes for, and its chunk was not
//!    taken back while it was idle (`hairline_shm::Lease`);
//! 3. there is room, and the callsite's strings are known on this sequence;
//! 4. the clock is read; the time since the last event is sane (not negative, and below [`GAP`](taken::GAP));
//! 5. the record's final bytes are stored above `commit`;
//! 6. `commit` is stored with Release: the record is in the trace;
//! 7. `room` gets its new value, and the writer is free again.
//!
//! Where any check fails the writer is put back as it was and another path does the whole event anew: the
//! **warm** one, this same code with `WARM` set, which also knows the fallback clock and the callsites whose "seen"
//! bit is not in the struct; and where that fails too, the cold one. The functions that hold the hot path call
//! nothing but in tail position. They save the registers that their arguments move to while the thread-local is
//! found, which is compiled as if it were a call, and those that TrackEvent's stores need: five at a begin.
//!
//! # Room
//!
//! `room` is how many bytes of the chunk are neither written nor kept for the end of an open scope. A
//! recorded begin takes its own size and that of its end; the end then uses what was kept and leaves
//! `room` as it is. So an end always fits, and loss leaves out whole scopes.

#![allow(unsafe_code)] // stores into the chunk

mod blob;
mod fxt;
mod packet;
mod taken;

use hairline_shm::Lease;

use crate::on::base::this_thread::AS_INTERVAL;
pub(crate) use crate::on::base::this_thread::Hot;
use crate::on::callsite::{Callsite, Kind, TRACK_EVENT};
use crate::on::event::argument::Values;
use crate::on::event::position::{Happens, InFxt, Position};
pub(crate) use crate::on::thread::hot::fxt::END as FXT_END;
pub(crate) use crate::on::thread::hot::packet::END as TRACK_EVENT_END;

/// A record without arguments: begin or instant. False: nothing was written, take the cold path.
#[inline(always)]
pub(crate) fn plain<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: u32,
    kind: Kind,
) -> bool {
    let Some(taken) = hot.take(Lease::epoch, epoch) else { return false };
    if epoch & TRACK_EVENT == 0 {
        fxt::plain::<WARM>(hot, callsite, kind, taken)
    } else {
        packet::plain::<WARM>(hot, callsite, kind, taken)
    }
}

/// The begin of a scope that a flow goes through, `begun` already or here. False: nothing was written, take the cold path.
#[inline(always)]
pub(crate) fn with_flow<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: u32,
    flow: u64,
    begun: bool,
) -> bool {
    let Some(taken) = hot.take(Lease::epoch, epoch) else { return false };
    if epoch & TRACK_EVENT == 0 {
        fxt::with_flow::<WARM>(hot, callsite, flow, begun, taken)
    } else {
        packet::with_flow::<WARM>(hot, callsite, flow, taken)
    }
}

/// The end of a recorded scope. False: nothing was written, take the cold path.
#[inline(always)]
pub(crate) fn end<const WARM: bool>(hot: &Hot, callsite: &'static Callsite, epoch: u32) -> bool {
    let Some(taken) = hot.take(Lease::end_epoch, epoch) else { return false };
    // The room is there: the begin kept it, in this chunk.
    if epoch & TRACK_EVENT == 0 {
        fxt::end::<WARM>(hot, callsite, taken)
    } else {
        packet::end::<WARM>(hot, taken)
    }
}

/// A record with arguments. False: nothing was written, take the cold path.
#[inline(always)]
pub(crate) fn with_values<const WARM: bool, V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: u32,
    kind: Kind,
    values: &V,
) -> bool {
    if V::NESTED {
        return false;
    }
    let Some(taken) = hot.take(Lease::epoch, epoch) else { return false };
    // The macros make as many keys as values. Said here, it spares a bounds check for each.
    if callsite.keys().len() != values.count() || !hot.has_seen::<WARM>(callsite) {
        return taken.put_back();
    }
    if epoch & TRACK_EVENT == 0 {
        fxt::with_values::<WARM>(hot, callsite, kind, values, taken)
    } else if kind == Kind::Counter {
        packet::counter::<WARM>(hot, callsite, values, taken)
    } else {
        packet::with_values::<WARM>(hot, callsite, kind, None, values, taken)
    }
}

/// An event on another track than the thread's own, with arguments. When; None: nothing was written, take the cold path.
///
/// Its slices keep no room for their ends. Where they may not be written at once, in a ring that overwrites, no track is
/// ever said to be [described](Hot::set_described).
#[inline(always)]
pub(crate) fn on_track<V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: u32,
    happens: Happens,
    position: Position,
    values: &V,
) -> Option<u64> {
    if V::NESTED {
        return None;
    }
    let taken = hot.take(Lease::epoch, epoch)?;
    let lease = taken.lease;
    let is_packet = epoch & TRACK_EVENT != 0;
    let is_blob = !is_packet && position.in_fxt == InFxt::Blob;
    let is_end = happens == Happens::End;
    // A slice's end has the begin's callsite, and no argument; its packet has no string either. A blob has none by number.
    let has_strings = is_blob || is_end && is_packet || hot.has_seen::<true>(callsite);
    let has_keys = is_end || callsite.keys().len() == values.count() && !(is_blob && values.count() != 0);
    let as_interval = !is_packet && position.in_fxt == InFxt::Interval;
    let described = if as_interval { position.uuid | AS_INTERVAL } else { position.uuid };
    let is_described = hot.track_cell(position.uuid).get() == described;
    let is_left = !is_packet && position.in_fxt == InFxt::Thread;
    let is_written = if is_left || !is_described || !has_strings || !has_keys {
        taken.put_back()
    } else if is_blob {
        blob::event(hot, callsite, happens, position, taken)
    } else if !is_packet {
        fxt::in_interval(hot, callsite, happens, position, values, taken)
    } else if is_end {
        packet::end_on_track(hot, position, taken)
    } else {
        packet::with_values::<true>(hot, callsite, Kind::Instant, Some(position), values, taken)
    };
    is_written.then(|| lease.last())
}
