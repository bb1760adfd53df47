//! Writes the same few events in both formats, small.fxt and small.pftrace, into the current directory.
//! Both open in Perfetto.

use std::fs;

use hairline_formats::Value;
use hairline_formats::fxt::{self, EventKind, StringRef, ThreadRef};
use hairline_formats::track_event::fields::clock;
use hairline_formats::track_event::{self as te, CounterValue, EventType, Interned};

const PID: u32 = 4242;
const TID: u32 = 4243;
const START: u64 = 1_000_000_000;

fn main() -> std::io::Result<()> {
    fs::write("small.fxt", in_fxt())?;
    fs::write("small.pftrace", in_track_event())
}

/// The arguments of the slice, but for null, which TrackEvent does not have.
const VALUES: [(&str, Value<'static>); 8] = [
    ("bytes", Value::U64(512)),
    ("negative", Value::I64(-5)),
    ("wide", Value::I64(i64::MIN)),
    ("peer", Value::Str("10.0.0.1:80")),
    ("empty", Value::Str("")),
    ("ratio", Value::F64(0.25)),
    ("ok", Value::Bool(true)),
    ("at", Value::Pointer(0xdead_beef)),
];

fn in_fxt() -> Vec<u8> {
    let mut out = Vec::new();
    let (pid, tid) = (u64::from(PID), u64::from(TID));
    fxt::magic(&mut out);
    fxt::provider_info(&mut out, PID, "small");
    fxt::provider_section(&mut out, PID);
    fxt::initialization(&mut out, 1_000_000_000);
    fxt::kernel_object(&mut out, fxt::KERNEL_OBJECT_PROCESS, pid, StringRef::Inline("small"), &[]);
    let process = (StringRef::Inline("process"), Value::Koid(pid));
    fxt::kernel_object(&mut out, fxt::KERNEL_OBJECT_THREAD, tid, StringRef::Inline("main"), &[process]);
    fxt::thread_record(&mut out, 1, pid, tid);
    fxt::string_record(&mut out, 1, "net");
    fxt::string_record(&mut out, 32_767, "request");

    let args: Vec<_> = VALUES.iter().map(|(name, value)| (StringRef::Inline(name), *value)).collect();
    let event = fxt::Event {
        kind: EventKind::DurationBegin,
        timestamp: START,
        thread: ThreadRef::Index(1),
        category: StringRef::Index(1),
        name: StringRef::Index(32_767),
        args: &[],
        payload: None,
    };
    fxt::event(&mut out, &fxt::Event { args: &args, ..event });
    let inline = ThreadRef::Inline { process: pid, thread: tid };
    let retry =
        fxt::Event { kind: EventKind::Instant, thread: inline, name: StringRef::Inline("retry"), ..event };
    fxt::event(&mut out, &fxt::Event { timestamp: START + 100, ..retry });
    for (after, value) in [(200, Value::I64(3)), (300, Value::F64(4.5))] {
        let (kind, args) = (EventKind::Counter, [(StringRef::Inline("value"), value)]);
        let name = StringRef::Inline("in flight");
        let sample =
            fxt::Event { kind, timestamp: START + after, name, args: &args, payload: Some(1), ..event };
        fxt::event(&mut out, &sample);
    }
    fxt::event(&mut out, &fxt::Event { kind: EventKind::DurationEnd, timestamp: START + 1000, ..event });
    // Tracks with units have no place in FXT, but may be embedded, in as many records as they need.
    fxt::blob(&mut out, StringRef::Inline("track_event"), fxt::BLOB_PERFETTO, &embedded());
    out
}

/// A trace of more bytes than one FXT record has room for.
fn embedded() -> Vec<u8> {
    let mut out = Vec::new();
    let pid = PID.cast_signed();
    te::process_descriptor(&mut out, 9, &te::ProcessTrack { uuid: 70, pid, name: "small", cmdline: &[] });
    start(&mut out, 9, 90);
    let tid = i64::from(TID) + 1;
    te::thread_descriptor(
        &mut out,
        9,
        &te::ThreadTrack { uuid: 90, parent_uuid: 70, pid, tid, name: "embedded" },
    );
    te::interned(&mut out, 9, &[Interned::EventName { iid: 1, name: "inside" }]);
    for _ in 0..2000 {
        for kind in [EventType::SliceBegin, EventType::SliceEnd] {
            te::event(&mut out, &te::Event { name: Some(te::Name::Iid(1)), ..te::Event::new(9, kind, 10) });
        }
    }
    out
}

const NOTHING: te::Event<'static> = te::Event::new(2, EventType::SliceEnd, 0);

fn start(out: &mut Vec<u8>, sequence: u32, track_uuid: u64) {
    let start = te::SequenceStart {
        sequence,
        first: true,
        dropped: false,
        track_uuid,
        extra_counters: &[],
        timestamp_ns: START,
    };
    te::sequence_start(out, &start);
}

fn in_track_event() -> Vec<u8> {
    let mut out = Vec::new();
    let pid = PID.cast_signed();
    te::trace_uuid(&mut out, 1, 0x0123_4567_89ab_cdef_0011_2233_4455_6677);
    te::clock_snapshot(
        &mut out,
        1,
        &[(clock::BOOTTIME, START), (clock::REALTIME, START), (clock::MONOTONIC, START)],
    );
    let process = te::ProcessTrack { uuid: 70, pid, name: "small", cmdline: &["small", "--fast"] };
    te::process_descriptor(&mut out, 1, &process);

    start(&mut out, 2, 71);
    let thread = te::ThreadTrack { uuid: 71, parent_uuid: 70, pid, tid: i64::from(TID), name: "main" };
    te::thread_descriptor(&mut out, 2, &thread);
    let counter =
        te::CounterTrack { unit: te::Unit::SizeBytes, ..te::CounterTrack::new(72, 70, "in flight") };
    te::counter_descriptor(&mut out, 2, &counter);
    let mut strings = vec![
        Interned::Category { iid: 1, name: "net" },
        Interned::EventName { iid: 1, name: "request" },
        Interned::EventName { iid: 200, name: "retry" },
    ];
    strings.extend((1..).zip(VALUES).map(|(iid, (name, _))| Interned::AnnotationName { iid, name }));
    te::interned(&mut out, 2, &strings);

    let annotations: Vec<_> =
        (1..).zip(VALUES).map(|(iid, (_, value))| (te::Name::Iid(iid), value)).collect();
    let name = |iid| Some(te::Name::Iid(iid));
    let request =
        te::Event { kind: EventType::SliceBegin, categories: &[te::Name::Iid(1)], name: name(1), ..NOTHING };
    te::event(&mut out, &te::Event { annotations: &annotations, ..request });
    te::event(&mut out, &te::Event { kind: EventType::Instant, name: name(200), timestamp: 100, ..request });
    for value in [CounterValue::Int(3), CounterValue::Double(4.5)] {
        let kind = EventType::Counter;
        te::event(
            &mut out,
            &te::Event { kind, track_uuid: Some(72), counter: Some(value), timestamp: 100, ..NOTHING },
        );
    }
    te::event(&mut out, &te::Event { timestamp: 700, ..NOTHING });
    // A loss: the state is told anew.
    let again = te::SequenceStart {
        sequence: 2,
        first: false,
        dropped: true,
        track_uuid: 71,
        extra_counters: &[],
        timestamp_ns: START + 2000,
    };
    te::sequence_start(&mut out, &again);
    te::interned(
        &mut out,
        2,
        &[Interned::Category { iid: 7, name: "net" }, Interned::EventName { iid: 7, name: "later" }],
    );
    te::event(&mut out, &te::Event { categories: &[te::Name::Iid(7)], name: name(7), ..request });
    te::event(&mut out, &te::Event { timestamp: 5, ..NOTHING });
    out
}
