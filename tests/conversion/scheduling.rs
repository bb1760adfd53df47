//! Thread states and stack samples, from format to format.

use hairline_convert::TraceFormat;
use hairline_formats::fxt::{self, ContextSwitch, StringRef, ThreadState, ThreadWakeup};
use hairline_formats::proto::{put_bytes, put_message, put_str, put_uint, put_varint};
use hairline_formats::track_event::{
    self as te, AddressSymbols, Frame, InternedStack, Line, Mapping, PerfSample, SequenceId, ThreadTrack,
    TrackUuid,
};
use hairline_tests::judge::load_bytes;

use super::convert;

const SCHED: &str = "select s.ts, s.dur, s.cpu, t.tid, s.end_state, t.name from sched s join thread t using (utid) \
     where t.tid != 0 order by s.ts, s.cpu";

const SUMS: &str = "select t.tid, s.state, sum(s.dur), count(*) from thread_state s join thread t using (utid) \
     where s.dur > 0 and t.tid != 0 group by 1, 2 order by 1, 2";

const STACKS: &str = "with recursive up(sample, id, name, depth) as ( \
       select s.id, c.parent_id, f.name, 0 from perf_sample s join stack_profile_callsite c on c.id = s.callsite_id \
         join stack_profile_frame f on f.id = c.frame_id \
       union all select up.sample, c.parent_id, f.name, up.depth + 1 from up join stack_profile_callsite c on c.id = up.id \
         join stack_profile_frame f on f.id = c.frame_id) \
     select s.ts, t.tid, s.cpu, (select group_concat(name, '<') from (select name from up where sample = s.id order by depth)) \
     from perf_sample s join thread t using (utid) order by s.ts";

const SYMBOLS: &str = "select f.rel_pc, s.name, s.source_file, s.line_number from stack_profile_frame f \
     join stack_profile_symbol s on s.symbol_set_id = f.symbol_set_id order by f.rel_pc, s.id";

/// Two threads of a process, described.
fn threads(out: &mut Vec<u8>) {
    for (uuid, tid, name) in [(11, 8, "worker"), (12, 9, "other")] {
        let (uuid, parent_uuid) = (TrackUuid(uuid), TrackUuid(0));
        te::thread_descriptor(out, SequenceId(1), &ThreadTrack { uuid, parent_uuid, pid: 7, tid, name });
    }
}

fn packet(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    put_message(out, te::fields::trace::PACKET, write);
}

/// A packet with a change of a thread's state.
fn task_state(out: &mut Vec<u8>, time: u64, cpu: u64, tid: u64, state: u64) {
    packet(out, |out| {
        put_uint(out, 8, time);
        put_uint(out, 10, 1);
        put_message(out, 117, |out| {
            // Without it, importers leave the last row of a processor other than 0 open.
            put_uint(out, 1, cpu);
            put_str(out, 2, "comm");
            put_uint(out, 3, tid);
            put_uint(out, 4, state);
        });
    });
}

/// `sched_switch` of ftrace: the thread that leaves, its state, and the thread that comes.
fn switch(out: &mut Vec<u8>, time: u64, (from, state): (u64, u64), to: u64) {
    put_message(out, 2, |out| {
        put_uint(out, 1, time);
        put_uint(out, 2, from);
        put_message(out, 4, |out| {
            let name = |tid| if tid == 0 { "swapper/0".to_owned() } else { format!("comm {tid}") };
            put_str(out, 1, &name(from));
            put_uint(out, 2, from);
            put_uint(out, 3, 120);
            put_uint(out, 4, state);
            put_str(out, 5, &name(to));
            put_uint(out, 6, to);
            put_uint(out, 7, 120);
        });
    });
}

fn waking(out: &mut Vec<u8>, time: u64, waker: u64, tid: u64) {
    put_message(out, 2, |out| {
        put_uint(out, 1, time);
        put_uint(out, 2, waker);
        put_message(out, 20, |out| {
            put_str(out, 1, "comm");
            put_uint(out, 2, tid);
            put_uint(out, 3, 120);
            put_uint(out, 4, 1);
            put_uint(out, 5, 0);
        });
    });
}

/// What ftrace says of two threads on two processors.
fn ftrace() -> Vec<u8> {
    let mut out = Vec::new();
    threads(&mut out);
    packet(&mut out, |out| {
        put_uint(out, 10, 2);
        put_message(out, 1, |out| {
            put_uint(out, 1, 0);
            switch(out, 1_000, (0, 0), 8);
            switch(out, 3_000, (8, 1), 9);
            waking(out, 4_000, 9, 8);
            switch(out, 6_000, (9, 0), 8);
            switch(out, 7_000, (8, 2), 0);
        });
    });
    packet(&mut out, |out| {
        put_uint(out, 10, 2);
        put_message(out, 1, |out| {
            put_uint(out, 1, 1);
            switch(out, 6_500, (0, 0), 9);
            switch(out, 9_000, (9, 1), 0);
        });
    });
    out
}

/// The same switches in columns, as the tracing service writes them by default.
fn compact() -> Vec<u8> {
    let mut out = Vec::new();
    threads(&mut out);
    let mut bundle = |cpu: u64, switches: &[[u64; 3]], wakings: &[[u64; 2]]| {
        packet(&mut out, |out| {
            put_uint(out, 10, 2);
            put_message(out, 1, |out| {
                put_uint(out, 1, cpu);
                put_message(out, 4, |out| {
                    put_str(out, 5, "comm");
                    let column = |index: usize| switches.iter().map(move |switch| switch[index]);
                    let deltas = |times: Vec<u64>| {
                        let before = std::iter::once(0).chain(times.clone());
                        times.iter().zip(before).map(|(time, before)| time - before).collect::<Vec<_>>()
                    };
                    let mut put = |field: u32, values: Vec<u64>| {
                        let mut packed = Vec::new();
                        values.iter().for_each(|value| put_varint(&mut packed, *value));
                        put_bytes(out, field, &packed);
                    };
                    put(1, deltas(column(0).collect()));
                    put(2, column(1).collect());
                    put(3, column(2).collect());
                    put(4, column(2).map(|_| 120).collect());
                    put(6, column(2).map(|_| 0).collect());
                    if !wakings.is_empty() {
                        put(7, deltas(wakings.iter().map(|waking| waking[0]).collect()));
                        put(8, wakings.iter().map(|waking| waking[1]).collect());
                        put(9, wakings.iter().map(|_| 0).collect());
                        put(10, wakings.iter().map(|_| 120).collect());
                        put(11, wakings.iter().map(|_| 0).collect());
                        put(12, wakings.iter().map(|_| 0).collect());
                    }
                });
            });
        });
    };
    let first = [[900, 1, 0], [1_000, 0, 8], [3_000, 1, 9], [6_000, 0, 8], [7_000, 2, 0]];
    bundle(0, &first, &[[4_000, 8]]);
    bundle(1, &[[900, 1, 0], [6_500, 0, 9], [9_000, 1, 0]], &[]);
    out
}

/// The same as packets with one state each.
fn states() -> Vec<u8> {
    let mut out = Vec::new();
    threads(&mut out);
    for (time, cpu, tid, state) in [
        (1_000, 0, 8, 3),
        (3_000, 0, 8, 4),
        (3_000, 0, 9, 3),
        (6_000, 0, 9, 2),
        (6_000, 0, 8, 3),
        (7_000, 0, 8, 5),
        (6_500, 1, 9, 3),
        (9_000, 1, 9, 4),
    ] {
        task_state(&mut out, time, cpu, tid, state);
    }
    out
}

/// The same as FXT.
fn records() -> Vec<u8> {
    let mut out = Vec::new();
    fxt::magic(&mut out);
    fxt::initialization(&mut out, 1_000_000_000);
    for (tid, name) in [(8, "worker"), (9, "other")] {
        let process = [(StringRef::Inline("process"), hairline_formats::Value::Koid(7))];
        fxt::kernel_object(&mut out, fxt::KERNEL_OBJECT_THREAD, tid, StringRef::Inline(name), &process);
    }
    let blocked = ThreadState::Blocked;
    for (timestamp, cpu, outgoing, outgoing_state, incoming) in [
        (1_000, 0, 0, ThreadState::Running, 8),
        (3_000, 0, 8, blocked, 9),
        (6_000, 0, 9, ThreadState::Running, 8),
        (7_000, 0, 8, blocked, 0),
        (6_500, 1, 0, ThreadState::Running, 9),
        (9_000, 1, 9, blocked, 0),
    ] {
        let switch = ContextSwitch { timestamp, cpu, outgoing, outgoing_state, incoming, args: &[][..] };
        fxt::context_switch(&mut out, &switch);
    }
    fxt::thread_wakeup(&mut out, &ThreadWakeup { timestamp: 4_000, cpu: 0, thread: 8, args: &[] });
    out
}

fn rows(trace: &[u8], query: &str) -> String {
    let mut verdict = load_bytes(trace, &[query]);
    // The importer does not know which thread the first switch of a processor ends.
    verdict.complaints.retain(|stat| stat.name != "compact_sched_switch_skipped");
    verdict.require_clean();
    verdict.results[0].text()
}

/// The rows of `sched` without the end states that FXT does not know.
fn sched(trace: &[u8]) -> Vec<String> {
    rows(trace, SCHED).lines().map(|line| line.replace("\tD\t", "\tS\t")).collect()
}

#[test]
fn what_the_scheduler_did_is_the_same_in_every_format() {
    let expected = [
        "1000\t2000\t0\t8\tS\tworker",
        "3000\t3000\t0\t9\tR\tother",
        "6000\t1000\t0\t8\tS\tworker",
        "6500\t2500\t1\t9\tS\tother",
    ];
    for (what, trace) in
        [("ftrace", ftrace()), ("compact", compact()), ("states", states()), ("records", records())]
    {
        assert_eq!(sched(&trace), expected, "{what}, before");
        for to in [TraceFormat::Fxt, TraceFormat::TrackEvent] {
            let (converted, report) = convert(&trace, to);
            assert_eq!(sched(&converted), expected, "{what} to {to:?}");
            assert!(report.iter().all(|(what, _)| what != "context switches"), "{report:?}");
            let (back, _) = convert(&converted, TraceFormat::TrackEvent);
            assert_eq!(sched(&back), expected, "{what} to {to:?} and back");
        }
    }
}

/// A process ends with its first thread, and then its other threads run once more, to end.
#[test]
fn a_thread_that_ends_after_the_first_one_of_its_process_is_one_thread() {
    let mut trace = Vec::new();
    fxt::magic(&mut trace);
    fxt::initialization(&mut trace, 1_000_000_000);
    for (tid, name) in [(7, "main"), (8, "worker")] {
        let process = [(StringRef::Inline("process"), hairline_formats::Value::Koid(7))];
        fxt::kernel_object(&mut trace, fxt::KERNEL_OBJECT_THREAD, tid, StringRef::Inline(name), &process);
    }
    let (running, blocked, dead) = (ThreadState::Running, ThreadState::Blocked, ThreadState::Dead);
    for (timestamp, outgoing, outgoing_state, incoming) in [
        (1_000, 0, running, 8),
        (2_000, 8, blocked, 7),
        (3_000, 7, dead, 0),
        (4_000, 0, running, 8),
        (5_000, 8, dead, 0),
    ] {
        let switch = ContextSwitch { timestamp, cpu: 0, outgoing, outgoing_state, incoming, args: &[][..] };
        fxt::context_switch(&mut trace, &switch);
    }
    let threads = "select tid, name, (select sum(dur) from sched where sched.utid = t.utid) from thread t \
        where tid != 0 order by 1";
    let expected = "7\tmain\t1000\n8\tworker\t2000";
    assert_eq!(rows(&trace, threads), expected);
    assert_eq!(rows(&convert(&trace, TraceFormat::TrackEvent).0, threads), expected);
}

#[test]
fn a_bundle_of_ftrace_events_is_copied_whole_into_its_own_format() {
    let trace = ftrace();
    let (converted, report) = convert(&trace, TraceFormat::TrackEvent);
    assert!(report.is_empty(), "{report:?}");
    assert_eq!(rows(&converted, SUMS), rows(&trace, SUMS));
}

#[test]
fn thread_states_and_samples_are_counted_where_json_cannot_say_them() {
    let count = |trace: &[u8], what: &str| {
        let (_, report) = convert(trace, TraceFormat::Json);
        report.iter().find(|(found, _)| *found == what).map_or(0, |(_, n)| n)
    };
    assert_eq!(count(&states(), "thread states left out"), 8);
    assert_eq!(count(&samples(), "stack samples left out"), 3);
}

/// Samples of two threads, with functions inlined and by symbols.
fn samples() -> Vec<u8> {
    let mut out = Vec::new();
    threads(&mut out);
    let sequence = SequenceId(5);
    let mapping = Mapping { build_id: 1, path: &[1][..], start: 0x1000, end: 0x9000, ..Mapping::default() };
    let frame = |function, rel_pc| Frame { function, mapping: 1, rel_pc };
    te::interned_stacks(
        &mut out,
        sequence,
        true,
        &[
            InternedStack::Path { iid: 1, path: "/bin/server" },
            InternedStack::BuildId { iid: 1, bytes: &[0xab, 0xff, 0x01] },
            InternedStack::Function { iid: 1, name: "main" },
            InternedStack::Function { iid: 2, name: "parse" },
            InternedStack::Mapping { iid: 1, mapping },
            InternedStack::Frame { iid: 1, frame: frame(1, 0x10) },
            InternedStack::Frame { iid: 2, frame: frame(2, 0x20) },
            InternedStack::Frame { iid: 3, frame: frame(0, 0x30) },
            InternedStack::Callstack { iid: 1, frames: &[1, 2] },
            InternedStack::Callstack { iid: 2, frames: &[1, 3] },
        ],
    );
    for (time, tid, callstack) in [(1_000, 8, 1), (2_000, 8, 2), (3_000, 9, 1)] {
        let sample = PerfSample { cpu: Some(1), pid: 7, tid, callstack, ..PerfSample::default() };
        te::perf_sample(&mut out, sequence, time, &sample);
    }
    let line = |function, line| Line { function, file: "src/parse.rs", line };
    let symbols = AddressSymbols { address: 0x30, lines: vec![line("inner", 7), line("outer", 3)] };
    te::module_symbols(&mut out, sequence, "/bin/server", &[0xab, 0xff, 0x01], &[symbols]);
    out
}

#[test]
fn samples_keep_their_stacks_and_symbols() {
    let trace = samples();
    let before = [rows(&trace, STACKS), rows(&trace, SYMBOLS)];
    assert_eq!(before[0].lines().count(), 3, "{before:?}");
    assert!(before[0].contains("parse<main") && before[1].contains("inner"), "{before:?}");
    let (fxt, report) = convert(&trace, TraceFormat::Fxt);
    assert!(report.is_empty(), "{report:?}");
    assert_eq!([rows(&fxt, STACKS), rows(&fxt, SYMBOLS)], before, "to FXT");
    let (back, report) = convert(&fxt, TraceFormat::TrackEvent);
    assert!(report.is_empty(), "{report:?}");
    assert_eq!([rows(&back, STACKS), rows(&back, SYMBOLS)], before, "and back");
}

#[test]
fn backtraces_of_fxt_are_samples_too() {
    let mut trace = records();
    let thread = fxt::ThreadRef::Inline { process: 7, thread: 8 };
    let module = fxt::Module { timestamp: 1, thread, id: 3, name: "/bin/server", build_id: &[1, 2] };
    fxt::module(&mut trace, &module);
    let at = fxt::Mmap {
        timestamp: 1,
        thread,
        module_id: 3,
        flags: 5,
        start: 0x7000,
        range: 0x1000,
        vaddr: 0x100,
    };
    fxt::mmap(&mut trace, &at);
    fxt::backtrace(&mut trace, &fxt::Backtrace { timestamp: 5_000, thread, frames: &[0x7020, 0x7010][..] });
    let (packets, report) = convert(&trace, TraceFormat::TrackEvent);
    assert!(
        report.iter().all(|(what, _)| !what.contains("left out") || what.contains("wakeup")),
        "{report:?}"
    );
    let frames = "select s.ts, f.rel_pc, m.name from perf_sample s join stack_profile_callsite c on c.id = s.callsite_id \
         join stack_profile_frame f on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping";
    assert_eq!(rows(&packets, frames), format!("5000\t{}\t/bin/server", 0x120));
}

#[test]
fn backtraces_that_repeat_the_samples_of_blobs_are_no_samples_of_their_own() {
    let mut trace = records();
    // As `hairline record --sample` writes them: first the packets, then the same samples as records.
    fxt::blob(&mut trace, StringRef::Inline("samples"), fxt::BLOB_PERFETTO, &samples());
    for (timestamp, thread) in [(1_000, 8), (2_000, 8), (3_000, 9)] {
        let thread = fxt::ThreadRef::Inline { process: 7, thread };
        fxt::backtrace(&mut trace, &fxt::Backtrace { timestamp, thread, frames: &[0x20, 0x10][..] });
    }
    let thread = fxt::ThreadRef::Inline { process: 70, thread: 80 };
    fxt::backtrace(&mut trace, &fxt::Backtrace { timestamp: 4_000, thread, frames: &[0x30][..] });
    let count = "select count(*), count(distinct ts) from perf_sample";
    let (packets, _) = convert(&trace, TraceFormat::TrackEvent);
    assert_eq!(rows(&packets, count), "4\t4", "those of blobs once, and that of another process");
    let (again, _) = convert(&trace, TraceFormat::Fxt);
    let (packets, _) = convert(&again, TraceFormat::TrackEvent);
    assert_eq!(rows(&packets, count), "4\t4", "also after FXT was written");
    let (mut reader, mut kept) = (fxt::RecordReader::new(&again[..]), 0);
    while let Some((_, record)) = reader.next().expect("valid records") {
        kept += u32::from(matches!(record, fxt::Record::Backtrace(_)));
    }
    assert_eq!(kept, 4, "the records are kept");
}
