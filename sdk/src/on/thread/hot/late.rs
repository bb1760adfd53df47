//! The end of a scope with numbers as arguments.
//!
//! Each format has a function, as for [short values](super::with_short_values). Whatever these do not write is
//! left to `composed.rs`.

#![allow(unsafe_code)] // stores into the chunk

use std::sync::atomic::{Ordering, compiler_fence};

use hairline_formats::{fxt, track_event};
use hairline_shm::Lease;

use crate::on::base::this_thread::Hot;
use crate::on::callsite::Epoch;
use crate::on::encode::track_event::message::{END_MESSAGE, END_MESSAGE_LEN};
use crate::on::thread::end_arguments::Number;
use crate::on::thread::hot::packet::{ShortPacket, TIME_LEN};
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::hot::{FXT_END, TRACK_EVENT_END, fxt as fxt_hot};
use crate::on::thread::open_scope::End;
use crate::on::thread::raw::{Leaf, Raw, settled, settled_ref};
use crate::options::Format;

/// The most bytes of a key: with two of them, a packet has less than 128.
const LONGEST_KEY: usize = 32;

/// Ends a recorded scope. `fxt` or `packet` writes the record, in tail position. If nothing is written, as for
/// each slice that is timed, `slow` follows.
#[inline(always)]
pub(crate) fn end_or<const COUNT: usize>(
    hot: &'static Hot,
    end: &End,
    numbers: &[Number; COUNT],
    fxt: fn(&'static Hot, &End, &[Number; COUNT], Taken),
    packet: fn(&'static Hot, &End, &[Number; COUNT], Taken),
    slow: fn(&End, &[Number; COUNT]),
) {
    let number = end.open.recorded_in.number();
    let Some(taken) = hot.take_number(Lease::end_epoch, number) else { return slow(end, numbers) };
    match Epoch::format_of(number) {
        Format::Fxt => fxt(hot, end, numbers, taken),
        Format::TrackEvent => packet(hot, end, numbers, taken),
    }
}

#[inline(always)]
fn are_fit(numbers: &[Number]) -> bool {
    numbers.iter().all(|(key, _)| (1..=LONGEST_KEY).contains(&key.len()))
}

/// Writes the record of [`end_or`] in FXT. Returns false if nothing was written.
///
/// ```text
/// HEADER | TIME | arguments
/// ```
#[inline(always)]
pub(crate) fn in_fxt<const COUNT: usize>(
    hot: &Hot,
    end: &End,
    numbers: &[Number; COUNT],
    taken: Taken,
) -> bool {
    let most = const { 16 + COUNT * (16 + LONGEST_KEY) } as i32;
    let (room, commit) = (taken.room(), taken.last_commit());
    if !are_fit(numbers) || !taken.is_innermost(commit, room, end.open.id) || room < most - FXT_END {
        return taken.put_back();
    }
    let Some((now, _)) = hot.tick::<false>(&taken) else { return taken.put_back() };
    taken.lease.set_last(now);
    // SAFETY: room for `most` bytes, with what the begin reserved.
    let start = settled(unsafe { taken.raw(taken.last_commit()) }.position());
    // Each step after the other, as in `packet::plain`.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: as above.
    let mut raw = unsafe { Raw::at(start.add(8)) };
    raw.word_of(now, 8);
    compiler_fence(Ordering::SeqCst);
    for (key, number) in settled_ref(numbers) {
        fxt::put_number(&mut Leaf(&mut raw), key, &number.value());
    }
    let bytes = raw.distance(start);
    let header = end.callsite.fxt_header()
        + fxt_hot::BEGIN_TO_END
        + ((bytes as u64 - 16) << 1) // the size in words, from bit 4 on
        + fxt::layout::event::ARGS.set(COUNT as u64);
    // SAFETY: the first word of the record.
    unsafe { Raw::at(start) }.word_of(header, 8);
    compiler_fence(Ordering::SeqCst);
    taken.commit_timed(bytes as u32, -FXT_END);
    true
}

/// Writes the record of [`end_or`] as a packet. Returns false if nothing was written.
///
/// ```text
/// 0a LEN  50 SEQUENCE  40 DELTA | 68 02 5a L  48 02 | annotations
/// ```
#[inline(always)]
pub(crate) fn in_packet<const COUNT: usize>(
    hot: &Hot,
    end: &End,
    numbers: &[Number; COUNT],
    taken: Taken,
) -> bool {
    // Prefix, time, message, annotations.
    let most = const {
        let most = 8 + TIME_LEN + END_MESSAGE_LEN + COUNT * (track_event::LONGEST_NUMBER + LONGEST_KEY);
        assert!(most < 0x80);
        most as i32
    };
    let (room, commit) = (taken.room(), taken.last_commit());
    if !are_fit(numbers) || !taken.is_innermost(commit, room, end.open.id) || room < most - TRACK_EVENT_END {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<false>(&taken) else { return taken.put_back() };
    taken.lease.set_last(now);
    // SAFETY: room for `most` bytes, less than 128, with what the begin reserved.
    let mut packet = unsafe { ShortPacket::begin(taken.raw(taken.last_commit())) };
    compiler_fence(Ordering::SeqCst);
    packet.put_head(hot, delta);
    let raw = packet.open_message([END_MESSAGE, 0], END_MESSAGE_LEN);
    compiler_fence(Ordering::SeqCst);
    for (key, number) in settled_ref(numbers) {
        track_event::put_number(&mut Leaf(raw), key, &number.value());
    }
    let len = packet.close();
    compiler_fence(Ordering::SeqCst);
    taken.commit_timed(len, -TRACK_EVENT_END);
    true
}
