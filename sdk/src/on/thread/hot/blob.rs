//! The hot path of slices and instants on tracks, and of counters with a unit, in FXT, which has no record
//! for them: a TrackEvent packet in a blob, which needs no other packet.
//!
//! ```text
//! HEADER | 0a LEN  50 SEQUENCE | 5a L  48 TYPE  b2 01 l CATEGORY  ba 01 l NAME  58 TRACK | 40 TIME | zeros
//! ```
//!
//! A counter has its value in place of category and name; an end has nothing there. The zeros fill the last
//! word. Each length is one byte: an event with longer texts takes the cold path. So does the first one of a
//! callsite: the cold path composes the callsite's constant part
//! ([`BlobPart`](crate::on::callsite::BlobPart)).

#![allow(unsafe_code)] // stores into the chunk

use hairline_formats::track_event::CounterValue;
use hairline_formats::track_event::EventType;
use hairline_formats::{fxt, proto};

use crate::on::base::this_thread::Hot;
use crate::on::thread::hot::Callsite;
use crate::on::thread::hot::packet::{TIME_LEN, TRACK, counter_value_len, put_counter_value};
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::raw::Raw;

/// Writes a begin or an instant, with the constant part of its callsite, on the track whose uuid has this
/// varint. `PAST`: at the time `limit`; else at the current time, which must exceed `limit`. Returns the
/// time, `None` if nothing was written.
#[inline(always)]
pub(crate) fn bare<const WARM: bool, const PAST: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    uuid_varint: u64,
    limit: u64,
    taken: Taken,
) -> Option<u64> {
    let Some(part) = callsite.blob_part() else { return taken.put_back() };
    let put = |raw: &mut Raw| {
        // SAFETY: the part has 12 bytes at least, and 17 follow: a copy of 48 ends within the overhang.
        unsafe { raw.copy_of_96(&part.bytes, part.len) };
        raw.word_of(uuid_varint, 8);
    };
    whole::<WARM, PAST>(hot, part.len + 8, put, limit, taken)
}

/// As [`bare`], the end of a slice.
#[inline(always)]
pub(crate) fn end<const WARM: bool>(hot: &Hot, uuid_varint: u64, after: u64, taken: Taken) -> Option<u64> {
    /// `5a 0b 48 02 58`
    const PART: [u8; 8] = [0x5a, 2 + TRACK as u8, 0x48, EventType::SliceEnd as u8, 0x58, 0, 0, 0];
    let put = |raw: &mut Raw| {
        raw.word_of(u64::from_le_bytes(PART), 5);
        raw.word_of(uuid_varint, 8);
    };
    whole::<WARM, false>(hot, 5 + 8, put, after, taken)
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
    whole::<true, false>(hot, 2 + event_len, put, 0, taken)
}

/// Writes a blob with one packet, whose length is known beforehand: its time is padded to 8 bytes. `put`
/// writes the event, `event_len` bytes with its tag and its length. With the longest of those above, the
/// packet is below 128 bytes. `PAST`: at the time `limit`; else at the current time, which must exceed
/// `limit`.
///
/// ```text
/// HEADER | 0a LEN  50 SEQUENCE | event | 40 TIME | zeros
/// ```
#[inline(always)]
fn whole<const WARM: bool, const PAST: bool>(
    hot: &Hot,
    event_len: usize,
    put: impl FnOnce(&mut Raw),
    limit: u64,
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
    let tick = if PAST { Some((limit, 0)) } else { hot.tick::<WARM>(&taken) };
    let Some((now, _)) = tick else { return taken.put_back() };
    if !PAST && now <= limit || now >> 56 != 0 {
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
    // SAFETY: this thread's own lease.
    let last = if PAST { unsafe { taken.lease.own_last() } } else { now };
    taken.commit(commit, last, bytes, room);
    Some(now)
}
