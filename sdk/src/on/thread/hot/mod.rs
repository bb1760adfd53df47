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
//! If any check fails, the chunk writer is put back unchanged, and another path does the whole event. First
//! comes the **warm** path: this same code with `WARM` set, which can also read the fallback clock, and the
//! "seen" bits that are outside of the struct. If the warm path fails too, the cold path follows.
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

mod beside;
mod blob;
pub(crate) mod composed;
pub(crate) mod encoded;
pub(crate) mod facts;
pub(super) mod fxt;
pub(crate) mod late;
pub(crate) mod named;
pub(super) mod packet;
pub(super) mod short_packet;
mod taken;

use hairline_formats::proto;
use hairline_formats::track_event::TrackUuid;
use hairline_shm::Lease;

use crate::on::base::this_thread::AS_INTERVAL;
pub(crate) use crate::on::base::this_thread::Hot;
use crate::on::callsite::{Callsite, Epoch, fence_constants};
use crate::on::encode::track_event::message;
use crate::on::encode::track_event::message::FIELDS_AT;
use crate::on::event::argument::Values;
use crate::on::event::flow::Flow;
use crate::on::event::position::{InFxt, Position, TrackAction};
use crate::on::event::track::Track;
use crate::on::thread::hot::facts::EventFacts;
pub(crate) use crate::on::thread::hot::fxt::END as FXT_END;
pub(crate) use crate::on::thread::hot::packet::END as TRACK_EVENT_END;
pub(crate) use crate::on::thread::hot::taken::Taken;
use crate::on::thread::open_scope::{End, OpenScope};
use crate::options::Format;
use crate::site::CallsiteKind;

/// Writes a record without arguments: a begin or an instant. Returns the time of the record, `None` if
/// nothing was written.
#[inline(always)]
pub(crate) fn plain<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
) -> Option<OpenScope> {
    let (taken, epoch) = hot.take_for(callsite)?;
    let now = if epoch.format() == Format::Fxt {
        fxt::plain::<WARM>(hot, callsite, kind, taken)
    } else {
        packet::plain::<WARM>(hot, callsite, kind, taken.room(), taken)
    };
    now.map(|now| OpenScope::new(epoch, now))
}

/// A function that continues an event, in tail position: with the room of the lease, and with the epoch. All
/// have the same arguments, which stay in their registers; an instant needs no epoch, which is the last one.
pub(crate) type Continue<R> = fn(&'static Hot, &'static Callsite, i32, Taken, Epoch) -> R;

/// The functions that continue an event of [`plain_or`]: their stores need registers that would otherwise be
/// saved for all.
#[derive(Clone, Copy)]
pub(crate) struct Next<R> {
    /// Writes the record in a session that writes TrackEvent.
    pub(crate) packet: Continue<R>,
    /// [`plain_unseen`].
    pub(crate) unseen: Continue<R>,
    /// Writes the record with the callsite's place in the source, in a session that writes TrackEvent.
    pub(crate) located_packet: Continue<R>,
    /// [`plain_far`].
    pub(crate) far: Continue<R>,
    /// Follows if nothing was written.
    pub(crate) slow: fn(&'static Callsite) -> R,
}

/// As [`plain`].
#[inline(always)]
pub(crate) fn plain_or<R>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    next: Next<R>,
    written: impl FnOnce(Epoch, u64) -> R,
) -> R {
    let Some((taken, epoch)) = hot.take_for(callsite) else { return (next.slow)(callsite) };
    if !hot.has_seen::<false>(callsite) {
        return (next.unseen)(hot, callsite, taken.room(), taken, epoch);
    }
    if epoch.format() == Format::TrackEvent {
        return (next.packet)(hot, callsite, taken.room(), taken, epoch);
    }
    match fxt::plain::<false>(hot, callsite, kind, taken) {
        Some(now) => written(epoch, now),
        None => (next.slow)(callsite),
    }
}

/// As [`plain_or`], for a callsite whose near "seen" bit is clear: in a session that records places the
/// record has that of the callsite. Another session, or a callsite that is none of the first, goes on in
/// `far`.
#[inline(always)]
pub(crate) fn plain_unseen<R>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    (room, taken, epoch): (i32, Taken, Epoch),
    next: Next<R>,
    written: impl FnOnce(Epoch, u64) -> R,
) -> R {
    if !hot.has_seen_located(callsite) {
        return (next.far)(hot, callsite, room, taken, epoch);
    }
    if epoch.format() == Format::TrackEvent {
        return (next.located_packet)(hot, callsite, room, taken, epoch);
    }
    match fxt::located(hot, callsite, kind, room, taken) {
        Some(now) => written(epoch, now),
        None => (next.slow)(callsite),
    }
}

/// As [`plain_or`], for a callsite beyond the first 1,024.
#[inline(always)]
pub(crate) fn plain_far<R>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    (room, taken, epoch): (i32, Taken, Epoch),
    next: Next<R>,
    written: impl FnOnce(Epoch, u64) -> R,
) -> R {
    // The path behind this one times a slice.
    if !hot.has_seen_far(callsite.id()) || callsite.slow_after() != 0 {
        let () = taken.put_back();
        return (next.slow)(callsite);
    }
    if epoch.format() == Format::TrackEvent {
        return (next.packet)(hot, callsite, room, taken, epoch);
    }
    match fxt::plain::<false>(hot, callsite, kind, taken) {
        Some(now) => written(epoch, now),
        None => (next.slow)(callsite),
    }
}

/// Writes the begin of a scope that a flow passes through. Returns its time, `None` if nothing was written.
#[inline(always)]
pub(crate) fn with_flow<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    flow: &Flow,
) -> Option<u64> {
    let state = flow.state();
    // Before the clock is read.
    let known = if WARM { None } else { state.known_in(epoch.get()) };
    let time = if WARM { state.time_in(epoch.get()) } else { None };
    let taken = hot.take(Lease::epoch, epoch)?;
    let can_pass = |now: u64| match (known, time) {
        (Some(known), _) => known.is_before(now),
        (_, Some(time)) if now <= time => false,
        (_, Some(_)) => {
            state.set_known(epoch.get(), now);
            true
        }
        _ if WARM => state.begin(epoch.get(), now),
        _ => state.begin_alone(epoch.get(), now),
    };
    if epoch.format() == Format::Fxt {
        let has_begun = known.is_some() || time.is_some();
        fxt::with_flow::<WARM>(hot, callsite, flow.id(), has_begun, can_pass, taken)
    } else {
        packet::with_flow::<WARM>(hot, callsite, flow.id(), can_pass, taken)
    }
}

/// Writes the end of a recorded scope, if that is the innermost. Returns false if nothing was written.
#[inline(always)]
pub(crate) fn end(hot: &'static Hot, end: &End) -> bool {
    let epoch = end.open.epoch();
    let Some(taken) = hot.take(Lease::end_epoch, epoch) else { return false };
    // The room is there: the begin reserved it in this chunk.
    if epoch.format() == Format::Fxt {
        fxt::end::<true>(hot, end, taken)
    } else {
        packet::end::<true>(hot, end.open.id, taken)
    }
}

/// As [`end`]. In a session that writes TrackEvent, `packet` writes the end, in tail position. If nothing was
/// written, as for each slice that is timed, `slow` follows.
#[inline(always)]
pub(crate) fn end_or(
    hot: &'static Hot,
    end: &End,
    packet: fn(&'static Hot, &End, u32, Taken),
    slow: fn(&End),
) {
    let number = end.open.recorded_in.number();
    let Some(taken) = hot.take_number(Lease::end_epoch, number) else { return slow(end) };
    if Epoch::format_of(number) == Format::TrackEvent {
        return packet(hot, end, end.open.id, taken);
    }
    if !fxt::end::<false>(hot, end, taken) {
        slow(end);
    }
}

/// Writes a record with arguments. Returns its time, `None` if nothing was written.
#[inline(always)]
pub(crate) fn with_values<const WARM: bool, V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    kind: CallsiteKind,
    values: &V,
) -> Option<u64> {
    if V::COLD_ONLY {
        return None;
    }
    let taken = hot.take(Lease::epoch, epoch)?;
    // The macros make as many keys as values. This check spares a bounds check for each of them.
    if callsite.keys().len() != values.count() || !hot.has_seen::<WARM>(callsite) {
        return taken.put_back();
    }
    if epoch.format() == Format::Fxt {
        fxt::with_values::<WARM>(hot, callsite, kind, (), values, taken)
    } else if kind == CallsiteKind::Counter {
        packet::counter::<WARM>(hot, callsite, values, taken)
    } else {
        packet::with_values::<WARM>(hot, callsite, kind, None, (), values, taken)
    }
}

/// Continues an event at a callsite that the thread has seen, with what the program gave it. `fxt` or
/// `packet` writes the record, in tail position, so that neither saves registers for the other. If the event
/// cannot be written there, `slow` follows.
#[inline(always)]
pub(crate) fn continue_seen<V, R>(
    hot: &'static Hot,
    callsite: &'static Callsite,
    given: &V,
    fxt: fn(&'static Hot, &'static Callsite, &V, Epoch, Taken) -> R,
    packet: fn(&'static Hot, &'static Callsite, &V, Epoch, Taken) -> R,
    slow: fn(&'static Callsite, &V) -> R,
) -> R {
    let Some((taken, epoch)) = hot.take_for(callsite) else { return slow(callsite, given) };
    if !hot.has_seen::<false>(callsite) {
        taken.put_back::<()>();
        return slow(callsite, given);
    }
    if epoch.format() == Format::Fxt {
        fxt(hot, callsite, given, epoch, taken)
    } else {
        packet(hot, callsite, given, epoch, taken)
    }
}

/// As [`with_values`], in a session that records facts beside each event. Returns `None` at once in another
/// one.
#[inline(never)]
pub(crate) fn with_facts<V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    kind: CallsiteKind,
    values: &V,
) -> Option<u64> {
    if V::COLD_ONLY || !hot.is_detailed() {
        return None;
    }
    let taken = hot.take(Lease::epoch, epoch)?;
    if callsite.keys().len() != values.count() || !hot.has_seen_detailed(callsite) {
        return taken.put_back();
    }
    let format = epoch.format();
    let Some(facts) = EventFacts::now(hot, callsite, kind, format) else { return taken.put_back() };
    if format == Format::Fxt {
        fxt::with_values::<true>(hot, callsite, kind, facts, values, taken)
    } else if kind == CallsiteKind::Counter {
        packet::counter::<true>(hot, callsite, values, taken)
    } else {
        packet::with_values::<true>(hot, callsite, kind, None, facts, values, taken)
    }
}

/// Writes an event with arguments on a track other than the thread's own. Returns its time, `None` if nothing
/// was written.
///
/// Slices there reserve no room for their ends. In a ring that overwrites, these slices must not be written
/// at once: there, no track is ever marked as [described](Hot::set_described).
#[inline(always)]
pub(crate) fn on_track<V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    happens: TrackAction,
    position: Position,
    values: &V,
) -> Option<u64> {
    if V::COLD_ONLY {
        return None;
    }
    let taken = hot.take(Lease::epoch, epoch)?;
    let lease = taken.lease;
    let is_packet = epoch.format() == Format::TrackEvent;
    let is_blob = !is_packet && position.in_fxt == InFxt::Blob;
    let is_end = happens == TrackAction::End;
    // An end has its begin's callsite and no arguments, and its packet no string. A blob has no string id.
    let has_strings = is_blob || is_end && is_packet || hot.has_seen::<true>(callsite);
    let has_keys = is_end || callsite.keys().len() == values.count() && !(is_blob && values.count() != 0);
    let as_interval = !is_packet && position.in_fxt == InFxt::Interval;
    let described = if as_interval { position.uuid.0 | AS_INTERVAL } else { position.uuid.0 };
    let is_described = hot.track_cell(position.uuid).get() == described;
    let is_left_to_cold = !is_packet && position.in_fxt == InFxt::Thread;
    let is_written = if is_left_to_cold || !is_described || !has_strings || !has_keys {
        taken.put_back()
    } else if is_blob {
        let varint = proto::varint_of_8(position.uuid.0);
        if is_end {
            blob::end::<true>(hot, varint, position.after, taken).is_some()
        } else {
            blob::bare::<true>(hot, callsite, varint, position.after, taken).is_some()
        }
    } else if !is_packet {
        fxt::in_interval(hot, callsite, happens, position, values, taken)
    } else if is_end {
        let varint = proto::varint_of_8(position.uuid.0);
        packet::end_on_track::<true>(hot, varint, position.after, taken).is_some()
    } else if values.count() == 0 && values.flow().is_none() {
        let varint = proto::varint_of_8(position.uuid.0);
        packet::plain_on_track::<true>(hot, callsite, varint, position.after, taken).is_some()
    } else {
        let kind = CallsiteKind::Instant;
        packet::with_values::<true>(hot, callsite, kind, Some(position), (), values, taken).is_some()
    };
    is_written.then(|| lease.last())
}

/// As [`on_track`], for an event without arguments on a track that the program made.
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
            packet::end_on_track::<false>(hot, varint, after, taken)
        } else {
            blob::end::<false>(hot, varint, after, taken)
        }
    } else if !is_packet {
        blob::bare::<false>(hot, callsite, varint, after, taken)
    } else if hot.has_seen::<false>(callsite) {
        packet::plain_on_track::<false>(hot, callsite, varint, after, taken)
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
        let ([low, high], _) = packet::counter_message(callsite, uuid);
        blob::counter(
            hot,
            [low >> (8 * FIELDS_AT) | high << (64 - 8 * FIELDS_AT), high >> (8 * FIELDS_AT)],
            value,
            taken,
        )
    }
}

/// As [`counter_on_track`], for a counter of the process with a unit, in FXT.
#[inline(always)]
pub(crate) fn counter_with_unit<V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
) -> Option<u64> {
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
    let [low, high] = callsite.message_words();
    blob::counter(
        hot,
        [low >> (8 * FIELDS_AT) | high << (64 - 8 * FIELDS_AT), high >> (8 * FIELDS_AT)],
        value,
        taken,
    )
}
