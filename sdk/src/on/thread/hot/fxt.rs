//! FXT records on the hot path: whole words.

#![allow(unsafe_code)] // stores into the chunk

use std::marker::PhantomData;

use hairline_formats::{Value, fxt};

use crate::on::base::this_thread::Hot;
use crate::on::callsite::Key;
use crate::on::encode::{COUNTER_ID, FXT_THREAD};
use crate::on::event::argument::{EntryVisitor, Flat, Visitor};
use crate::on::event::position::{Position, TrackAction};
use crate::on::thread::hot::facts::place_in_fxt;
use crate::on::thread::hot::short::{self, Plan, ShortRecord, then};
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::hot::{Callsite, Values};
use crate::on::thread::open_scope::End;
use crate::on::thread::raw::{Leaf, settled_ref};
use crate::site::CallsiteKind;

/// Bytes of a record without arguments: header and time.
const PLAIN: i32 = 16;

/// Bytes reserved for the end of a scope.
pub(crate) const END: i32 = PLAIN;

/// Turns a begin's header into an end's when added to it.
pub(crate) const BEGIN_TO_END: u64 =
    fxt::layout::event::KIND.set(fxt::EventKind::DurationEnd as u64 - fxt::EventKind::DurationBegin as u64);

/// Turns an instant's header into a begin's when added to it.
pub(crate) const INSTANT_TO_BEGIN: u64 =
    fxt::layout::event::KIND.set(fxt::EventKind::DurationBegin as u64 - fxt::EventKind::Instant as u64);

/// Turns the header of a begin or an instant into that of an event in an async interval when added to it;
/// that of an end from its begin's.
#[inline(always)]
pub(crate) fn to_interval(happens: TrackAction) -> u64 {
    const fn change(from: fxt::EventKind, to: fxt::EventKind) -> u64 {
        fxt::layout::event::KIND.set(to as u64 - from as u64)
    }
    match happens {
        TrackAction::Begin => const { change(fxt::EventKind::DurationBegin, fxt::EventKind::AsyncBegin) },
        TrackAction::End => const { change(fxt::EventKind::DurationBegin, fxt::EventKind::AsyncEnd) },
        TrackAction::Instant => const { change(fxt::EventKind::Instant, fxt::EventKind::AsyncInstant) },
    }
}

fn reserved_for_end(kind: CallsiteKind) -> i32 {
    if kind == CallsiteKind::Scope { END } else { 0 }
}

/// A record without arguments, whose length is constant: `N` words follow the header and the time.
struct Words<H, const N: usize> {
    /// Returns the header. Called late, so that no register holds it meanwhile.
    header: H,
    /// The bytes that the begin of a scope reserves for its end.
    reserved: i32,
}

impl<H: FnOnce() -> u64, const N: usize> Words<H, N> {
    const LEN: i32 = PLAIN + 8 * N as i32;

    /// Writes the record at a time that `is_allowed`, with the words that `more` returns for the time.
    #[inline(always)]
    fn write<const WARM: bool>(
        self,
        hot: &Hot,
        room: i32,
        taken: Taken,
        is_allowed: impl FnOnce(u64) -> bool,
        more: impl FnOnce(u64) -> [u64; N],
    ) -> Option<u64> {
        let reserved = self.reserved;
        let room = room - Self::LEN - reserved;
        if room < 0 {
            return taken.put_back();
        }
        let commit = taken.last_commit();
        let Some((now, _)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
        if !is_allowed(now) {
            return taken.put_back();
        }
        // SAFETY: room for LEN bytes.
        let mut raw = unsafe { taken.raw(commit) };
        raw.word_of((self.header)(), 8);
        raw.word_of(now, 8);
        more(now).into_iter().for_each(|word| raw.word_of(word, 8));
        if reserved > 0 {
            taken.note_begin(commit, Self::LEN as u32, room, now, false);
        }
        taken.commit(commit, now, Self::LEN as u32, room);
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
    let record = Words { header: || callsite.fxt_header(), reserved: reserved_for_end(kind) };
    record.write::<false>(hot, room, taken, |_| true, |_| [])
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
    const MORE: u64 = fxt::layout::record::SIZE.set(2) + fxt::layout::event::ARGS.set(1);
    let record = Words { header: || callsite.fxt_header() + MORE, reserved: reserved_for_end(kind) };
    record.write::<false>(hot, room, taken, |_| true, |_| place_in_fxt(callsite))
}

/// Words of the record of a flow: header, time, id.
pub(crate) const FLOW: usize = 3;

/// Returns the record of a flow of this thread, which may have `begun` before.
#[inline(always)]
pub(crate) fn flow_words(now: u64, flow: u64, begun: bool) -> [u64; FLOW] {
    const fn header(kind: fxt::EventKind) -> u64 {
        fxt::event_header(kind, FLOW as u64, 0, FXT_THREAD as u64, 0, 0)
    }
    let header = if begun {
        const { header(fxt::EventKind::FlowStep) }
    } else {
        const { header(fxt::EventKind::FlowBegin) }
    };
    [header, now, flow]
}

/// Writes a begin and the record of a flow. `can_pass` begins the flow if it has not `begun`, or returns
/// false if the record cannot have the time that it is given.
#[inline(always)]
pub(crate) fn with_flow(
    hot: &Hot,
    callsite: &'static Callsite,
    flow: u64,
    begun: bool,
    can_pass: impl FnOnce(u64) -> bool,
    taken: Taken,
) -> Option<u64> {
    let record = Words { header: || callsite.fxt_header(), reserved: END };
    record.write::<false>(hot, taken.room(), taken, can_pass, |now| flow_words(now, flow, begun))
}

/// As [`with_flow`], an instant: a slice of no length, since a flow goes through slices.
#[inline(always)]
pub(crate) fn instant_with_flow(
    hot: &Hot,
    callsite: &'static Callsite,
    flow: u64,
    begun: bool,
    can_pass: impl FnOnce(u64) -> bool,
    taken: Taken,
) -> Option<u64> {
    let begin = || callsite.fxt_header() + INSTANT_TO_BEGIN;
    let record = Words { header: begin, reserved: 0 };
    record.write::<false>(hot, taken.room(), taken, can_pass, |now| {
        let [header, _, id] = flow_words(now, flow, begun);
        [header, now, id, begin() + BEGIN_TO_END, now]
    })
}

/// Writes a begin, an end or an instant in an async interval, without arguments. Its time must exceed that of
/// the position.
#[inline(always)]
pub(crate) fn in_interval(
    hot: &Hot,
    callsite: &'static Callsite,
    happens: TrackAction,
    Position { uuid, after, .. }: Position,
    taken: Taken,
) -> Option<u64> {
    let more = to_interval(happens) + fxt::layout::record::SIZE.set(1);
    let record = Words { header: || callsite.fxt_header() + more, reserved: 0 };
    record.write::<true>(hot, taken.room(), taken, |now| now > after, |_| [uuid.0])
}

/// Returns the header of an end without arguments. A function: a closure that names the callsite would load
/// it when it is made.
#[inline(always)]
pub(crate) fn end_header(end: &End) -> u64 {
    end.callsite.fxt_header() + BEGIN_TO_END
}

/// Writes the end of a scope. Returns false if nothing was written.
#[inline(always)]
pub(crate) fn end(hot: &Hot, end: &End, taken: Taken) -> bool {
    let commit = taken.last_commit();
    if !taken.is_innermost(commit, taken.room(), end.open.id) {
        return taken.put_back();
    }
    let Some((now, _)) = hot.tick::<false>(&taken) else { return taken.put_back() };
    // SAFETY: the begin reserved END bytes.
    unsafe { taken.raw(commit) }.two_words_of([end_header(end), now], 16);
    taken.commit_end(commit, now, PLAIN as u32);
    true
}

/// The most bytes of a record with arguments. The copy of a longer text should be a call.
const LONGEST: usize = 4096;

/// Writes an event with arguments on its thread's track.
#[inline(always)]
pub(crate) fn with_values<V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    values: &V,
    taken: Taken,
) -> Option<u64> {
    // Flat values need not fit: no more is known of them before they are read.
    let may_fail = V::COLD_ONLY;
    let payload = if kind == CallsiteKind::Counter { 8 } else { 0 };
    let mut most = Most(PLAIN as usize + payload);
    values.each(0, &mut most);
    let reserved = reserved_for_end(kind);
    let are_many = values.count() > fxt::MAX_ARGS || callsite.keys().len() != values.count();
    let room = most.0 as i32 + if may_fail { FLAT as i32 } else { 0 } + reserved;
    if are_many || most.0 > LONGEST || taken.room() < room {
        return taken.put_back();
    }
    let plan = Plan { reserved, strings: None, may_fail };
    short::write(hot, taken, plan, |record: ShortRecord| {
        then();
        let mut put = PutValues { record, keys: callsite.keys(), count: 0, left: FLAT, fits: true };
        settled_ref(values).each(0, &mut put);
        let PutValues { mut record, count, fits, .. } = put;
        if may_fail && (!fits || count > fxt::MAX_ARGS as u64) {
            return None;
        }
        if kind == CallsiteKind::Counter {
            record.raw.word_of(COUNTER_ID, 8);
        }
        Some(record.close(callsite.fxt_header() + fxt::layout::event::ARGS.set(count)))
    })
}

/// Adds the most bytes that the arguments may have.
struct Most(usize);

impl Visitor<'_> for Most {
    #[inline(always)]
    fn visit(&mut self, _: usize, value: Value<'_>) {
        self.0 += 16 + value.text_len().unwrap_or(0);
    }

    #[inline(always)]
    fn visit_flat<F: Flat>(&mut self, _: usize, _: &F) {}
}

/// The most bytes of all arrays and maps of an event.
const FLAT: usize = 512;

/// Writes arguments.
struct PutValues {
    record: ShortRecord,
    keys: &'static [Key],
    /// Their number.
    count: u64,
    /// The bytes that flat values may still have, and whether all of them had room.
    left: usize,
    fits: bool,
}

impl PutValues {
    #[inline(always)]
    fn key(&self, at: usize) -> &'static Key {
        // SAFETY: an event has as many values as its callsite has keys: `with_values` compares.
        unsafe { self.keys.get_unchecked(at) }
    }
}

impl Visitor<'_> for PutValues {
    #[inline(always)]
    fn visit(&mut self, at: usize, value: Value<'_>) {
        if value == Value::Null {
            return;
        }
        self.key(at).indexed().put(&mut Leaf(&mut self.record.raw), &value);
        self.count += 1;
    }

    /// Each entry is an argument, with the path to it as its name: `list[0]` or `map.name`.
    #[inline(always)]
    fn visit_flat<F: Flat>(&mut self, at: usize, flat: &F) {
        let most = if F::IS_MAP { fxt::MAX_ARGS } else { 10 }; // one digit
        let key = self.key(at).name();
        if !(1..=most).contains(&flat.entry_count()) || !(1..=Leaf::LONGEST).contains(&key.len()) {
            self.fits = false;
            return;
        }
        let before = self.count;
        let mut entries = PutEntries::<F> { put: self, key, index: 0, flat: PhantomData };
        flat.each_entry(&mut entries);
        self.fits &= self.count != before; // a map of nulls is "{}"
    }
}

/// Writes the entries of an array or a map.
struct PutEntries<'p, F> {
    put: &'p mut PutValues,
    key: &'static str,
    index: u32,
    flat: PhantomData<F>,
}

impl<F: Flat> EntryVisitor for PutEntries<'_, F> {
    #[inline(always)]
    fn entry(&mut self, name: &str, value: Value<'_>) {
        let Some(value) = value.in_flat(F::IS_MAP) else { return };
        let text_len = value.text_len().unwrap_or(0);
        let most = 32 + self.key.len() + name.len() + text_len; // header, value, the padding of both texts
        if most > self.put.left || name.len() > Leaf::LONGEST || text_len > Leaf::LONGEST {
            self.put.fits = false;
            return;
        }
        self.put.left -= most;
        self.put.count += 1;
        let (key, index) = (self.key.as_bytes(), self.index);
        let out = &mut Leaf(&mut self.put.record.raw);
        if F::IS_MAP {
            let put = |out: &mut Leaf<'_>| out.stream_of_two(key, b'.', name.as_bytes());
            fxt::put_with_name(out, key.len() + 1 + name.len(), put, &value);
        } else {
            const INDEX: u32 = u32::from_le_bytes(*b"[0]\0");
            let put = |out: &mut Leaf<'_>| out.stream_with_end(key, INDEX + (index << 8), 3);
            fxt::put_with_name(out, key.len() + 3, put, &value);
            self.index += 1;
        }
    }
}
