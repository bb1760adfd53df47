//! FXT records on the hot path: whole words.

#![allow(unsafe_code)] // stores into the chunk

use std::marker::PhantomData;
use std::sync::atomic::{Ordering, compiler_fence};

use hairline_formats::{Value, fxt};
use hairline_shm::Commit;

use crate::on::base::this_thread::Hot;
use crate::on::callsite::Key;
use crate::on::encode::{COUNTER_ID, FXT_THREAD};
use crate::on::event::argument::{EntryVisitor, Flat, Visitor};
use crate::on::event::position::{Position, TrackAction};
use crate::on::thread::hot::beside::Beside;
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::hot::{Callsite, Values};
use crate::on::thread::open_scope::End;
use crate::on::thread::raw::{Leaf, Raw, settled, settled_ref};
use crate::site::CallsiteKind;

/// Bytes of a record without arguments: header and time.
const PLAIN: i32 = 16;

/// Bytes reserved for the end of a scope.
pub(crate) const END: i32 = PLAIN;

/// Turns a begin's header into an end's when added to it.
pub(crate) const BEGIN_TO_END: u64 =
    fxt::layout::event::KIND.set(fxt::EventKind::DurationEnd as u64 - fxt::EventKind::DurationBegin as u64);

fn reserved_for_end(kind: CallsiteKind) -> i32 {
    if kind == CallsiteKind::Scope { END } else { 0 }
}

/// Writes a begin or an instant without arguments. Unless `WARM`, the callsite's strings are in the sequence.
#[inline(always)]
pub(crate) fn plain<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    taken: Taken,
) -> Option<u64> {
    let room = taken.room() - PLAIN - reserved_for_end(kind);
    if room < 0 || WARM && !hot.has_seen::<true>(callsite) {
        return taken.put_back();
    }
    let commit = taken.last_commit();
    let Some((now, _)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    // SAFETY: room for PLAIN bytes.
    unsafe { put_plain(&taken, commit, callsite.fxt_header(), now) };
    if kind == CallsiteKind::Scope {
        taken.note_begin(commit, PLAIN as u32, room, now, false);
    }
    taken.commit(commit, now, PLAIN as u32, room);
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
    use fxt::layout::{argument, string_ref};
    /// The name of the argument.
    const SOURCE: [u8; 8] = *b"source\0\0";
    const ARGUMENT: u64 = argument::TYPE.set(fxt::layout::ArgumentType::String as u64)
        | argument::SIZE.set(2)
        | argument::NAME.set(string_ref::INLINE.set(1) | string_ref::LENGTH.set(6));
    const LEN: i32 = PLAIN + 16;
    const MORE: u64 = fxt::layout::record::SIZE.set(2) + fxt::layout::event::ARGS.set(1);
    let room = room - LEN - reserved_for_end(kind);
    if room < 0 {
        return taken.put_back();
    }
    let commit = taken.last_commit();
    let Some((now, _)) = hot.tick::<false>(&taken) else { return taken.put_back() };
    // SAFETY: room for LEN bytes.
    let mut raw = unsafe { taken.raw(commit) };
    fxt::PutWords::word(&mut raw, callsite.fxt_header() + MORE);
    fxt::PutWords::word(&mut raw, now);
    // The id has an index: `FxtSequence::set_strings_written`.
    fxt::PutWords::word(&mut raw, ARGUMENT | argument::STRING.set(callsite.location_id().iid()));
    fxt::PutWords::word(&mut raw, u64::from_le_bytes(SOURCE));
    if kind == CallsiteKind::Scope {
        taken.note_begin(commit, LEN as u32, room, now, false);
    }
    taken.commit(commit, now, LEN as u32, room);
    Some(now)
}

/// The header of a flow record of this thread.
const fn flow_header(kind: fxt::EventKind) -> u64 {
    fxt::event_header(kind, 3, 0, FXT_THREAD as u64, 0, 0)
}

/// Bytes of the record of a flow: header, time, id.
const FLOW: i32 = 24;

/// Writes the record of a flow.
#[inline(always)]
fn put_flow(raw: &mut Raw, now: u64, flow: u64, begun: bool) {
    let header =
        if begun { flow_header(fxt::EventKind::FlowStep) } else { flow_header(fxt::EventKind::FlowBegin) };
    for word in [header, now, flow] {
        fxt::PutWords::word(raw, word);
    }
}

/// Writes a begin and the record of a flow. `can_pass` begins the flow if it has not `begun`, or returns
/// false if the record cannot have the time that it is given.
#[inline(always)]
pub(crate) fn with_flow<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    flow: u64,
    begun: bool,
    can_pass: impl FnOnce(u64) -> bool,
    taken: Taken,
) -> Option<u64> {
    const LEN: i32 = PLAIN + FLOW;
    let room = taken.room() - LEN - END;
    if room < 0 || !hot.has_seen::<WARM>(callsite) {
        return taken.put_back();
    }
    let Some((now, _)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    if !can_pass(now) {
        return taken.put_back();
    }
    let commit = taken.last_commit();
    // SAFETY: room for LEN bytes.
    let mut raw = unsafe { taken.raw(commit) };
    fxt::PutWords::word(&mut raw, callsite.fxt_header());
    fxt::PutWords::word(&mut raw, now);
    put_flow(&mut raw, now, flow, begun);
    taken.note_begin(commit, LEN as u32, room, now, false);
    taken.commit(commit, now, LEN as u32, room);
    Some(now)
}

#[inline(always)]
pub(crate) fn end<const WARM: bool>(hot: &Hot, end: &End, taken: Taken) -> bool {
    let commit = taken.last_commit();
    if !taken.is_innermost(commit, taken.room(), end.open.id) {
        return taken.put_back();
    }
    let Some((now, _)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    // SAFETY: the begin reserved END bytes.
    unsafe { put_plain(&taken, commit, end.callsite.fxt_header() + BEGIN_TO_END, now) };
    taken.commit_end(commit, now, PLAIN as u32);
    true
}

/// Writes two words.
#[inline(always)]
unsafe fn put_plain(taken: &Taken, commit: Commit, header: u64, now: u64) {
    // SAFETY: by the contract.
    let mut raw = unsafe { taken.raw(commit) };
    fxt::PutWords::word(&mut raw, header);
    fxt::PutWords::word(&mut raw, now);
}

/// Writes an event with short arguments on its thread's track. Its size is stored after what it counts.
#[inline(always)]
pub(crate) fn with_short_values<V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    values: &V,
    taken: Taken,
) -> Option<u64> {
    // Flat values need not fit: no more is known of them before they are read.
    let flat = V::COLD_ONLY;
    let payload = if kind == CallsiteKind::Counter { 8 } else { 0 };
    let mut most = Most { bytes: PLAIN as usize + payload, longest: 0 };
    values.each(0, &mut most);
    let reserved = reserved_for_end(kind);
    let are_many = values.count() > fxt::MAX_ARGS || callsite.keys().len() != values.count();
    if are_many || most.longest > Leaf::LONGEST {
        return taken.put_back();
    }
    let room = most.bytes as i32 + if flat { FLAT as i32 } else { 0 } + reserved;
    if taken.room() < room {
        return taken.put_back();
    }
    let Some((now, _)) = hot.tick::<false>(&taken) else { return taken.put_back() };
    if !flat {
        taken.lease.set_last(now);
    }
    let commit = taken.last_commit();
    // SAFETY: room for `most` bytes.
    let start = settled(unsafe { taken.raw(commit) }.position());
    if kind == CallsiteKind::Scope {
        taken.note_at_limit::<false>(start, commit, reserved, now);
    }
    // As in `plain` of a packet: each step after the other.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: room for `most` bytes.
    let mut raw = unsafe { Raw::at(start.add(8)) };
    fxt::PutWords::word(&mut raw, now);
    compiler_fence(Ordering::SeqCst);
    let mut put = PutShort { raw, keys: callsite.keys(), count: 0, left: FLAT, fits: true };
    settled_ref(values).each(0, &mut put);
    let PutShort { mut raw, count, fits, .. } = put;
    if flat && (!fits || count > fxt::MAX_ARGS as u64) {
        return taken.put_back();
    }
    if kind == CallsiteKind::Counter {
        fxt::PutWords::word(&mut raw, COUNTER_ID);
    }
    let bytes = raw.distance(start);
    let header = callsite.fxt_header()
        + ((bytes as u64 - PLAIN as u64) << 1) // the size in words, from bit 4 on
        + fxt::layout::event::ARGS.set(count);
    // SAFETY: the first word of the record.
    unsafe { Raw::at(start) }.word_of(header, 8);
    compiler_fence(Ordering::SeqCst);
    if flat {
        taken.commit_and_reserve(now, bytes as u32, reserved);
        return Some(now);
    }
    Some(taken.commit_timed(bytes as u32, reserved))
}

/// Adds the most bytes that the arguments may have.
struct Most {
    bytes: usize,
    /// The length of the longest text.
    longest: usize,
}

impl Visitor<'_> for Most {
    #[inline(always)]
    fn visit(&mut self, _: usize, value: Value<'_>) {
        self.bytes += 16;
        if let Some(len) = value.text_len() {
            self.longest = self.longest.max(len);
            self.bytes += len;
        }
    }

    #[inline(always)]
    fn visit_flat<F: Flat>(&mut self, _: usize, _: &F) {}
}

/// The most bytes of all arrays and maps of an event.
const FLAT: usize = 512;

/// Writes short arguments.
struct PutShort {
    raw: Raw,
    keys: &'static [Key],
    /// Their number.
    count: u64,
    /// The bytes that flat values may still have, and whether all of them had room.
    left: usize,
    fits: bool,
}

impl PutShort {
    #[inline(always)]
    fn key(&self, at: usize) -> &'static Key {
        // SAFETY: an event has as many values as its callsite has keys: `with_short_values` compares.
        unsafe { self.keys.get_unchecked(at) }
    }
}

impl Visitor<'_> for PutShort {
    #[inline(always)]
    fn visit(&mut self, at: usize, value: Value<'_>) {
        if value == Value::Null {
            return;
        }
        self.key(at).indexed().put(&mut Leaf(&mut self.raw), &value);
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
    put: &'p mut PutShort,
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
        let out = &mut Leaf(&mut self.put.raw);
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

#[inline(always)]
pub(crate) fn with_values<const WARM: bool>(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    facts: impl Beside,
    values: &impl Values,
    taken: Taken,
) -> Option<u64> {
    let payload = (kind == CallsiteKind::Counter).then_some(COUNTER_ID);
    let begins = kind == CallsiteKind::Scope;
    let more = More { header: callsite.fxt_header(), facts, payload, begins, after: None };
    record::<WARM>(hot, callsite.keys(), &more, values, taken)
}

/// Writes a begin, an end or an instant in an async interval.
#[inline(always)]
pub(crate) fn in_interval(
    hot: &Hot,
    callsite: &'static Callsite,
    happens: TrackAction,
    position: Position,
    values: &impl Values,
    taken: Taken,
) -> bool {
    const fn change(from: fxt::EventKind, to: fxt::EventKind) -> u64 {
        fxt::layout::event::KIND.set(to as u64 - from as u64)
    }
    let change = match happens {
        TrackAction::Begin => const { change(fxt::EventKind::DurationBegin, fxt::EventKind::AsyncBegin) },
        TrackAction::End => const { change(fxt::EventKind::DurationBegin, fxt::EventKind::AsyncEnd) },
        TrackAction::Instant => const { change(fxt::EventKind::Instant, fxt::EventKind::AsyncInstant) },
    };
    let more = More {
        header: callsite.fxt_header() + change,
        facts: (),
        payload: Some(position.uuid.0),
        begins: false,
        after: Some(position.after),
    };
    record::<true>(hot, callsite.keys(), &more, values, taken).is_some()
}

/// The parts of a record besides its time and its arguments.
struct More<F> {
    /// The header of the record without arguments and payload.
    header: u64,
    facts: F,
    payload: Option<u64>,
    /// Whether the record is a begin that reserves the room of its end.
    begins: bool,
    /// The time that the record's time must exceed.
    after: Option<u64>,
}

#[inline(always)]
fn record<const WARM: bool>(
    hot: &Hot,
    keys: &'static [Key],
    more: &More<impl Beside>,
    values: &impl Values,
    taken: Taken,
) -> Option<u64> {
    let (facts, fact_words) = more.facts.fxt_arguments();
    if values.count() + facts as usize > fxt::MAX_ARGS {
        return taken.put_back();
    }
    let own_words = if more.payload.is_some() { 3 } else { 2 };
    let mut size = Size { words: own_words + fact_words, arguments: facts };
    values.each(0, &mut size);
    let Size { words, arguments } = size;
    if words > fxt::MAX_RECORD_WORDS {
        return taken.put_back();
    }
    let flow = values.flow();
    let bytes = words as i32 * 8 + if flow.is_some() { FLOW } else { 0 };
    let room = taken.room() - bytes - if more.begins { more.facts.end_size(hot, END) } else { 0 };
    if room < 0 {
        return taken.put_back();
    }
    let Some((now, _)) = hot.tick::<WARM>(&taken) else { return taken.put_back() };
    if more.after.is_some_and(|after| now <= after) {
        return taken.put_back();
    }
    let commit = taken.last_commit();
    // SAFETY: room for `words`.
    let mut raw = unsafe { taken.raw(commit) };
    let header = more.header
        + fxt::layout::record::SIZE.set(words as u64 - 2)
        + fxt::layout::event::ARGS.set(arguments);
    fxt::PutWords::word(&mut raw, header);
    fxt::PutWords::word(&mut raw, now);
    values.each(0, &mut Put { raw: &mut raw, keys });
    more.facts.put_fxt(&mut raw);
    if let Some(payload) = more.payload {
        fxt::PutWords::word(&mut raw, payload);
    }
    if let Some((flow, begun)) = flow {
        put_flow(&mut raw, now, flow, begun);
    }
    if more.begins {
        taken.note_begin(commit, bytes as u32, room, now, false);
    }
    taken.commit(commit, now, bytes as u32, room);
    Some(now)
}

/// Counts the words of the arguments.
struct Size {
    words: usize,
    arguments: u64,
}

impl Visitor<'_> for Size {
    #[inline(always)]
    fn visit(&mut self, _: usize, value: Value<'_>) {
        if matches!(value, Value::Str(text) if text.len() > fxt::MAX_STRING) {
            self.words = fxt::MAX_RECORD_WORDS + 1; // the cold path cuts it, with a mark
        } else if value != Value::Null {
            self.words += fxt::argument_words(fxt::StringRef::Index(0), &value);
            self.arguments += 1;
        }
    }
}

/// Writes the arguments.
struct Put<'r> {
    raw: &'r mut Raw,
    keys: &'static [Key],
}

impl Visitor<'_> for Put<'_> {
    #[inline(always)]
    fn visit(&mut self, at: usize, value: Value<'_>) {
        if value != Value::Null {
            let name = fxt::StringRef::Index(self.keys[at].id().0 as u16);
            fxt::put_argument(self.raw, name, &value);
        }
    }
}
