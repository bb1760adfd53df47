//! The hot path of slices and instants on tracks, and of counters with a unit, in FXT, which has no record
//! for them: a TrackEvent packet in a blob, which needs no other packet.
//!
//! ```text
//! HEADER | 0a LEN  50 SEQUENCE | 5a L  48 TYPE  b2 01 l CATEGORY  ba 01 l NAME  58 TRACK | 40 TIME | zeros
//! ```
//!
//! A counter has its value in place of category and name; an end has nothing there. The zeros fill the last
//! word. Each length is one byte: an event with longer texts takes the cold path.

#![allow(unsafe_code)] // stores into the chunk

use hairline_formats::track_event::CounterValue;
use hairline_formats::{fxt, proto, track_event};
use track_event::EventType;
use track_event::fields::track_event as event;

use crate::on::base::this_thread::Hot;
use crate::on::event::position::{Position, TrackAction};
use crate::on::thread::hot::Callsite;
use crate::on::thread::hot::packet::{TIME_LEN, TRACK, counter_value_len, put_counter_value, put_track};
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::raw::Raw;

/// The most bytes of both texts, with their tags and lengths. With these, and the longest prefix and time,
/// the packet is below 128 bytes.
const LONGEST_TEXTS: usize = 90;

/// Bytes of a text's tag and length.
const TEXT: usize = 3;

const fn tag_of_text(field: u32) -> u64 {
    let tag = proto::tag(field, proto::WireType::Bytes) as u64;
    tag & 0x7f | 0x80 | tag >> 7 << 8
}

#[inline(always)]
pub(crate) fn event(
    hot: &Hot,
    callsite: &'static Callsite,
    happens: TrackAction,
    position: Position,
    taken: Taken,
) -> bool {
    let (kind, texts) = match happens {
        TrackAction::Begin => (EventType::SliceBegin, callsite.texts()),
        TrackAction::Instant => (EventType::Instant, callsite.texts()),
        TrackAction::End => (EventType::SliceEnd, Some([""; 2])),
    };
    let Some(texts) = texts else { return taken.put_back() };
    let texts_len = if happens == TrackAction::End { 0 } else { 2 * TEXT + texts[0].len() + texts[1].len() };
    // The cold path composes the constant part of the callsite, for `bare`.
    let lacks_part = happens != TrackAction::End && callsite.blob_part().is_none();
    if texts_len > LONGEST_TEXTS || lacks_part {
        return taken.put_back();
    }
    let event_len = 2 + texts_len + TRACK;
    let Some(mut blob) = Blob::new(hot, event_len, position.after, &taken) else { return taken.put_back() };
    let raw = &mut blob.raw;
    raw.word_of(0x48 | (kind as u64) << 8, 2);
    if happens != TrackAction::End {
        put_text(raw, event::CATEGORIES, texts[0]);
        put_text(raw, event::NAME, texts[1]);
    }
    put_track(raw, position.uuid);
    blob.commit(taken);
    true
}

/// Writes a begin or an instant, with the constant part of its callsite, on the track whose uuid has this
/// varint. Its time must exceed `after`. Returns the time, `None` if nothing was written.
#[inline(always)]
pub(crate) fn bare(
    hot: &Hot,
    callsite: &'static Callsite,
    uuid_varint: u64,
    after: u64,
    taken: Taken,
) -> Option<u64> {
    let Some(part) = callsite.blob_part() else { return taken.put_back() };
    let put = |raw: &mut Raw| {
        // SAFETY: the part has 12 bytes at least, and 17 follow: a copy of 48 ends within the overhang.
        unsafe { raw.copy_of_96(&part.bytes, part.len) };
        raw.word_of(uuid_varint, 8);
    };
    whole::<false>(hot, part.len + 8, put, after, taken)
}

/// As [`bare`], the end of a slice.
#[inline(always)]
pub(crate) fn end(hot: &Hot, uuid_varint: u64, after: u64, taken: Taken) -> Option<u64> {
    /// `5a 0b 48 02 58`
    const PART: [u8; 8] = [0x5a, 2 + TRACK as u8, 0x48, EventType::SliceEnd as u8, 0x58, 0, 0, 0];
    let put = |raw: &mut Raw| {
        raw.word_of(u64::from_le_bytes(PART), 5);
        raw.word_of(uuid_varint, 8);
    };
    whole::<false>(hot, 5 + 8, put, after, taken)
}

/// Writes the value of a counter. `fields` are the type of the event and its track, 11 bytes. Returns the
/// time, `None` if nothing was written.
#[inline(always)]
pub(crate) fn counter(hot: &Hot, fields: [u64; 2], value: CounterValue, taken: Taken) -> Option<u64> {
    const FIELDS: usize = 2 + TRACK;
    let event_len = FIELDS + counter_value_len(value);
    let put = |raw: &mut Raw| {
        raw.word_of(0x5a | (event_len as u64) << 8, 2);
        raw.two_words_of(fields, FIELDS);
        put_counter_value(raw, value);
    };
    whole::<true>(hot, 2 + event_len, put, 0, taken)
}

/// Writes a blob with one packet, whose length is known beforehand: its time is padded to 8 bytes. `put`
/// writes the event, `event_len` bytes with its tag and its length. With the longest of those above, the
/// packet is below 128 bytes.
///
/// ```text
/// HEADER | 0a LEN  50 SEQUENCE | event | 40 TIME | zeros
/// ```
#[inline(always)]
fn whole<const WARM: bool>(
    hot: &Hot,
    event_len: usize,
    put: impl FnOnce(&mut Raw),
    after: u64,
    taken: Taken,
) -> Option<u64> {
    /// The time, with its tag.
    const TIME: usize = 1 + 8;
    // The constants of the packets count the shorter time of the others.
    let more = event_len + TIME - TIME_LEN;
    let packet_len = hot.packet_base.get() as usize + more;
    let words = 1 + packet_len.div_ceil(8);
    let bytes = 8 * words as u32;
    let room = taken.room() - bytes as i32;
    if room < 0 {
        return taken.put_back();
    }
    let Some((now, _)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    if now <= after || now >> 56 != 0 {
        return taken.put_back();
    }
    let commit = taken.last_commit();
    // SAFETY: room for `bytes`.
    let mut raw = unsafe { taken.raw(commit) };
    raw.word_of(fxt::blob_header(words, packet_len, fxt::BLOB_PERFETTO), 8);
    raw.word_of(hot.prefix.get() + ((more as u64) << 8), hot.prefix_len.get());
    put(&mut raw);
    raw.word_of(0x40, 1);
    raw.word_of(proto::varint_in_8(now), 8);
    raw.word_of(0, 0); // the zeros up to the end of the word
    taken.commit(commit, now, bytes, room);
    Some(now)
}

#[inline(always)]
fn put_text(raw: &mut Raw, field: u32, text: &str) {
    raw.word_of(tag_of_text(field) | (text.len() as u64) << 16, TEXT);
    raw.copy(text.as_bytes());
}

/// A blob of one packet, whose event is being written.
struct Blob {
    /// The position of the event's next field.
    raw: Raw,
    now: u64,
    /// The varint of that time, and its bytes.
    time: (u64, usize),
    bytes: u32,
    /// The bytes of the zeros at its end.
    zeros: usize,
    /// The bytes that are left in the chunk after it.
    room: i32,
}

impl Blob {
    /// Writes the bytes before the event's fields, which have `event_len` bytes: with the longest prefix and
    /// time, the packet is below 128 bytes. Returns `None` if the hot path cannot write the packet, or if its
    /// time would not exceed `after`.
    #[inline(always)]
    fn new(hot: &Hot, event_len: usize, after: u64, taken: &Taken) -> Option<Self> {
        let (now, _) = hot.tick::<true>(taken)?;
        if now <= after || now >> 56 != 0 {
            return None;
        }
        let time = proto::varint_up_to_8(now);
        let prefix_len = hot.prefix_len.get();
        let body = (prefix_len - 2) + 2 + event_len + 1 + time.1;
        let packet_len = 2 + body;
        let words = 1 + packet_len.div_ceil(8);
        let bytes = 8 * words as u32;
        let room = taken.room() - bytes as i32;
        if room < 0 {
            return None;
        }
        // SAFETY: room for `bytes`.
        let mut raw = unsafe { taken.raw(taken.last_commit()) };
        raw.word_of(fxt::blob_header(words, packet_len, fxt::BLOB_PERFETTO), 8);
        raw.word_of(0x0a | (body as u64) << 8, 2);
        raw.word_of(hot.prefix.get() >> 16, prefix_len - 2);
        raw.word_of(0x5a | (event_len as u64) << 8, 2);
        Some(Self { raw, now, time, bytes, zeros: bytes as usize - 8 - packet_len, room })
    }

    /// Writes the bytes after the event's fields, and commits the blob. Returns its time.
    #[inline(always)]
    fn commit(mut self, taken: Taken) -> u64 {
        self.raw.word_of(0x40, 1);
        self.raw.word_of(self.time.0, self.time.1);
        self.raw.word_of(0, self.zeros);
        let commit = taken.last_commit();
        taken.commit(commit, self.now, self.bytes, self.room);
        self.now
    }
}
