//! The hot path: an event of a thread that is set up, at a callsite that it has seen, with room in its chunk.
//!
//! Its state is in two places. The first is a thread-local struct without a destructor, so that an access is
//! an offset from the thread pointer. The second is the thread's lease (`hairline_shm::Lease`): a cache line
//! in memory that outlives the thread, since the drain thread reads it. The steps, in order:
//!
//! 1. The chunk writer is **taken**: if it is not busy, it is marked busy. From now on the cold path counts
//!    an event that interrupts this one (a signal handler). An event that came between the check and the mark
//!    has run to its end, and everything else is read after the mark.
//! 2. The callsite's word is compared with the lease's epoch. If they are equal, this thread writes for that
//!    session, and the drain thread has not recalled the chunk.
//! 3. There must be room, and the callsite's strings must have been written on this sequence.
//! 4. The clock is read. The time since the last event must not be negative, and must be below
//!    [`GAP`](taken::GAP). A thread that has no counter finds a time that is too late.
//! 5. The record's final bytes are stored above `commit`.
//! 6. `commit` is stored with Release: the record is in the trace.
//! 7. `room` gets its new value, and the chunk writer is free again.
//!
//! If any check fails, the chunk writer is put back unchanged, and the event is [composed]: what it has
//! beside its callsite is encoded on the stack and copied. Composed records can also have the fallback
//! clock's time, and their callsites' "seen" bits may be outside of the struct. If that fails too, the cold
//! path follows.
//!
//! # Registers
//!
//! The functions of the hot path make only tail calls. They save the registers that hold their arguments
//! while the thread-local is found, which is compiled like a call. So they have one argument: a begin and an
//! instant take the callsite, and load its word again; an end takes a reference. TrackEvent's stores need
//! more registers than FXT's. They are in functions of their own, which are called in tail position with the
//! thread's state, so that FXT saves none for them.
//!
//! # Room
//!
//! `room` is the number of bytes of the chunk that are neither written nor reserved for the end of an open
//! scope. A recorded begin takes its own size and that of its end. The end then uses what was reserved and
//! leaves `room` unchanged. So an end always fits, and loss drops whole scopes.
//!
//! # Order
//!
//! The reserved room of an end holds the id of its begin until then. The end compares that id of the
//! innermost open scope with its own. If they differ, the cold path writes the end, marks it and counts it.

#![allow(unsafe_code)] // stores into the chunk

mod blob;
pub(crate) mod composed;
pub(crate) mod encoded;
mod facts;
pub(super) mod fxt;
pub(crate) mod late;
pub(crate) mod named;
pub(super) mod packet;
mod short;
pub(super) mod short_packet;
mod taken;

use hairline_formats::proto;
use hairline_formats::track_event::TrackUuid;
use hairline_shm::Lease;

pub(crate) use crate::on::base::this_thread::Hot;
use crate::on::base::this_thread::{self, AS_INTERVAL};
use crate::on::callsite::{Callsite, Epoch, fence_constants};
use crate::on::encode::track_event::message;
use crate::on::event::argument::Values;
use crate::on::event::flow::Flow;
use crate::on::event::position::{InFxt, Position, TrackAction};
use crate::on::event::track::Track;
use crate::on::thread::hot::composed::Options;
pub(crate) use crate::on::thread::hot::fxt::END as FXT_END;
pub(crate) use crate::on::thread::hot::packet::END as TRACK_EVENT_END;
use crate::on::thread::hot::packet::END_CONSTANT;
pub(crate) use crate::on::thread::hot::taken::Taken;
use crate::options::Format;

/// Writes the begin of a scope, or an instant, that a flow passes through. Returns its time, `None` if
/// nothing was written.
#[inline(always)]
pub(crate) fn with_flow<const INSTANT: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    flow: &Flow,
) -> Option<u64> {
    let state = flow.state();
    let known = state.known_in(epoch.get()); // before the clock is read
    let taken = hot.take(Lease::epoch, epoch)?;
    if !hot.has_seen::<false>(callsite) {
        return taken.put_back();
    }
    let can_pass = |now: u64| match known {
        Some(known) => known.is_before(now),
        None => state.begin_alone(epoch.get(), now),
    };
    if epoch.format() == Format::TrackEvent {
        packet::with_flow::<INSTANT>(hot, callsite, flow.id(), can_pass, taken)
    } else if INSTANT {
        fxt::instant_with_flow(hot, callsite, flow.id(), known.is_some(), can_pass, taken)
    } else {
        fxt::with_flow(hot, callsite, flow.id(), known.is_some(), can_pass, taken)
    }
}

/// Continues an event at a callsite that the thread has seen, with what the program gave it. `fxt` or
/// `packet` writes the record, in tail position, so that neither saves registers for the other. If the event
/// cannot be written there, `left` follows.
#[inline(always)]
pub(crate) fn continue_seen<V, R>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    given: &V,
    fxt: fn(&'static Hot, &'static Callsite, &V, Epoch, Taken) -> R,
    packet: fn(&'static Hot, &'static Callsite, &V, Epoch, Taken) -> R,
    left: fn(&'static Callsite, &V) -> R,
) -> R {
    let Some((taken, epoch)) = hot.take_for(callsite) else { return left(callsite, given) };
    if !hot.has_seen::<false>(callsite) && !hot.has_seen_far_unwatched(callsite) {
        taken.put_back::<()>();
        return left(callsite, given);
    }
    if epoch.format() == Format::Fxt {
        fxt(hot, callsite, given, epoch, taken)
    } else {
        packet(hot, callsite, given, epoch, taken)
    }
}

/// Writes an event on a track other than the thread's own. Returns its time, `None` if nothing was written.
pub(crate) fn on_track<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    happens: TrackAction,
    position: Position,
    values: &V,
) -> Option<u64> {
    if values.count() == 0 {
        return any_bare_at(callsite, epoch, happens, position);
    }
    let options = Options { position: Some(position), ..Options::default() };
    composed::event(callsite, epoch, values, Some(&options))
}

#[inline(never)]
fn any_bare_at(
    callsite: &'static Callsite,
    epoch: Epoch,
    happens: TrackAction,
    position: Position,
) -> Option<u64> {
    bare_at(this_thread::hot(), callsite, epoch, happens, position)
}

/// As [`on_track`], for an event without arguments.
///
/// Slices there reserve no room for their ends. In a ring that overwrites, these slices must not be written
/// at once: there, no track is ever marked as [described](Hot::set_described).
#[inline(always)]
pub(crate) fn bare_at(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    happens: TrackAction,
    position: Position,
) -> Option<u64> {
    let taken = hot.take(Lease::epoch, epoch)?;
    let Position { uuid, after, in_fxt } = position;
    let is_packet = epoch.format() == Format::TrackEvent;
    let (is_end, is_blob) = (happens == TrackAction::End, !is_packet && in_fxt == InFxt::Blob);
    let described = if !is_packet && in_fxt == InFxt::Interval { uuid.0 | AS_INTERVAL } else { uuid.0 };
    let is_left_to_cold = !is_packet && in_fxt == InFxt::Thread;
    // The packet of an end has no string, and a blob has no string id.
    let has_strings = is_blob || is_packet && is_end || hot.has_seen::<true>(callsite);
    if is_left_to_cold || hot.track_cell(uuid).get() != described || !has_strings {
        return taken.put_back();
    }
    let varint = || proto::varint_of_8(uuid.0);
    match (is_packet, is_end) {
        (true, true) => packet::on_track::<true>(hot, END_CONSTANT, varint(), after, taken),
        (true, false) => packet::on_track::<true>(hot, callsite, varint(), after, taken),
        (false, true) if is_blob => blob::end::<true>(hot, varint(), after, taken),
        (false, false) if is_blob => blob::bare::<true, false>(hot, callsite, varint(), after, taken),
        (false, _) => fxt::in_interval(hot, callsite, happens, position, taken),
    }
}

/// As [`bare_at`], the begin of a slice at a time of the past. Returns false if nothing was written.
pub(crate) fn bare_in_past(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    position: Position,
    past: u64,
) -> bool {
    let Some(taken) = hot.take(Lease::epoch, epoch) else { return false };
    let Position { uuid, in_fxt, .. } = position;
    let is_packet = epoch.format() == Format::TrackEvent;
    let can_write = if is_packet { hot.has_seen::<true>(callsite) } else { in_fxt == InFxt::Blob };
    if !can_write || hot.track_cell(uuid).get() != uuid.0 {
        return taken.put_back();
    }
    let varint = proto::varint_of_8(uuid.0);
    if is_packet {
        packet::in_past(hot, callsite, varint, past, taken)
    } else {
        blob::bare::<true, true>(hot, callsite, varint, past, taken).is_some()
    }
}

/// As [`bare_at`], on a track that the program made.
#[inline(always)]
pub(crate) fn bare_on_track(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    happens: TrackAction,
    track: &Track,
) -> Option<u64> {
    let taken = hot.take(Lease::epoch, epoch)?;
    // In FXT the track of a thread is never marked like that, nor is any track in a session that records
    // facts beside each event.
    let uuid = track.track_uuid();
    if hot.track_cell(uuid).get() != uuid.0 {
        return taken.put_back();
    }
    let (varint, after) = (track.uuid_varint(), track.open_slices().last_time(epoch));
    let is_packet = epoch.format() == Format::TrackEvent;
    if happens == TrackAction::End {
        if is_packet {
            packet::on_track::<false>(hot, END_CONSTANT, varint, after, taken)
        } else {
            blob::end::<false>(hot, varint, after, taken)
        }
    } else if !is_packet {
        blob::bare::<false, false>(hot, callsite, varint, after, taken)
    } else if hot.has_seen::<false>(callsite) {
        packet::on_track::<false>(hot, callsite, varint, after, taken)
    } else {
        taken.put_back()
    }
}

/// Writes the value of a counter on another track than that of its callsite or, in FXT, with a unit. `track`
/// is the track that it is below, if that is not the process. Returns its time, `None` if nothing was
/// written.
///
/// Not inlined: slices and instants on tracks, which come the same way, would save its registers.
#[inline(never)]
pub(crate) fn counter_on_track<V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    track: Option<TrackUuid>,
    values: &V,
) -> Option<u64> {
    fence_constants(); // `epoch` was read from the callsite's word
    let is_packet = epoch.format() == Format::TrackEvent;
    if V::COLD_ONLY || !callsite.has_constants() {
        return None;
    }
    // In FXT a counter of the process without a unit has a record of its own.
    if track.is_none() && (is_packet || callsite.site().counter.is_plain()) {
        return None;
    }
    let uuid = match track {
        None => TrackUuid(callsite.counter_uuid()),
        Some(track) => message::counter_uuid_of(track, callsite.counter_hash()),
    };
    let value = packet::value_of(values)?;
    let taken = hot.take(Lease::epoch, epoch)?;
    if hot.track_cell(uuid).get() != uuid.0 {
        return taken.put_back();
    }
    if is_packet {
        packet::counter_on_track(hot, callsite, uuid, value, taken)
    } else {
        blob::counter(hot, short::fields_of(packet::counter_message(callsite, uuid).0), value, taken)
    }
}

/// As [`counter_on_track`], for a counter of the process with a unit, in FXT.
#[inline(always)]
pub(crate) fn counter_with_unit<V: Values>(callsite: &'static Callsite, values: &V) -> Option<u64> {
    let (hot, epoch) = (this_thread::hot(), callsite.epoch()?);
    let is_plain = || callsite.site().counter.is_plain();
    if V::COLD_ONLY || epoch.format() == Format::TrackEvent || !callsite.has_constants() || is_plain() {
        return None;
    }
    let value = packet::value_of(values)?;
    let taken = hot.take(Lease::epoch, epoch)?;
    let uuid = callsite.counter_uuid();
    if hot.track_cell(TrackUuid(uuid)).get() != uuid {
        return taken.put_back();
    }
    blob::counter(hot, short::fields_of(callsite.message_words()), value, taken)
}
