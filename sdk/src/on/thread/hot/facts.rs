//! The facts that a session records beside each event: the place in the source, and the thread's CPU time.
//!
//! In such a session no callsite has its "seen" bit where the hot path and the warm path look. So plain
//! events come here, and other sessions pay one question, beyond the 1,024th callsite ([`Hot::is_unusual`]).
//! The place is a constant of the callsite, interned at the first hit of each sequence. The cold path writes
//! the same records.

#![allow(unsafe_code)] // stores into the chunk

use hairline_formats::proto::varint_len;
use hairline_formats::track_event::fields::track_event as event;
use hairline_formats::{Value, fxt, proto};
use hairline_shm::Lease;

use crate::on::base::clock;
use crate::on::base::this_thread::Hot;
use crate::on::callsite::Callsite;
use crate::on::encode::track_event::location::location_iid;
use crate::on::encode::track_event::message::{END_MESSAGE, END_MESSAGE_LEN, LENGTH_AT};
use crate::on::thread::hot::beside::Beside;
use crate::on::thread::hot::fxt::BEGIN_TO_END;
use crate::on::thread::hot::packet::{TIME_LEN, time};
use crate::on::thread::open_scope::End;
use crate::on::thread::raw::Raw;
use crate::options::Format;
use crate::site::CallsiteKind;

/// The facts of one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventFacts {
    /// The id of the place in the source; 0 without it.
    location: u64,
    /// The thread's CPU time, in ns.
    cpu_time: Option<u64>,
}

/// The names of these facts as FXT arguments.
const CPU_AT_BEGIN: fxt::StringRef<'static> = fxt::StringRef::Inline("cpu_begin_ns");
const CPU_AT_END: fxt::StringRef<'static> = fxt::StringRef::Inline("cpu_end_ns");
const SOURCE: fxt::StringRef<'static> = fxt::StringRef::Inline("source");

/// `60`: the tag of a CPU time in an event.
const CPU_TAG: u64 = proto::tag(event::EXTRA_COUNTER_VALUES, proto::WireType::Varint) as u64;
/// `90 02`: the tag of a place in the source.
const LOCATION_TAG: u64 = proto::tag(event::SOURCE_LOCATION_IID, proto::WireType::Varint) as u64;

impl EventFacts {
    /// Returns the facts of an event on its thread's own track, which happens now. `None` if the hot path
    /// cannot write them.
    #[inline(always)]
    pub(crate) fn now(
        hot: &Hot,
        callsite: &'static Callsite,
        kind: CallsiteKind,
        format: Format,
    ) -> Option<Self> {
        let facts = hot.facts();
        let location = match (facts.location && kind != CallsiteKind::Counter, format) {
            (false, _) => 0,
            (true, Format::Fxt) => u64::from(callsite.location_id().index().filter(|index| *index != 0)?),
            (true, _) => location_iid(callsite),
        };
        let has_cpu_time = facts.cpu_time && kind == CallsiteKind::Scope;
        Some(Self { location, cpu_time: has_cpu_time.then(clock::thread_time) })
    }

    fn cpu_value(self) -> Option<Value<'static>> {
        self.cpu_time.map(Value::U64)
    }

    fn location_value(self) -> Option<Value<'static>> {
        (self.location != 0).then_some(Value::Interned { iid: self.location, text: "" })
    }
}

impl Beside for EventFacts {
    #[inline(always)]
    fn end_size(self, hot: &Hot, _: i32) -> i32 {
        hot.end_size.get()
    }

    #[inline(always)]
    fn fxt_arguments(self) -> (u64, usize) {
        let of = |name, value: Option<Value<'_>>| {
            value.map_or((0, 0), |value| (1, fxt::argument_words(name, &value)))
        };
        let (cpu, location) = (of(CPU_AT_BEGIN, self.cpu_value()), of(SOURCE, self.location_value()));
        (cpu.0 + location.0, cpu.1 + location.1)
    }

    #[inline(always)]
    fn put_fxt(self, raw: &mut Raw) {
        if let Some(value) = self.cpu_value() {
            fxt::put_argument(&mut raw.short(), CPU_AT_BEGIN, &value);
        }
        if let Some(value) = self.location_value() {
            fxt::put_argument(&mut raw.short(), SOURCE, &value);
        }
    }

    #[inline(always)]
    fn fields_len(self) -> usize {
        let cpu = self.cpu_time.map_or(0, |time| 1 + varint_len(time));
        cpu + if self.location == 0 { 0 } else { 2 + varint_len(self.location) }
    }

    #[inline(always)]
    fn put_fields(self, raw: &mut Raw) {
        if let Some(time) = self.cpu_time {
            put_cpu_time(raw, time);
        }
        if self.location != 0 {
            raw.word_of(LOCATION_TAG >> 7 << 8 | LOCATION_TAG & 0x7f | 0x80, 2);
            raw.varint(self.location);
        }
    }
}

fn put_cpu_time(raw: &mut Raw, time: u64) {
    raw.word_of(CPU_TAG, 1);
    raw.varint(time);
}

/// Writes the end of a recorded scope with the thread's CPU time, if that is the innermost. Returns false if
/// nothing was written.
#[inline(never)]
pub(crate) fn end(hot: &'static Hot, end: &End) -> bool {
    let epoch = end.open.epoch();
    if hot.detailed_end_epoch.get() != epoch.get() {
        return false;
    }
    // The lease's own epoch: the drain thread clears that of a recalled chunk.
    let Some(taken) = hot.take(Lease::epoch, epoch) else { return false };
    let (room, commit) = (taken.room(), taken.last_commit());
    if !taken.is_innermost(commit, room, end.open.id) {
        return taken.put_back();
    }
    let cpu_time = clock::thread_time();
    let Some((now, delta)) = hot.tick::<true>(&taken) else { return taken.put_back() };
    // SAFETY: the begin reserved `end_size` bytes, as many as the longest end has.
    let mut raw = unsafe { taken.raw(commit) };
    let start = raw.position();
    if epoch.format() == Format::Fxt {
        let value = Value::U64(cpu_time);
        let words = fxt::argument_words(CPU_AT_END, &value) as u64;
        let more = fxt::layout::record::SIZE.set(words) + fxt::layout::event::ARGS.set(1);
        raw.two_words_of([end.callsite.fxt_header() + BEGIN_TO_END + more, now], 16);
        fxt::put_argument(&mut raw.short(), CPU_AT_END, &value);
    } else {
        let len = 1 + varint_len(cpu_time);
        raw.word_of(hot.prefix.get() + (((END_MESSAGE_LEN + len) as u64) << 8), hot.prefix_len.get());
        raw.word_of(END_MESSAGE + ((len as u64) << (8 * LENGTH_AT)), END_MESSAGE_LEN);
        put_cpu_time(&mut raw, cpu_time);
        raw.word_of(time(delta), TIME_LEN);
    }
    let bytes = raw.distance(start);
    let room = room + hot.end_size.get() - bytes as i32;
    taken.commit(commit, now, bytes as u32, room);
    true
}
