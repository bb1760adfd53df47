//! TrackEvent packets on the hot path. `message.rs` draws the layout.
//!
//! The time is always 4 bytes: its tag and a varint of 3. A shorter delta is padded. This costs at most two
//! bytes, and every packet's length is known before the clock is read.

#![allow(unsafe_code)] // stores into the chunk

use std::sync::atomic::{Ordering, compiler_fence};

use hairline_formats::proto::varint_len;
use hairline_formats::track_event::{AnnotationHead, CounterValue, TrackUuid};
use hairline_formats::{Value, proto, track_event};

use crate::on::base::this_thread::Hot;
use crate::on::callsite::Key;
use crate::on::encode::track_event::location::LOCATION_LEN;
use crate::on::encode::track_event::message::{
    END_MESSAGE, END_MESSAGE_LEN, FIELDS_AT, LENGTH_AT, counter_value,
};
use crate::on::event::argument::{Flat, Visitor};
use crate::on::event::position::Position;
use crate::on::thread::hot::beside::Beside;
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

/// Writes a begin or an instant without arguments. Unless `WARM`, the callsite's strings are in the sequence.
/// `room` is that of the lease: an argument in the register that reading the clock overwrites.
#[inline(always)]
pub(crate) fn plain<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    room: i32,
    taken: Taken,
) -> Option<u64> {
    let reserved = reserved_for_end(kind);
    if room < PLAIN + reserved || WARM && !hot.has_seen::<true>(callsite) {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    let commit = taken.last_commit();
    // SAFETY: room for PLAIN bytes.
    let mut raw = unsafe { taken.raw(commit) };
    if kind == CallsiteKind::Scope {
        taken.note_at_limit::<true>(raw.position(), commit, reserved, now);
    }
    // Each step after the other, and commit and room loaded again: the compiler would load everything first,
    // and save registers for it.
    let time = time(delta);
    compiler_fence(Ordering::SeqCst);
    let message_len = callsite.message_len();
    let len = hot.packet_base.get() + message_len as u32;
    raw.word_of(hot.prefix.get() + ((message_len as u64) << 8), hot.prefix_len.get());
    compiler_fence(Ordering::SeqCst);
    raw.two_words_of(callsite.message_words(), message_len);
    raw.word_of(time, TIME_LEN);
    compiler_fence(Ordering::SeqCst);
    taken.commit_and_reserve(now, len, reserved);
    Some(now)
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
    let reserved = reserved_for_end(kind);
    if room < PLAIN + LOCATION_LEN as i32 + reserved {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<false>(&taken) else { return taken.put_back() };
    let commit = taken.last_commit();
    // SAFETY: room for PLAIN and LOCATION_LEN bytes.
    let mut raw = unsafe { taken.raw(commit) };
    if kind == CallsiteKind::Scope {
        taken.note_at_limit::<true>(raw.position(), commit, reserved, now);
    }
    let time = time(delta);
    compiler_fence(Ordering::SeqCst);
    let own_len = callsite.message_len();
    let message_len = own_len + LOCATION_LEN;
    let len = hot.packet_base.get() + message_len as u32;
    raw.word_of(hot.prefix.get() + ((message_len as u64) << 8), hot.prefix_len.get());
    compiler_fence(Ordering::SeqCst);
    let [fields, more] = callsite.message_words();
    raw.two_words_of([fields + ((LOCATION_LEN as u64) << (8 * LENGTH_AT)), more], own_len);
    raw.word_of(u64::from(callsite.location_field()), LOCATION_LEN);
    raw.word_of(time, TIME_LEN);
    compiler_fence(Ordering::SeqCst);
    taken.commit_and_reserve(now, len, reserved);
    Some(now)
}

/// `f9 02` and the id: a flow in an event.
const FLOW_TAG: u64 = proto::tag(track_event::fields::track_event::FLOW_IDS, proto::WireType::Fixed64) as u64;
const FLOW: usize = 10;

#[inline(always)]
fn put_flow(raw: &mut Raw, flow: u64) {
    raw.word_of(FLOW_TAG >> 7 << 8 | FLOW_TAG & 0x7f | 0x80, 2);
    raw.word_of(flow, 8);
}

#[inline(always)]
pub(crate) fn with_flow<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    flow: u64,
    can_pass: impl FnOnce(u64) -> bool,
    taken: Taken,
) -> Option<u64> {
    if taken.room() < PLAIN + FLOW as i32 + END || !hot.has_seen::<WARM>(callsite) {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    if !can_pass(now) {
        return taken.put_back();
    }
    let (message, message_len) = callsite.message();
    let prefix_len = hot.prefix_len.get();
    // Both lengths are below 128: a byte each.
    let event_len = message_len - FIELDS_AT + FLOW;
    let body = (prefix_len - 2) + FIELDS_AT + event_len + TIME_LEN;
    // SAFETY: room for PLAIN bytes and the flow.
    let mut raw = unsafe { taken.raw(taken.last_commit()) };
    raw.word_of(0x0a | (body as u64) << 8, 2);
    raw.word_of(hot.prefix.get() >> 16, prefix_len - 2);
    raw.word_of(message[0], LENGTH_AT);
    raw.word_of(event_len as u64, 1);
    let fields =
        [message[0] >> (8 * FIELDS_AT) | message[1] << (64 - 8 * FIELDS_AT), message[1] >> (8 * FIELDS_AT)];
    raw.two_words_of(fields, message_len - FIELDS_AT);
    put_flow(&mut raw, flow);
    raw.word_of(time(delta), TIME_LEN);
    let len = 2 + body as u32;
    let room = taken.room() - END - len as i32;
    let commit = taken.last_commit();
    taken.note_begin(commit, len, room, now, true);
    taken.commit(commit, now, len, room);
    Some(now)
}

/// Writes the end of the scope whose begin has this id. Returns false if nothing was written. `id` is an
/// argument like the `room` of [`plain`].
#[inline(always)]
pub(crate) fn end<const WARM: bool>(hot: &Hot, id: u32, taken: Taken) -> bool {
    let (room, commit) = (taken.room(), taken.last_commit());
    if !taken.is_innermost(commit, room, id) {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
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

/// Writes the end of a slice on a track.
#[inline(always)]
pub(crate) fn end_on_track<const WARM: bool>(
    hot: &Hot,
    uuid_varint: u64,
    after: u64,
    taken: Taken,
) -> Option<u64> {
    on_track::<WARM>(hot, ([END_MESSAGE, 0], END_MESSAGE_LEN), uuid_varint, after, taken)
}

/// Writes the begin of a slice or an instant on a track, without arguments.
#[inline(always)]
pub(crate) fn plain_on_track<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    uuid_varint: u64,
    after: u64,
    taken: Taken,
) -> Option<u64> {
    on_track::<WARM>(hot, callsite.message(), uuid_varint, after, taken)
}

/// Writes an event that has only this constant message, of which so many bytes are used, on the track whose
/// uuid has this varint. Its time must exceed `after`. Returns the time, `None` if nothing was written.
#[inline(always)]
fn on_track<const WARM: bool>(
    hot: &Hot,
    message: ([u64; 2], usize),
    uuid_varint: u64,
    after: u64,
    taken: Taken,
) -> Option<u64> {
    let ([fields, more], own_len) = message;
    let message_len = own_len + TRACK;
    let len = hot.packet_base.get() + message_len as u32;
    let room = taken.room() - len as i32;
    if room < 0 {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    if now <= after {
        return taken.put_back();
    }
    // SAFETY: room for `len` bytes.
    let mut raw = unsafe { taken.raw(taken.last_commit()) };
    raw.word_of(hot.prefix.get() + ((message_len as u64) << 8), hot.prefix_len.get());
    raw.two_words_of([fields + ((TRACK as u64) << (8 * LENGTH_AT)), more], own_len);
    raw.word_of(TRACK_TAG, 1);
    raw.word_of(uuid_varint, 8);
    raw.word_of(time(delta), TIME_LEN);
    let commit = taken.last_commit();
    taken.commit(commit, now, len, room);
    Some(now)
}

#[inline(always)]
pub(crate) fn put_track(raw: &mut Raw, uuid: TrackUuid) {
    raw.word_of(TRACK_TAG, 1);
    raw.word_of(proto::varint_of_8(uuid.0), 8);
}

/// Writes an event with arguments, on its thread's track or at a `position` on another track. There, the
/// begin of a slice reserves no room for its end. Its lengths have one byte, or two: see `composed.rs`.
#[inline(always)]
pub(crate) fn with_values<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    position: Option<Position>,
    facts: impl Beside,
    values: &impl Values,
    taken: Taken,
) -> Option<u64> {
    let keys = callsite.keys();
    let (message, message_len) = callsite.message();
    let prefix_len = hot.prefix_len.get();
    let flow = values.flow();
    let track_len = if position.is_some() { TRACK } else { 0 };
    let flow_len = if flow.is_some() { FLOW } else { 0 };
    let mut most = Most(prefix_len + message_len + track_len + flow_len + facts.fields_len() + TIME_LEN);
    values.each(0, &mut most);
    let Most(most) = most;
    let length = if most < 0x80 { 1 } else { 2 };
    let reserved = if kind == CallsiteKind::Scope { facts.end_size(hot, END) } else { 0 };
    let room = taken.room();
    if most >= 1 << 14 || room < (most + 2) as i32 + reserved {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    if position.is_some_and(|position| now <= position.after) {
        return taken.put_back();
    }
    let commit = taken.last_commit();
    // SAFETY: room for `most` bytes, and for the second byte of both lengths.
    let mut raw = unsafe { taken.raw(commit) };
    let start = raw.position();
    raw.word_of(0x0a, 1 + length);
    raw.word_of(hot.prefix.get() >> 16, prefix_len - 2);
    raw.word_of(message[0], LENGTH_AT + length);
    let event = raw.position();
    let fields =
        [message[0] >> (8 * FIELDS_AT) | message[1] << (64 - 8 * FIELDS_AT), message[1] >> (8 * FIELDS_AT)];
    raw.two_words_of(fields, message_len - FIELDS_AT);
    if let Some(position) = position {
        put_track(&mut raw, position.uuid);
    }
    if let Some((flow, _)) = flow {
        put_flow(&mut raw, flow);
    }
    facts.put_fields(&mut raw);
    values.each(0, &mut Put { raw: &mut raw, keys });
    let event_len = raw.distance(event);
    raw.word_of(time(delta), TIME_LEN);
    let bytes = raw.distance(start);
    // SAFETY: both lengths are of this record, and have `length` bytes.
    unsafe {
        Raw::set_length(event, length, event_len);
        Raw::set_length(start.add(1 + length), length, bytes - 1 - length);
    }
    let room = room - bytes as i32 - reserved;
    if kind == CallsiteKind::Scope {
        taken.note_begin(commit, bytes as u32, room, now, true);
    }
    taken.commit(commit, now, bytes as u32, room);
    Some(now)
}

#[inline(always)]
pub(crate) fn counter<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    values: &impl Values,
    taken: Taken,
) -> Option<u64> {
    let Some(value) = value_of(values) else { return taken.put_back() };
    put_counter::<WARM>(hot, || callsite.message(), value, taken)
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
    put_counter::<true>(hot, || counter_message(callsite, uuid), value, taken)
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
    message: impl FnOnce() -> ([u64; 2], usize),
    value: CounterValue,
    taken: Taken,
) -> Option<u64> {
    // Prefix (8), message (16), value (2 + 10), time (4).
    const LONGEST: i32 = 40;
    let (room, commit) = (taken.room(), taken.last_commit());
    if room < LONGEST {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    let (message, message_len) = message();
    let value_len = counter_value_len(value);
    let added = (message_len + value_len) as u64;
    // SAFETY: room for LONGEST bytes.
    let mut raw = unsafe { taken.raw(commit) };
    raw.word_of(hot.prefix.get() + (added << 8), hot.prefix_len.get());
    raw.two_words_of([message[0] + ((value_len as u64) << (8 * LENGTH_AT)), message[1]], message_len);
    put_counter_value(&mut raw, value);
    raw.word_of(time(delta), TIME_LEN);
    let len = hot.packet_base.get() + added as u32;
    let room = room - len as i32;
    taken.commit(commit, now, len, room);
    Some(now)
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

/// Adds the most bytes that the annotations may have.
pub(super) struct Most(pub(super) usize);

impl Visitor<'_> for Most {
    #[inline(always)]
    fn visit(&mut self, _: usize, value: Value<'_>) {
        self.0 += AnnotationHead::most(&value);
    }

    #[inline(always)]
    fn visit_flat<F: Flat>(&mut self, _: usize, _: &F) {}
}

/// Writes the annotations.
struct Put<'r> {
    raw: &'r mut Raw,
    keys: &'static [Key],
}

impl Visitor<'_> for Put<'_> {
    #[inline(always)]
    fn visit(&mut self, at: usize, value: Value<'_>) {
        if value != Value::Null {
            track_event::put_annotation(self.raw, self.keys[at].id().iid(), &value);
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
