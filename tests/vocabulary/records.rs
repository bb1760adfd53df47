//! Records and packets that no macro reaches, written with the formats' crate: what trace_processor shows of
//! them.
//!
//! Where it shows nothing a test says so: the record is passed over without a complaint, and what follows it
//! is read.

mod data;
mod events;
mod fxt;
mod packets;
mod scheduling;
mod tracks;

use hairline_formats::fxt::{Event, EventKind, StringRef, ThreadRef};
use hairline_formats::fxt::{event, initialization, magic, provider_info};
use hairline_formats::track_event::{self as te, EventType, Name, SequenceId, TrackUuid};
use hairline_tests::judge::{load_bytes, rows};

/// The thread of the events here: tid 9 of pid 7.
const THREAD: ThreadRef = ThreadRef::Inline { process: 7, thread: 9 };

/// Instants and slices of threads.
const SLICES: &str = "select s.ts, s.dur, s.category, s.name, p.pid, t.tid from slice s join thread_track tt on s.track_id = tt.id \
     join thread t using (utid) left join process p using (upid) order by s.ts";

/// The arguments of slices: name, key, type, and the value as it is stored and shown.
const ARGUMENTS: &str = "select s.name, a.key, a.value_type, coalesce(a.int_value, a.string_value, a.real_value), a.display_value \
     from slice s join args a using (arg_set_id) order by s.ts, a.id";

fn inline(text: &str) -> StringRef<'_> {
    StringRef::Inline(text)
}

/// An event of [`THREAD`], of the category "c".
fn of_thread(kind: EventKind, timestamp: u64, name: &str) -> Event<'_> {
    let category = StringRef::Inline("c");
    Event { kind, timestamp, thread: THREAD, category, name: inline(name), args: &[], payload: None }
}

/// An FXT trace of one provider, whose ticks are ns.
fn fxt_trace(records: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    magic(&mut out);
    provider_info(&mut out, 1, "provider");
    initialization(&mut out, 1_000_000_000);
    records(&mut out);
    out
}

/// An event of a `TrackEvent` track, on its sequence 1 but of none of its state: its time is
/// `CLOCK_BOOTTIME`.
fn on_track(track: u64, kind: EventType, timestamp: u64) -> te::Event<'static> {
    let clock_id = Some(te::fields::clock::BOOTTIME);
    te::Event {
        clock_id,
        needs_state: false,
        track_uuid: Some(TrackUuid(track)),
        ..te::Event::new(SequenceId(1), kind, timestamp)
    }
}

/// A slice of a track, from `begin` to `end`.
fn slice(out: &mut Vec<u8>, track: u64, name: &str, (begin, end): (u64, u64)) {
    te::event(
        out,
        &te::Event { name: Some(Name::Text(name)), ..on_track(track, EventType::SliceBegin, begin) },
    );
    te::event(out, &on_track(track, EventType::SliceEnd, end));
}

/// A moment on a track.
fn instant(out: &mut Vec<u8>, track: u64, name: &str, timestamp: u64) {
    te::event(
        out,
        &te::Event { name: Some(Name::Text(name)), ..on_track(track, EventType::Instant, timestamp) },
    );
}

/// A track of this name, under no other.
fn root(out: &mut Vec<u8>, uuid: u64, name: &str) {
    let uuid = TrackUuid(uuid);
    te::custom_descriptor(out, SequenceId(1), &te::CustomTrack { uuid, name, ..te::CustomTrack::default() });
}

/// The state of sequence 1, whose own track is `track`: its clock begins at 1000.
fn start(out: &mut Vec<u8>, track_uuid: u64, extra_counters: &[u64]) {
    let (first, dropped, timestamp_ns) = (true, false, 1000);
    let (sequence, track_uuid) = (SequenceId(1), TrackUuid(track_uuid));
    let extra_counters: Vec<_> = extra_counters.iter().copied().map(TrackUuid).collect();
    te::sequence_start(
        out,
        &te::SequenceStart {
            sequence,
            first,
            dropped,
            track_uuid,
            extra_counters: &extra_counters,
            timestamp_ns,
        },
    );
}

/// Requires that the importer passes over `records` without a word, and reads what follows: that every table
/// is as it would be without them.
#[track_caller]
fn require_passed_over(records: impl FnOnce(&mut Vec<u8>)) {
    let judge = |records: &dyn Fn(&mut Vec<u8>)| {
        let trace = fxt_trace(|out| {
            records(out);
            event(out, &of_thread(EventKind::Instant, 50, "after"));
        });
        let everything = [
            SLICES,
            "select key, display_value from args",
            "select * from counter",
            "select name from track",
            "select * from android_logs",
            "select * from stack_profile_mapping",
            "select * from stack_profile_frame",
            "select * from perf_sample",
            "select tid, name from thread",
            "select pid, name from process",
        ];
        load_bytes(&trace, &everything)
    };
    let mut these = Vec::new();
    records(&mut these);
    let verdict = judge(&|out| out.extend(&these));
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "50\t0\tc\tafter\t7\t9");
    assert_eq!(verdict.results, judge(&|_| {}).results);
}
