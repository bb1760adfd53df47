//! TrackEvent packets on the hot path. `message.rs` draws the layout.
//!
//! The time is always 4 bytes: its tag and a varint of 3. A shorter delta is padded. This costs at most two
//! bytes, and every packet's length is known before the clock is read.

#![allow(unsafe_code)] // stores into the chunk

use std::sync::atomic::{Ordering, compiler_fence};

use hairline_formats::proto::varint_len;
use hairline_formats::track_event::{CounterValue, TrackUuid};
use hairline_formats::{Value, proto, track_event};

use crate::on::base::this_thread::Hot;
use crate::on::encode::track_event::location::LOCATION_LEN;
use crate::on::encode::track_event::message::{
    END_MESSAGE, END_MESSAGE_LEN, FIELDS_AT, LENGTH_AT, counter_value,
};
use crate::on::event::argument::Visitor;
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::hot::{Callsite, Values};
use crate::on::thread::raw::Raw;
use crate::site::CallsiteKind;

/// Bytes reserved for the end of a scope: prefix (8), message (6), tag and the longest varint (11).
pub(crate) const END: i32 = 25;

/// The longest packet without arguments: prefix (8), message (16), time (4).
pub(super) const PLAIN: i32 = 28;

/// Bytes of the time.
pub(crate) const TIME_LEN: usize = 4;

pub(super) fn reserved_for_end(kind: CallsiteKind) -> i32 {
    if kind == CallsiteKind::Scope { END } else { 0 }
}

/// Encodes a time: `40` and the varint of a delta below 2^21, padded to 3 bytes.
#[inline(always)]
pub(crate) fn time(delta: u64) -> u64 {
    // Each sum moves all but the lowest group up by a bit. So few registers are needed.
    let two = delta + (delta & !0x7f);
    let three = two + (two & !0x7fff);
    three << 8 | 0x80_8040
}

/// A message that is constant in a session: that of a callsite, or of an end.
pub(crate) trait Constant: Copy {
    fn words(self) -> [u64; 2];

    /// Returns the bytes that are used.
    fn len(self) -> usize;
}

impl Constant for &'static Callsite {
    #[inline(always)]
    fn words(self) -> [u64; 2] {
        self.message_words()
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.message_len()
    }
}

impl Constant for ([u64; 2], usize) {
    #[inline(always)]
    fn words(self) -> [u64; 2] {
        self.0
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.1
    }
}

/// An event that has a constant message and one field at most: `put` writes that.
struct Message<C, P> {
    constant: C,
    /// The length of the field, and the most that it may have.
    len: usize,
    most: usize,
    put: P,
    /// The bytes that the begin of a scope reserves for its end.
    reserved: i32,
}

impl<C: Constant, P: FnOnce(&mut Raw)> Message<C, P> {
    /// Writes the packet at a time that `is_allowed`.
    ///
    /// `room` is that of the lease: an argument in the register that reading the clock overwrites.
    #[inline(always)]
    fn write<const WARM: bool>(
        self,
        hot: &Hot,
        room: i32,
        taken: Taken,
        is_allowed: impl FnOnce(u64) -> bool,
    ) -> Option<u64> {
        let Self { constant, len, put, reserved, .. } = self;
        if room < PLAIN + self.most as i32 + reserved {
            return taken.put_back();
        }
        let Some((now, delta)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
        if !is_allowed(now) {
            return taken.put_back();
        }
        let commit = taken.last_commit();
        // SAFETY: room for PLAIN bytes and the field.
        let mut raw = unsafe { taken.raw(commit) };
        if reserved > 0 {
            taken.note_at_limit(true, raw.position(), commit, reserved, now);
        }
        // Each step after the other, and commit and room loaded again: the compiler would load everything
        // first, and save registers for it.
        let time = time(delta);
        compiler_fence(Ordering::SeqCst);
        let own_len = constant.len();
        let message_len = own_len + len;
        let bytes = hot.packet_base.get() + message_len as u32;
        raw.word_of(hot.prefix.get() + ((message_len as u64) << 8), hot.prefix_len.get());
        compiler_fence(Ordering::SeqCst);
        let [fields, more] = constant.words();
        raw.two_words_of([fields + ((len as u64) << (8 * LENGTH_AT)), more], own_len);
        put(&mut raw);
        raw.word_of(time, TIME_LEN);
        compiler_fence(Ordering::SeqCst);
        taken.commit_and_reserve(now, bytes, reserved);
        Some(now)
    }
}

/// Writes a begin or an instant without arguments. The callsite's strings are in the sequence.
#[inline(always)]
pub(crate) fn plain(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    room: i32,
    taken: Taken,
) -> Option<u64> {
    let reserved = reserved_for_end(kind);
    let message = Message { constant: callsite, len: 0, most: 0, put: |_: &mut Raw| {}, reserved };
    message.write::<false>(hot, room, taken, |_| true)
}

/// As [`plain`], with the callsite's place in the source.
#[inline(always)]
pub(crate) fn located(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    room: i32,
    taken: Taken,
) -> Option<u64> {
    const LEN: usize = LOCATION_LEN;
    let put = |raw: &mut Raw| raw.word_of(u64::from(callsite.location_field()), LEN);
    let reserved = reserved_for_end(kind);
    let message = Message { constant: callsite, len: LEN, most: LEN, put, reserved };
    message.write::<false>(hot, room, taken, |_| true)
}

/// `f9 02` and the id: a flow in an event.
const FLOW_TAG: u64 = proto::tag(track_event::fields::track_event::FLOW_IDS, proto::WireType::Fixed64) as u64;
pub(crate) const FLOW: usize = 10;

#[inline(always)]
pub(crate) fn put_flow(raw: &mut Raw, flow: u64) {
    raw.word_of(FLOW_TAG >> 7 << 8 | FLOW_TAG & 0x7f | 0x80, 2);
    raw.word_of(flow, 8);
}

/// Writes the begin of a scope, or an instant, with a flow, at a time at which the flow `can_pass`.
#[inline(always)]
pub(crate) fn with_flow<const INSTANT: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    flow: u64,
    can_pass: impl FnOnce(u64) -> bool,
    taken: Taken,
) -> Option<u64> {
    let put = |raw: &mut Raw| put_flow(raw, flow);
    let reserved = if INSTANT { 0 } else { END };
    let message = Message { constant: callsite, len: FLOW, most: FLOW, put, reserved };
    message.write::<false>(hot, taken.room(), taken, can_pass)
}

/// Writes the end of the scope whose begin has this id. Returns false if nothing was written. `id` is an
/// argument like the `room` of [`plain`].
#[inline(always)]
pub(crate) fn end(hot: &Hot, id: u32, taken: Taken) -> bool {
    let (room, commit) = (taken.room(), taken.last_commit());
    if !taken.is_innermost(commit, room, id) {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<false>(&taken) else { return taken.put_back() };
    let len = hot.packet_base.get() + END_MESSAGE_LEN as u32;
    // SAFETY: the begin reserved END bytes.
    let mut raw = unsafe { taken.raw(commit) };
    raw.two_words_of(hot.end_packet.get(), len as usize - TIME_LEN);
    raw.word_of(time(delta), TIME_LEN);
    let room = room + (END - len as i32);
    taken.commit(commit, now, len, room);
    true
}

/// Bytes of a track: `58` and the varint of its uuid, which is always 8 bytes (`message.rs`).
pub(crate) const TRACK: usize = 9;
const TRACK_TAG: u64 =
    proto::tag(track_event::fields::track_event::TRACK_UUID, proto::WireType::Varint) as u64;

/// Writes an event with this constant message, and without arguments, on the track whose uuid has this
/// varint. Its time must exceed `after`. Returns the time, `None` if nothing was written.
#[inline(always)]
pub(crate) fn on_track<const WARM: bool>(
    hot: &Hot,
    constant: impl Constant,
    uuid_varint: u64,
    after: u64,
    taken: Taken,
) -> Option<u64> {
    let put = |raw: &mut Raw| {
        raw.word_of(TRACK_TAG, 1);
        raw.word_of(uuid_varint, 8);
    };
    let message = Message { constant, len: TRACK, most: TRACK, put, reserved: 0 };
    message.write::<WARM>(hot, taken.room(), taken, |now| now > after)
}

/// Bytes of a time of the past: its tag and 8 bytes, the tag of its clock and the number.
const PAST: usize = 9 + 3;
/// `d0 03 06`: the time is on the clock BOOTTIME, and not the difference to the packet before.
const ON_BOOTTIME: u64 = {
    let tag =
        proto::tag(track_event::fields::trace_packet::TIMESTAMP_CLOCK_ID, proto::WireType::Varint) as u64;
    let tag = tag >> 7 << 8 | tag & 0x7f | 0x80;
    tag | (track_event::fields::clock::BOOTTIME as u64) << 16
};

/// Writes a begin without arguments on the track whose uuid has this varint, at a time of the past. Returns
/// false if nothing was written.
#[inline(always)]
pub(crate) fn in_past(
    hot: &Hot,
    callsite: &'static Callsite,
    uuid_varint: u64,
    past: u64,
    taken: Taken,
) -> bool {
    const MORE: usize = TRACK + PAST - TIME_LEN;
    if taken.room() < PLAIN + MORE as i32 || past >> 56 != 0 {
        return taken.put_back();
    }
    // SAFETY: this thread's own lease.
    let last = unsafe { taken.lease.own_last() };
    // SAFETY: room for PLAIN bytes and MORE.
    let mut raw = unsafe { taken.raw(taken.last_commit()) };
    let own_len = callsite.message_len();
    let bytes = hot.packet_base.get() + (own_len + MORE) as u32;
    raw.word_of(hot.prefix.get() + (((own_len + MORE) as u64) << 8), hot.prefix_len.get());
    let [fields, more] = callsite.message_words();
    raw.two_words_of([fields + ((TRACK as u64) << (8 * LENGTH_AT)), more], own_len);
    raw.word_of(TRACK_TAG, 1);
    raw.word_of(uuid_varint, 8);
    raw.word_of(0x40, 1);
    raw.word_of(proto::varint_in_8(past), 8);
    raw.word_of(ON_BOOTTIME, 3);
    taken.commit_and_reserve(last, bytes, 0);
    true
}

/// The message of an end.
pub(crate) const END_CONSTANT: ([u64; 2], usize) = ([END_MESSAGE, 0], END_MESSAGE_LEN);

#[inline(always)]
pub(crate) fn put_track(raw: &mut Raw, uuid: TrackUuid) {
    raw.word_of(TRACK_TAG, 1);
    raw.word_of(proto::varint_of_8(uuid.0), 8);
}

#[inline(always)]
pub(crate) fn counter(
    hot: &Hot,
    callsite: &'static Callsite,
    values: &impl Values,
    taken: Taken,
) -> Option<u64> {
    let Some(value) = value_of(values) else { return taken.put_back() };
    put_counter::<false>(hot, callsite, value, taken)
}

/// Writes the value of a counter on the track with this uuid, which is not that of its callsite.
#[inline(always)]
pub(crate) fn counter_on_track(
    hot: &Hot,
    callsite: &'static Callsite,
    uuid: TrackUuid,
    value: CounterValue,
    taken: Taken,
) -> Option<u64> {
    put_counter::<true>(hot, counter_message(callsite, uuid), value, taken)
}

/// Returns the message of a counter with the uuid of another track.
#[inline(always)]
pub(crate) fn counter_message(callsite: &'static Callsite, uuid: TrackUuid) -> ([u64; 2], usize) {
    // The track is the last field: its tag, and the 8 bytes of its uuid.
    const UUID_AT: usize = FIELDS_AT + 2 + 1;
    let uuid = proto::varint_of_8(uuid.0);
    let ([fields, _], len) = callsite.message();
    debug_assert_eq!(len, UUID_AT + 8);
    ([fields & !(0xff << (8 * UUID_AT)) | uuid << (8 * UUID_AT), uuid >> 8], len)
}

/// Returns the value of a counter, `None` if it is no number.
#[inline(always)]
pub(crate) fn value_of(values: &impl Values) -> Option<CounterValue> {
    let mut shown = Shown(None);
    values.each(0, &mut shown);
    shown.0
}

#[inline(always)]
fn put_counter<const WARM: bool>(
    hot: &Hot,
    constant: impl Constant,
    value: CounterValue,
    taken: Taken,
) -> Option<u64> {
    let put = |raw: &mut Raw| put_counter_value(raw, value);
    let message = Message { constant, len: counter_value_len(value), most: 2 + 10, put, reserved: 0 };
    message.write::<WARM>(hot, taken.room(), taken, |_| true)
}

/// Returns the bytes of a counter's value in an event.
#[inline(always)]
pub(crate) fn counter_value_len(value: CounterValue) -> usize {
    2 + match value {
        CounterValue::Int(v) => varint_len(v.cast_unsigned()),
        CounterValue::Double(_) => 8,
    }
}

/// Writes a counter's value as a field of an event.
#[inline(always)]
pub(crate) fn put_counter_value(raw: &mut Raw, value: CounterValue) {
    match value {
        CounterValue::Int(v) => {
            raw.word_of(0x01f0, 2); // field 30, varint
            raw.varint(v.cast_unsigned());
        }
        CounterValue::Double(v) => {
            raw.word_of(0x02e1, 2); // field 44, 8 bytes
            raw.word_of(v.to_bits(), 8);
        }
    }
}

/// Collects the value of a counter.
struct Shown(Option<CounterValue>);

impl Visitor<'_> for Shown {
    #[inline(always)]
    fn visit(&mut self, _: usize, value: Value<'_>) {
        self.0 = counter_value(&value);
    }
}
