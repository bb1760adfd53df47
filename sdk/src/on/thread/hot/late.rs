//! The end of a scope with few and short arguments.
//!
//! Each format has a function, as for [short values](super::continue_seen). What these do not write is
//! left to `composed.rs`.

use hairline_formats::{Value, fxt, track_event};
use hairline_shm::Lease;

use crate::on::base::this_thread::Hot;
use crate::on::callsite::Epoch;
use crate::on::encode::track_event::message::{END_MESSAGE, END_MESSAGE_LEN};
use crate::on::thread::end_arguments::{Number, ShortText};
use crate::on::thread::hot::packet::TIME_LEN;
use crate::on::thread::hot::short::{self, Packet, Plan, ShortRecord, then};
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::hot::{FXT_END, TRACK_EVENT_END, fxt as fxt_hot};
use crate::on::thread::open_scope::End;
use crate::on::thread::raw::{Leaf, settled_ref};
use crate::options::Format;

/// The most bytes of a key: with two of them, a packet has less than 128.
const LONGEST_KEY: usize = 32;

/// The arguments of an end. Nothing in them is code of the program.
pub(crate) trait Late {
    const COUNT: usize;
    /// The most bytes of their values in FXT, and of all but their keys in a packet.
    const FXT_VALUES: usize;
    const ANNOTATIONS: usize;

    /// Calls `show` with each argument.
    fn each<'s>(&'s self, show: impl FnMut(&'static str, Value<'s>));

    /// Whether they have at most as many bytes as above, and their keys [`LONGEST_KEY`].
    fn are_fit(&self) -> bool;

    fn put_fxt(&self, out: &mut Leaf<'_>);

    fn put_annotations(&self, out: &mut Leaf<'_>);
}

impl<const N: usize> Late for [Number; N] {
    const COUNT: usize = N;
    const FXT_VALUES: usize = 8 * N;
    const ANNOTATIONS: usize = track_event::LONGEST_NUMBER * N;

    #[inline(always)]
    fn each<'s>(&'s self, mut show: impl FnMut(&'static str, Value<'s>)) {
        for (key, number) in self {
            show(key, number.value());
        }
    }

    #[inline(always)]
    fn are_fit(&self) -> bool {
        self.iter().all(|(key, _)| is_key(key))
    }

    #[inline(always)]
    fn put_fxt(&self, out: &mut Leaf<'_>) {
        for (key, number) in self {
            fxt::put_number(out, key, &number.value());
        }
    }

    #[inline(always)]
    fn put_annotations(&self, out: &mut Leaf<'_>) {
        for (key, number) in self {
            track_event::put_number(out, key, &number.value());
        }
    }
}

impl Late for ShortText {
    const COUNT: usize = 1;
    const FXT_VALUES: usize = Self::LONGEST.next_multiple_of(8);
    const ANNOTATIONS: usize = track_event::SHORT_TEXT + Self::LONGEST;

    #[inline(always)]
    fn each<'s>(&'s self, mut show: impl FnMut(&'static str, Value<'s>)) {
        show(self.key, Value::Str(self.text()));
    }

    #[inline(always)]
    fn are_fit(&self) -> bool {
        is_key(self.key) && !self.text().is_empty()
    }

    #[inline(always)]
    fn put_fxt(&self, out: &mut Leaf<'_>) {
        let put_key = |out: &mut Leaf<'_>| fxt::PutWords::stream(out, self.key.as_bytes());
        fxt::put_with_name(out, self.key.len(), put_key, &Value::Str(self.text()));
    }

    #[inline(always)]
    fn put_annotations(&self, out: &mut Leaf<'_>) {
        track_event::put_short_text(out, self.key, self.text());
    }
}

#[inline(always)]
fn is_key(key: &str) -> bool {
    (1..=LONGEST_KEY).contains(&key.len())
}

/// Ends a recorded scope. `fxt` or `packet` writes the record, in tail position. If nothing is written, as
/// for each slice that is timed, `slow` follows.
#[inline(always)]
pub(crate) fn end_or<L: Late>(
    hot: &'static Hot,
    end: &End,
    arguments: &L,
    fxt: fn(&'static Hot, &End, &L, Taken),
    packet: fn(&'static Hot, &End, &L, Taken),
    slow: fn(&End, &L),
) {
    let number = end.open.recorded_in.number();
    let Some(taken) = hot.take_number(Lease::end_epoch, number) else { return slow(end, arguments) };
    match Epoch::format_of(number) {
        Format::Fxt => fxt(hot, end, arguments, taken),
        Format::TrackEvent => packet(hot, end, arguments, taken),
    }
}

/// Writes the record of [`end_or`] in FXT. Returns false if nothing was written.
///
/// ```text
/// HEADER | TIME | arguments
/// ```
#[inline(always)]
pub(crate) fn in_fxt<L: Late>(hot: &Hot, end: &End, arguments: &L, taken: Taken) -> bool {
    let most = const { 16 + L::COUNT * (8 + LONGEST_KEY) + L::FXT_VALUES } as i32;
    let (room, commit) = (taken.room(), taken.last_commit());
    if !arguments.are_fit() || !taken.is_innermost(commit, room, end.open.id) || room < most - FXT_END {
        return taken.put_back();
    }
    let plan = Plan { reserved: -FXT_END, strings: None, may_fail: false };
    let written = short::write(hot, taken, plan, |mut record: ShortRecord| {
        then();
        settled_ref(arguments).put_fxt(&mut Leaf(&mut record.raw));
        let count = fxt::layout::event::ARGS.set(L::COUNT as u64);
        Some(record.close(fxt_hot::end_header(end) + count))
    });
    written.is_some()
}

/// Writes the record of [`end_or`] as a packet. Returns false if nothing was written.
///
/// ```text
/// 0a LEN  50 SEQUENCE  40 DELTA | 68 02 5a L  48 02 | annotations
/// ```
#[inline(always)]
pub(crate) fn in_packet<L: Late>(hot: &Hot, end: &End, arguments: &L, taken: Taken) -> bool {
    // Prefix, time, message, annotations.
    let most = const {
        let most = 8 + TIME_LEN + END_MESSAGE_LEN + L::COUNT * LONGEST_KEY + L::ANNOTATIONS;
        assert!(most < 0x80);
        most as i32
    };
    let (room, commit) = (taken.room(), taken.last_commit());
    if !arguments.are_fit() || !taken.is_innermost(commit, room, end.open.id) || room < most - TRACK_EVENT_END
    {
        return taken.put_back();
    }
    let plan = Plan { reserved: -TRACK_EVENT_END, strings: None, may_fail: false };
    let written = short::write(hot, taken, plan, |mut packet: Packet<1>| {
        packet.put_message([END_MESSAGE, 0], END_MESSAGE_LEN);
        settled_ref(arguments).put_annotations(&mut Leaf(&mut packet.raw));
        packet.close(false)
    });
    written.is_some()
}
