//! FXT of every record type, as other programs write it.

use hairline_convert::TraceFormat;
use hairline_formats::Value;
use hairline_formats::fxt::{
    self, ContextSwitch, Event, EventKind, LargeBlob, ProcessRef, StringRef, ThreadRef, ThreadState,
    ThreadWakeup,
};
use hairline_tests::equal::Shown;
use hairline_tests::judge::load_bytes;

use crate::convert;

pub(crate) const MAIN: ThreadRef = ThreadRef::Index(1);
pub(crate) const WORKER: ThreadRef = ThreadRef::Inline { process: 7, thread: 9 };

pub(crate) struct Trace(pub(crate) Vec<u8>);

impl Trace {
    pub(crate) fn new(ticks_per_second: u64) -> Self {
        let mut out = Vec::new();
        fxt::magic(&mut out);
        fxt::provider_info(&mut out, 1, "handmade");
        fxt::initialization(&mut out, ticks_per_second);
        fxt::thread_record(&mut out, 1, 7, 8);
        Self(out)
    }

    pub(crate) fn event(&mut self, kind: EventKind, timestamp: u64, name: &str, payload: u64) -> &mut Self {
        self.on(MAIN, kind, timestamp, name, payload, &[])
    }

    pub(crate) fn on(
        &mut self,
        thread: ThreadRef,
        kind: EventKind,
        timestamp: u64,
        name: &str,
        payload: u64,
        args: &[(StringRef<'_>, Value<'_>)],
    ) -> &mut Self {
        let (category, name) = (StringRef::Inline("c"), StringRef::Inline(name));
        let payload = Some(payload);
        fxt::event(&mut self.0, &Event { kind, timestamp, thread, category, name, args, payload });
        self
    }

    pub(crate) fn named(&mut self) -> &mut Self {
        let process = (StringRef::Inline("process"), Value::Koid(7));
        fxt::kernel_object(&mut self.0, fxt::KERNEL_OBJECT_PROCESS, 7, StringRef::Inline("app"), &[]);
        fxt::kernel_object(&mut self.0, fxt::KERNEL_OBJECT_THREAD, 8, StringRef::Inline("main"), &[process]);
        fxt::kernel_object(
            &mut self.0,
            fxt::KERNEL_OBJECT_THREAD,
            9,
            StringRef::Inline("worker"),
            &[process],
        );
        self
    }

    /// Requires that the trace shows the same when it is written again, and gives what it shows.
    #[track_caller]
    fn stays_the_same(&self) -> Shown {
        let (converted, report) = convert(&self.0, TraceFormat::Fxt);
        assert!(report.is_empty(), "{report:?}");
        let shown = Shown::of_clean(&self.0);
        shown.require_equal(&Shown::of_clean(&converted));
        shown
    }
}

const SCHEDULING: [&str; 3] = [
    "select ts, dur, ucpu, end_state, tid from sched join thread using (utid) order by ts, ucpu",
    "select ts, dur, state, tid from thread_state join thread using (utid) order by ts, tid",
    "select tid, thread.name, pid, process.name from thread left join process using (upid) order by 1, 3",
];

#[test]
fn all_event_types_stay_the_same() {
    let mut trace = Trace::new(1_000_000_000);
    trace
        .event(EventKind::DurationBegin, 100, "outer", 0)
        .event(EventKind::Instant, 110, "moment", 0)
        .event(EventKind::DurationComplete, 120, "whole", 140)
        .event(EventKind::DurationComplete, 120, "within", 130)
        .event(EventKind::FlowBegin, 125, "flow", 77)
        .on(WORKER, EventKind::DurationBegin, 150, "other", 0, &[])
        .on(WORKER, EventKind::FlowStep, 160, "flow", 77, &[])
        .on(WORKER, EventKind::DurationEnd, 170, "other", 0, &[])
        .event(EventKind::FlowEnd, 180, "flow", 77)
        .event(EventKind::DurationEnd, 200, "outer", 0)
        .event(EventKind::AsyncBegin, 210, "async", 5)
        .event(EventKind::AsyncBegin, 220, "async", 6)
        .event(EventKind::AsyncInstant, 225, "async moment", 5)
        .on(WORKER, EventKind::AsyncEnd, 230, "async", 5, &[])
        .event(EventKind::AsyncEnd, 240, "async", 6)
        .event(EventKind::AsyncBegin, 250, "async", 6)
        .event(EventKind::AsyncEnd, 260, "async", 6);
    let shown = trace.stays_the_same();
    assert_eq!((shown.table("slices").len(), shown.table("flows").len()), (9, 2));
    trace.named().stays_the_same();
}

#[test]
fn async_slices_of_one_number_nest() {
    let mut trace = Trace::new(1_000_000_000);
    trace
        .event(EventKind::AsyncBegin, 10, "a", 5)
        .event(EventKind::AsyncBegin, 20, "a", 5)
        .event(EventKind::AsyncEnd, 30, "a", 5)
        .event(EventKind::AsyncEnd, 40, "a", 5);
    trace.stays_the_same();
}

#[test]
fn each_value_of_a_counter_has_its_track() {
    let mut trace = Trace::new(1_000_000_000);
    let args = [
        (StringRef::Inline("in"), Value::I64(-3)),
        (StringRef::Inline("out"), Value::F64(0.5)),
        (StringRef::Inline("sum"), Value::U64(u64::MAX)),
    ];
    trace
        .on(MAIN, EventKind::Counter, 10, "bytes", 3, &args)
        .on(MAIN, EventKind::Counter, 20, "bytes", 4, &args[..1])
        .on(WORKER, EventKind::Counter, 30, "bytes", 3, &args[1..2])
        .on(ThreadRef::Inline { process: 1, thread: 2 }, EventKind::Counter, 40, "bytes", 3, &args[..2]);
    let shown = trace.stays_the_same();
    assert_eq!(shown.table("counters").len(), 7);
}

#[test]
fn arguments_of_every_type_stay_the_same() {
    let mut trace = Trace::new(1_000_000_000);
    fxt::string_record(&mut trace.0, 3, "by number");
    let args = [
        (StringRef::Index(3), Value::Null),
        (StringRef::Inline("bool"), Value::Bool(true)),
        (StringRef::Inline("i32"), Value::I64(-1)),
        (StringRef::Inline("i64"), Value::I64(i64::MIN)),
        (StringRef::Inline("u32"), Value::U64(u64::from(u32::MAX))),
        (StringRef::Inline("u64"), Value::U64(u64::MAX)),
        (StringRef::Inline("f64"), Value::F64(0.25)),
        (StringRef::Inline("text"), Value::Str("é")),
        (StringRef::Inline("empty"), Value::Str("")),
        (StringRef::Inline("indexed"), Value::Interned { iid: 3, text: "by number" }),
        (StringRef::Inline("pointer"), Value::Pointer(0x1234)),
        (StringRef::Inline("koid"), Value::Koid(99)),
        (StringRef::Inline("blob"), Value::Blob(&[1, 2, 3])),
        (StringRef::Inline("é"), Value::I64(1)),
        (StringRef::Empty, Value::I64(2)),
    ];
    trace.on(MAIN, EventKind::DurationBegin, 10, "a", 0, &args).on(
        MAIN,
        EventKind::DurationEnd,
        20,
        "a",
        0,
        &args[2..4],
    );
    let shown = trace.stays_the_same();
    assert!(shown.table("arguments").len() >= 14, "{shown:?}");
}

#[test]
fn ticks_of_any_clock_become_nanoseconds() {
    for ticks_per_second in [1_000, 24_000_000, 1_000_000_000, 3_000_000_000] {
        let mut trace = Trace::new(ticks_per_second);
        trace
            .event(EventKind::DurationBegin, 24_000_000, "a", 0)
            .event(EventKind::DurationComplete, 25_000_000, "b", 26_000_000)
            .event(EventKind::DurationEnd, 48_000_000, "a", 0);
        trace.stays_the_same();
    }
}

#[test]
fn each_provider_has_its_own_strings_threads_and_clock() {
    let mut trace = Trace::new(1_000_000_000);
    let string = |trace: &mut Trace, text| fxt::string_record(&mut trace.0, 1, text);
    let slice = |trace: &mut Trace, time| {
        let (category, name) = (StringRef::Index(1), StringRef::Index(1));
        let kind = EventKind::DurationComplete;
        let payload = Some(time + 10);
        let event = Event { kind, timestamp: time, thread: MAIN, category, name, args: &[], payload };
        fxt::event(&mut trace.0, &event);
    };
    string(&mut trace, "of the first");
    slice(&mut trace, 100);
    fxt::provider_info(&mut trace.0, 2, "second");
    fxt::initialization(&mut trace.0, 1_000);
    fxt::thread_record(&mut trace.0, 1, 17, 18);
    string(&mut trace, "of the second");
    slice(&mut trace, 200);
    fxt::provider_section(&mut trace.0, 1);
    slice(&mut trace, 300);
    string(&mut trace, "of the first, anew");
    fxt::thread_record(&mut trace.0, 1, 7, 9);
    slice(&mut trace, 400);
    fxt::provider_section(&mut trace.0, 2);
    slice(&mut trace, 500);
    fxt::initialization(&mut trace.0, 2_000);
    slice(&mut trace, 5_000);
    let shown = trace.stays_the_same();
    assert_eq!(shown.table("slices").len(), 6);
}

#[test]
fn what_the_scheduler_did_stays_the_same() {
    let mut trace = Trace::new(1_000_000);
    fxt::string_record(&mut trace.0, 5, "incoming_weight");
    trace.named();
    let weight = [(StringRef::Index(5), Value::I64(3))];
    for (time, outgoing, incoming) in [(1_000, 8, 9), (2_000, 9, 8), (3_000, 8, 0)] {
        let (timestamp, cpu, outgoing_state) = (time, 1, ThreadState::Blocked);
        let switch = ContextSwitch { timestamp, cpu, outgoing, outgoing_state, incoming, args: &weight[..] };
        fxt::context_switch(&mut trace.0, &switch);
        fxt::thread_wakeup(
            &mut trace.0,
            &ThreadWakeup { timestamp: time + 500, cpu, thread: outgoing, args: &[][..] },
        );
    }
    let legacy = fxt::LegacyContextSwitch {
        timestamp: 4_000,
        cpu: 1,
        outgoing: MAIN,
        outgoing_state: ThreadState::Suspended,
        outgoing_priority: 3,
        incoming: WORKER,
        incoming_priority: 4,
    };
    fxt::legacy_context_switch(&mut trace.0, &legacy);
    let (converted, report) = convert(&trace.0, TraceFormat::Fxt);
    assert!(report.is_empty(), "{report:?}");
    let rows = |trace: &[u8]| {
        load_bytes(trace, &SCHEDULING).results.iter().map(|rows| rows.text()).collect::<Vec<_>>()
    };
    let before = rows(&trace.0);
    assert!(before[0].lines().count() >= 3, "{before:?}");
    assert_eq!(rows(&converted), before);
}

#[test]
fn records_without_a_word_of_their_own_are_copied() {
    let mut trace = Trace::new(1_000_000_000);
    fxt::string_record(&mut trace.0, 5, "object");
    let (thread, args) = (MAIN, [(StringRef::Index(5), Value::I64(3))]);
    fxt::userspace_object(&mut trace.0, 0x10, ProcessRef::Index(1), StringRef::Index(5), &args);
    fxt::kernel_object(&mut trace.0, 17, 0x10, StringRef::Index(5), &args);
    fxt::module(&mut trace.0, &fxt::Module { timestamp: 1, thread, id: 3, name: "m", build_id: &[1, 2] });
    let mmap = fxt::Mmap { timestamp: 1, thread, module_id: 3, flags: 5, start: 6, range: 7, vaddr: 8 };
    fxt::mmap(&mut trace.0, &mmap);
    fxt::backtrace(&mut trace.0, &fxt::Backtrace { timestamp: 1, thread, frames: &[1, 2, 3][..] });
    fxt::blob(&mut trace.0, StringRef::Index(5), fxt::BLOB_DATA, b"some bytes");
    let (category, name) = (StringRef::Index(5), StringRef::Inline("large"));
    let metadata = Some(fxt::LargeBlobMetadata { timestamp: 1, thread, args: &args[..] });
    fxt::large_blob(&mut trace.0, &LargeBlob { category, name, metadata, bytes: b"more" });
    fxt::log(&mut trace.0, 5, MAIN, "a message");
    let (converted, report) = convert(&trace.0, TraceFormat::Fxt);
    assert!(report.is_empty(), "{report:?}");

    let records = |trace: &[u8]| {
        let (mut reader, mut found) = (fxt::RecordReader::new(trace), Vec::new());
        while let Some((_, record)) = reader.next().unwrap() {
            let text = format!("{record:?}");
            let name = text.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
            if !["Magic", "ProviderInfo", "Initialization", "String", "Thread"].contains(&name.as_str()) {
                assert!(name == "Log" || !text.contains("Index("), "it means what it says by itself: {text}");
                found.push(name);
            }
        }
        found
    };
    let expected =
        ["UserspaceObject", "KernelObject", "Module", "Mmap", "Backtrace", "Blob", "LargeBlob", "Log"];
    assert_eq!(records(&converted), expected);
    Shown::of_clean(&trace.0).require_equal(&Shown::of_clean(&converted));
}

#[test]
fn what_has_no_meaning_is_left_out_and_counted() {
    let mut trace = Trace::new(1_000_000_000);
    trace
        .event(EventKind::DurationComplete, 10, "good", 20)
        .on(ThreadRef::Index(9), EventKind::Instant, 20, "on no thread", 0, &[])
        .event(EventKind::DurationComplete, 30, "ends early", 20)
        .event(EventKind::Instant, 1 << 63, "late", 0);
    let unknown = Event {
        kind: EventKind::Instant,
        timestamp: 1,
        thread: MAIN,
        category: StringRef::Empty,
        name: StringRef::Index(99),
        args: &[],
        payload: None,
    };
    fxt::event(&mut trace.0, &unknown);
    let (converted, report) = convert(&trace.0, TraceFormat::Fxt);
    let report: Vec<_> = report.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let expected = [
        "1 records of unknown threads left out",
        "1 records with times beyond 292 years left out",
        "1 records with unknown strings left out",
        "1 slices that end before they begin left out",
    ];
    assert_eq!(report, expected);
    let shown = load_bytes(&converted, &["select name from slice order by name"]);
    assert_eq!(shown.results[0].text(), "events lost\nevents lost\nevents lost\nevents lost\ngood");
}
