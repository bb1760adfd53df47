//! Records that are composed of encoded bytes: nested values, long names, and whatever else the functions
//! that write in place leave.
//!
//! What an event has beside its callsite and its name was encoded before (`encoded.rs`), when the thread was
//! not busy: code of the program may have run for it. Here the chunk writer is taken, the bytes are copied,
//! and the lengths in front of them are stored last. Nothing depends on the types of the arguments, so a
//! program has each of these functions once.
//!
//! The events of a thread without a counter, slices that are timed, and the events of a session that records
//! facts beside each event come here too.

#![allow(unsafe_code)] // stores into the chunk

use hairline_formats::proto::{PutBytes, varint_len};
use hairline_formats::{fxt, proto, track_event};
use hairline_shm::Lease;

use crate::on::base::this_thread::{self, AS_INTERVAL, Facts, Hot};
use crate::on::callsite::{Callsite, Epoch, fence_constants};
use crate::on::encode::track_event::message::{
    END_MESSAGE, END_MESSAGE_LEN, FIELDS_AT, LENGTH_AT, own_name_len,
};
use crate::on::encode::{COUNTER_ID, MAX_NAME};
use crate::on::event::argument::Values;
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::position::{InFxt, Position, TrackAction};
use crate::on::thread::hot::encoded::{Encoded, Keyed};
use crate::on::thread::hot::fxt as fxt_hot;
use crate::on::thread::hot::packet::{self, FLOW, TIME_LEN, TRACK};
use crate::on::thread::hot::short::fields_of;
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::open_scope::OpenScope;
use crate::on::thread::raw::{Leaf, Raw};
use crate::options::Format;
use crate::site::CallsiteKind;

/// The options of an event that a composed record can have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options<'a> {
    /// A name made at run time.
    pub(crate) name: Option<&'a str>,
    pub(crate) flow: Option<&'a Flow>,
    /// The position on a track that is not the thread's own.
    pub(crate) position: Option<Position>,
}

impl<'a> Options<'a> {
    /// Returns these options of an event at the callsite, on its thread's own track. `None` if there are
    /// others.
    pub(crate) fn of(callsite: &'static Callsite, extras: &Extras<'a>) -> Option<Self> {
        let flow = match *extras.flows.as_slice() {
            [] => None,
            [(Some(flow), false)] if callsite.kind() != CallsiteKind::Counter => Some(flow),
            _ => return None,
        };
        extras.correlation.is_none().then_some(Self { name: extras.name, flow, position: None })
    }

    /// Returns the options for the cold path.
    pub(crate) fn extras(options: Option<&Self>) -> Extras<'a> {
        let extras = Extras { name: options.and_then(|options| options.name), ..Extras::new() };
        match options.and_then(|options| options.flow) {
            Some(flow) => extras.flow(flow),
            None => extras,
        }
    }
}

/// Writes the record of an event. Returns its time, `None` if nothing was written. Not inlined: the cold
/// path, which follows then, must not have these buffers on the stack.
#[inline(never)]
pub(crate) fn event<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    options: Option<&Options<'_>>,
) -> Option<u64> {
    let keys = callsite.keys();
    if keys.len() != values.count() {
        return None;
    }
    fence_constants(); // `epoch` was read from the callsite's word
    let mut encoded = Encoded::of(callsite, epoch.format());
    values.each(0, &mut Keyed { keys, encoded: &mut encoded });
    match options {
        None => encoded_event(callsite, epoch, &mut encoded),
        Some(options) => encoded_with(callsite, epoch, &mut encoded, options),
    }
}

/// As [`event`], without arguments and options.
#[inline(never)]
pub(crate) fn plain(callsite: &'static Callsite, epoch: Epoch) -> Option<u64> {
    fence_constants(); // as there
    let options = Options { name: None, flow: None, position: None };
    if callsite.keys().is_empty() {
        put(callsite, epoch, &mut Encoded::new(epoch.format()), options)
    } else {
        None
    }
}

/// Without options: the compiler omits what looks for them.
#[inline(never)]
fn encoded_event(callsite: &'static Callsite, epoch: Epoch, encoded: &mut Encoded) -> Option<u64> {
    put(callsite, epoch, encoded, Options { name: None, flow: None, position: None })
}

#[inline(never)]
fn encoded_with(
    callsite: &'static Callsite,
    epoch: Epoch,
    encoded: &mut Encoded,
    options: &Options<'_>,
) -> Option<u64> {
    put(callsite, epoch, encoded, *options)
}

#[inline(always)]
fn put(
    callsite: &'static Callsite,
    epoch: Epoch,
    encoded: &mut Encoded,
    options: Options<'_>,
) -> Option<u64> {
    let what = match (callsite.kind(), options.position) {
        (CallsiteKind::End, _) | (CallsiteKind::Counter, Some(_)) => return None,
        (CallsiteKind::Scope, Some(position)) => What::OnTrack(TrackAction::Begin, position),
        (CallsiteKind::Instant, Some(position)) => What::OnTrack(TrackAction::Instant, position),
        (CallsiteKind::Scope, None) => What::Begin,
        (CallsiteKind::Instant, None) => What::Instant,
        // The track of a counter is that of its name.
        (CallsiteKind::Counter, None) if options.name.is_some() => return None,
        (CallsiteKind::Counter, None) => What::Counter,
    };
    // The cold path ends an empty slice that has a name of its own.
    if options.name.is_some() && options.flow.is_some() && callsite.kind() == CallsiteKind::Instant {
        return None;
    }
    // The cold path cuts a long name, and gives an event an empty one.
    if options.name.is_some_and(|name| !(1..=MAX_NAME).contains(&name.len())) {
        return None;
    }
    let hot = this_thread::hot();
    // In a session with facts, the cold path writes all events on other tracks.
    let facts = if options.position.is_none() { hot.facts() } else { Facts::NONE };
    if facts != Facts::NONE {
        encoded.put_facts(facts, callsite);
    }
    let (name, arguments) = (options.name.unwrap_or(""), encoded.get()?);
    let record = Record { callsite, what, name, arguments, flow: options.flow, facts };
    record.write(hot, epoch.get())
}

/// Writes the end of a recorded scope, if that is the innermost and not timed. Returns false if nothing was
/// written.
#[inline(never)]
pub(crate) fn end(callsite: &'static Callsite, open: OpenScope, encoded: &mut Encoded) -> bool {
    put_end(callsite, open, encoded)
}

/// As [`end`], without arguments.
#[inline(never)]
pub(crate) fn plain_end(callsite: &'static Callsite, open: OpenScope) -> bool {
    put_end(callsite, open, &mut Encoded::new(open.epoch().format()))
}

#[inline(always)]
fn put_end(callsite: &'static Callsite, open: OpenScope, encoded: &mut Encoded) -> bool {
    let hot = this_thread::hot();
    let number = open.recorded_in.number();
    let has_cpu_time = hot.detailed_end_epoch.get() == number;
    if has_cpu_time {
        encoded.put_end_cpu_time();
    }
    let Some(arguments) = encoded.get() else { return false };
    let what = What::End { id: open.id, has_cpu_time };
    let record = Record { callsite, what, name: "", arguments, flow: None, facts: Facts::NONE };
    record.write(hot, number).is_some()
}

#[derive(Clone, Copy)]
enum What {
    Begin,
    /// The end of the begin with this id.
    End {
        id: u32,
        has_cpu_time: bool,
    },
    Instant,
    Counter,
    /// An event on a track that is not the thread's own. No room is reserved for the end of a slice there.
    OnTrack(TrackAction, Position),
}

impl What {
    /// Returns the bytes that the record takes from the room beside its own: a begin reserves its end, and an
    /// end uses what its begin has reserved.
    #[inline(always)]
    fn reserves(self, hot: &Hot) -> i32 {
        match self {
            Self::Begin => hot.end_size.get(),
            Self::End { .. } => -hot.end_size.get(),
            Self::Instant | Self::Counter | Self::OnTrack(..) => 0,
        }
    }

    /// Returns what turns the header of the callsite's FXT records into that of this one, when added to it,
    /// and the word behind the arguments.
    #[inline(always)]
    fn in_fxt(self) -> (u64, Option<u64>) {
        match self {
            Self::Begin | Self::Instant => (0, None),
            Self::End { .. } => (fxt_hot::BEGIN_TO_END, None),
            Self::Counter => (0, Some(COUNTER_ID)),
            Self::OnTrack(happens, position) => (fxt_hot::to_interval(happens), Some(position.uuid.0)),
        }
    }

    #[inline(always)]
    fn position(self) -> Option<Position> {
        if let Self::OnTrack(_, position) = self { Some(position) } else { None }
    }
}

/// A record that is about to be written.
struct Record<'a> {
    callsite: &'static Callsite,
    what: What,
    /// The name made at run time; "" if the record has the name of its callsite.
    name: &'a str,
    /// The bytes of [`Encoded`] arguments, and their number.
    arguments: (&'a [u8], u64),
    flow: Option<&'a Flow>,
    /// The facts beside a begin or an instant, which the arguments have.
    facts: Facts,
}

impl Record<'_> {
    /// Writes the record in the session whose epoch has this number. Returns its time, `None` if nothing was
    /// written.
    #[inline(always)]
    fn write(&self, hot: &Hot, number: u32) -> Option<u64> {
        let format = Epoch::format_of(number);
        // Before the clock is read.
        let flow = self.flow.map(|flow| (flow, flow.state().time_in(number)));
        let is_plain_end = matches!(self.what, What::End { has_cpu_time: false, .. });
        let taken = hot.take_number(if is_plain_end { Lease::end_epoch } else { Lease::epoch }, number)?;
        // First: a callsite without constants has never been seen.
        if !self.may_follow(hot, &taken, number, format) {
            return taken.put_back();
        }
        let reserved = self.what.reserves(hot);
        let most = if format == Format::Fxt { self.len_in_fxt() } else { self.len_in_packet(hot) + 2 };
        if taken.room() - reserved < most as i32 {
            return taken.put_back();
        }
        let Some((now, delta)) = hot.tick::<true>(&taken) else { return taken.put_back() };
        let is_early = self.what.position().is_some_and(|position| now <= position.after);
        // Last: a flow that begins here must be in the trace.
        if is_early || flow.is_some_and(|(flow, time)| !can_pass(flow, time, number, now)) {
            return taken.put_back();
        }
        let commit = taken.last_commit();
        // SAFETY: room for `most` bytes.
        let mut raw = unsafe { taken.raw(commit) };
        let start = raw.position();
        if matches!(self.what, What::Begin) {
            taken.note_at_limit(true, start, commit, reserved, now);
        }
        if format == Format::Fxt {
            if matches!(self.what, What::Begin) && !self.name.is_empty() {
                // Without a name of its own, the begin's record has the strings of the end.
                taken.note_strings_at_limit(start, reserved, self.callsite.fxt_header());
            }
            self.put_fxt(&mut raw, now);
            if let Some((flow, time)) = flow {
                let words = fxt_hot::flow_words(now, flow.id(), time.is_some());
                words.into_iter().for_each(|word| raw.word_of(word, 8));
                if self.is_empty_slice() {
                    let end = fxt_hot::INSTANT_TO_BEGIN + fxt_hot::BEGIN_TO_END;
                    raw.two_words_of([self.callsite.fxt_header() + end, now], 16);
                }
            }
        } else {
            self.put_packet(hot, &mut raw, delta, if most < 0x80 + 2 { 1 } else { 2 });
        }
        let bytes = raw.distance(start) as u32;
        let room = taken.room() - bytes as i32 - reserved; // of no store's place
        taken.commit(commit, now, bytes, room);
        Some(now)
    }

    /// Whether the sequence has all that the record refers to, and the end is that of the innermost scope.
    #[inline(always)]
    fn may_follow(&self, hot: &Hot, taken: &Taken, number: u32, format: Format) -> bool {
        if let What::End { id, has_cpu_time } = self.what {
            // An end follows its begin in the same sequence.
            return (hot.detailed_end_epoch.get() == number) == has_cpu_time
                && taken.is_innermost(taken.last_commit(), taken.room(), id);
        }
        if let Some(Position { uuid, in_fxt, .. }) = self.what.position() {
            let described = match (format, in_fxt) {
                (Format::TrackEvent, _) => uuid.0,
                (Format::Fxt, InFxt::Interval) => uuid.0 | AS_INTERVAL,
                (Format::Fxt, _) => return false,
            };
            if hot.track_cell(uuid).get() != described {
                return false;
            }
        }
        if self.facts == Facts::NONE {
            hot.has_seen::<true>(self.callsite)
        } else {
            // An event of a signal handler may have begun another session since.
            hot.facts() == self.facts && hot.has_seen_detailed(self.callsite)
        }
    }

    /// Whether it is an instant in FXT that a flow passes through: a slice of no length.
    #[inline(always)]
    fn is_empty_slice(&self) -> bool {
        matches!(self.what, What::Instant) && self.flow.is_some()
    }

    /// Returns the bytes of the record in FXT.
    #[inline(always)]
    fn len_in_fxt(&self) -> usize {
        let end = if self.is_empty_slice() { 16 } else { 0 };
        let flow = if self.flow.is_some() { 8 * fxt_hot::FLOW + end } else { 0 };
        let id = if self.what.in_fxt().1.is_some() { 8 } else { 0 };
        16 + self.name.len().next_multiple_of(8) + self.arguments.0.len() + id + flow
    }

    /// ```text
    /// HEADER | TIME | name | arguments | id of a counter or an interval
    /// ```
    #[inline(always)]
    fn put_fxt(&self, raw: &mut Raw, now: u64) {
        use fxt::layout::string_ref;
        const NAME: fxt::layout::Field = fxt::layout::event::NAME;
        let start = raw.position();
        let (arguments, count) = self.arguments;
        let (change, id) = self.what.in_fxt();
        let mut header = self.callsite.fxt_header() + change;
        if self.is_empty_slice() {
            header += fxt_hot::INSTANT_TO_BEGIN;
        }
        if !self.name.is_empty() {
            header -= NAME.set(NAME.get(header));
            // Not `StringRef::bits`, which cuts a long string.
            header += NAME.set(string_ref::INLINE.set(1) | string_ref::LENGTH.set(self.name.len() as u64));
        }
        raw.two_words_of([header, now], 16);
        fxt::PutWords::stream(&mut Leaf(raw), self.name.as_bytes());
        Leaf(raw).bytes(arguments);
        if let Some(id) = id {
            raw.word_of(id, 8);
        }
        let words = raw.distance(start) as u64 / 8;
        header += fxt::layout::record::SIZE.set(words - 2) + fxt::layout::event::ARGS.set(count);
        // SAFETY: the first word of the record.
        unsafe { Raw::at(start) }.word_of(header, 8);
    }

    /// Returns the bytes of the packet if each length has one byte. Each may have one more.
    #[inline(always)]
    fn len_in_packet(&self, hot: &Hot) -> usize {
        let name = match self.name.len() {
            0 => 0,
            len => 2 + varint_len(len as u64) + len,
        };
        let track = if self.what.position().is_some() { TRACK } else { 0 };
        let flow = if self.flow.is_some() { FLOW } else { 0 };
        let more = name + track + flow + self.arguments.0.len();
        hot.prefix_len.get() + FIELDS_AT + self.fields().1 + more + TIME_LEN
    }

    /// ```text
    /// 0a LEN  50 SEQUENCE | 68 02 5a L  48 TYPE  18 CATEGORY | 50 NAME or ba 01 l name | 58 TRACK |
    ///     f9 02 FLOW | arguments | 40 DELTA
    /// ```
    ///
    /// LEN and L have `length` bytes each: one if the packet is shorter than 128 bytes, else two, padded.
    #[inline(always)]
    fn put_packet(&self, hot: &Hot, raw: &mut Raw, delta: u64, length: usize) {
        const NAME_TAG: u64 =
            proto::tag(track_event::fields::track_event::NAME, proto::WireType::Bytes) as u64;
        let (message, fields_len) = self.fields();
        let start = raw.position();
        raw.word_of(0x0a, 1 + length);
        raw.word_of(hot.prefix.get() >> 16, hot.prefix_len.get() - 2);
        raw.word_of(message[0], LENGTH_AT + length);
        let event = raw.position();
        raw.two_words_of(fields_of(message), fields_len);
        if !self.name.is_empty() {
            raw.word_of(NAME_TAG >> 7 << 8 | NAME_TAG & 0x7f | 0x80, 2);
            raw.varint(self.name.len() as u64);
            Leaf(raw).bytes(self.name.as_bytes());
        }
        if let Some(position) = self.what.position() {
            packet::put_track(raw, position.uuid);
        }
        if let Some(flow) = self.flow {
            packet::put_flow(raw, flow.id());
        }
        Leaf(raw).bytes(self.arguments.0);
        let event_len = raw.distance(event);
        raw.word_of(packet::time(delta), TIME_LEN);
        let bytes = raw.distance(start);
        // SAFETY: both lengths are of this record, and have `length` bytes.
        unsafe {
            Raw::set_length(event, length, event_len);
            Raw::set_length(start.add(1 + length), length, bytes - 1 - length);
        }
    }

    /// Returns the constant part of the message, and the length of its fields without a name that is
    /// replaced.
    #[inline(always)]
    fn fields(&self) -> ([u64; 2], usize) {
        if matches!(self.what, What::End { .. }) {
            return ([END_MESSAGE, 0], END_MESSAGE_LEN - FIELDS_AT);
        }
        let (message, len) = self.callsite.message();
        let replaced = if self.name.is_empty() { 0 } else { own_name_len(self.callsite) };
        (message, len - FIELDS_AT - replaced)
    }
}

/// Whether an event may have the time `now`, with this flow, whose other events had `time`. Begins the flow
/// if it has not begun.
#[inline(always)]
fn can_pass(flow: &Flow, time: Option<u64>, number: u32, now: u64) -> bool {
    match time {
        Some(time) if now <= time => false,
        Some(_) => {
            flow.state().set_known(number, now);
            true
        }
        None => flow.state().begin(number, now),
    }
}
