//! The hot path of slices and instants on tracks in FXT, which has no record for them: a TrackEvent packet in
//! a blob, which needs no other packet.
//!
//! ```text
//! HEADER | 0a LEN  50 SEQUENCE | 5a L  48 TYPE  b2 01 l CATEGORY  ba 01 l NAME  58 TRACK | 40 TIME | zeros
//! ```
//!
//! The zeros fill the last word. An end has neither category nor name. Each length is one byte: an event with
//! longer texts takes the cold path.

use hairline_formats::{fxt, proto, track_event};
use track_event::EventType;
use track_event::fields::track_event as event;

use crate::on::base::this_thread::Hot;
use crate::on::event::position::{Position, TrackAction};
use crate::on::thread::hot::Callsite;
use crate::on::thread::hot::packet::{TRACK, put_track};
use crate::on::thread::hot::taken::Taken;

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
    if texts_len > LONGEST_TEXTS {
        return taken.put_back();
    }
    let Some((now, _)) = hot.tick::<true>(&taken) else { return taken.put_back() };
    if now <= position.after || now >> 56 != 0 {
        return taken.put_back();
    }
    let (time, time_len) = proto::varint_up_to_8(now);
    let prefix_len = hot.prefix_len.get();
    let event_len = 2 + texts_len + TRACK;
    let body = (prefix_len - 2) + 2 + event_len + 1 + time_len;
    let packet_len = 2 + body;
    let words = 1 + packet_len.div_ceil(8);
    let bytes = 8 * words as u32;
    let room = taken.room() - bytes as i32;
    if room < 0 {
        return taken.put_back();
    }
    // SAFETY: room for `bytes`.
    let mut raw = unsafe { taken.raw(taken.last_commit()) };
    raw.word_of(fxt::blob_header(words, packet_len, fxt::BLOB_PERFETTO), 8);
    raw.word_of(0x0a | (body as u64) << 8, 2);
    raw.word_of(hot.prefix.get() >> 16, prefix_len - 2);
    raw.word_of(0x5a | (event_len as u64) << 8, 2);
    raw.word_of(0x48 | (kind as u64) << 8, 2);
    if happens != TrackAction::End {
        for (field, text) in [(event::CATEGORIES, texts[0]), (event::NAME, texts[1])] {
            raw.word_of(tag_of_text(field) | (text.len() as u64) << 16, TEXT);
            raw.copy(text.as_bytes());
        }
    }
    put_track(&mut raw, position.uuid);
    raw.word_of(0x40, 1);
    raw.word_of(time, time_len);
    raw.word_of(0, bytes as usize - 8 - packet_len);
    let commit = taken.last_commit();
    taken.commit(commit, now, bytes, room);
    true
}
