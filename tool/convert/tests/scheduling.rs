//! Scheduling and stack samples that are damaged or made up do no harm, and what is undefined is counted.

use hairline_convert::timeline::Timeline;
use hairline_convert::{Context, Item, Report, TraceFormat, create, open};
use hairline_formats::proto::{put_bytes, put_message, put_uint};
use hairline_formats::track_event::fields::trace;
use hairline_formats::track_event::{
    self as te, AddressSymbols, Frame, InternedStack, Line, Mapping, PerfSample, SequenceId, TaskState,
    TaskStateEvent,
};
use proptest::prelude::*;

const SEQUENCE: SequenceId = SequenceId(3);

/// A trace with everything that is about threads.
fn sample_trace() -> Vec<u8> {
    let mut out = Vec::new();
    for (time, state) in [(10, TaskState::Running), (20, TaskState::Runnable), (30, TaskState::Running)] {
        let event = TaskStateEvent { cpu: Some(1), comm: "worker", ..TaskStateEvent::new(8, state) };
        te::task_state(&mut out, SEQUENCE, time, &event);
    }
    put_message(&mut out, trace::PACKET, |out| {
        put_message(out, 1, |out| {
            put_uint(out, 1, 2);
            put_message(out, 2, |out| {
                put_uint(out, 1, 40);
                put_message(out, 4, |out| {
                    put_uint(out, 2, 8);
                    put_uint(out, 4, 1);
                    put_uint(out, 6, 9);
                });
            });
            put_message(out, 4, |out| {
                put_bytes(out, 5, b"worker");
                put_bytes(out, 1, &[50, 10]);
                put_bytes(out, 2, &[1, 2]);
                put_bytes(out, 3, &[8, 9]);
                put_bytes(out, 6, &[0, 0]);
            });
        });
    });
    let mapping = Mapping { build_id: 1, path: &[1][..], ..Mapping::default() };
    te::interned_stacks(
        &mut out,
        SEQUENCE,
        true,
        &[
            InternedStack::Path { iid: 1, path: "/bin/server" },
            InternedStack::BuildId { iid: 1, bytes: &[1, 2] },
            InternedStack::Function { iid: 1, name: "main" },
            InternedStack::Mapping { iid: 1, mapping },
            InternedStack::Frame { iid: 1, frame: Frame { function: 1, mapping: 1, rel_pc: 5 } },
            InternedStack::Callstack { iid: 1, frames: &[1] },
        ],
    );
    let sample = PerfSample { pid: 7, tid: 8, callstack: 1, ..PerfSample::default() };
    te::perf_sample(&mut out, SEQUENCE, 15, &sample);
    let line = Line { function: "inner", file: "a.rs", line: 3 };
    let symbols = [AddressSymbols { address: 5, lines: vec![line] }];
    te::module_symbols(&mut out, SEQUENCE, "/bin/server", &[1, 2], &symbols);
    out
}

/// Reads a trace up to its end or an error, into a timeline and all formats.
fn read(trace: &[u8]) -> (usize, usize, Report) {
    let mut writers = [TraceFormat::TrackEvent, TraceFormat::Fxt, TraceFormat::Json]
        .map(|format| create(format, std::io::sink()));
    let (mut timeline, mut changes, mut frames) = (Timeline::default(), 0, 0);
    let Ok(mut reader) = open(trace, Some(TraceFormat::TrackEvent)) else {
        return (0, 0, Report::default());
    };
    let mut context = Context::new();
    while let Ok(Some(item)) = reader.next(&mut context) {
        match &item {
            Item::Scheduling(scheduling) => {
                changes += scheduling.changes.len();
                timeline.add(scheduling);
            }
            Item::Sample(sample) => sample.stack.each(&mut |_| frames += 1),
            _ => {}
        }
        writers.iter_mut().for_each(|writer| writer.write(&item).unwrap());
    }
    writers.iter_mut().for_each(|writer| writer.finish().unwrap());
    timeline.finish();
    for (start, end) in [(0, 100), (i64::MIN, i64::MAX), (25, 25), (90, 10)] {
        for tid in [0, 8, 9] {
            let _ = timeline.split(tid, start, end);
            timeline.stretches(tid, start, end, &mut |_| {});
        }
        timeline.ran_on(1, start, end, &mut |_, _, _| {});
    }
    timeline.forget_before(20);
    timeline.finish();
    (changes, frames, reader.report().clone())
}

#[test]
fn the_whole_trace_is_understood() {
    let (changes, frames, report) = read(&sample_trace());
    assert_eq!((changes, frames), (3 + 2 + 4, 1), "{report:?}");
    assert!(report.is_empty(), "{report:?}");
}

#[test]
fn undefined_ids_are_counted() {
    let mut out = Vec::new();
    te::interned_stacks(&mut out, SEQUENCE, true, &[InternedStack::Callstack { iid: 1, frames: &[7] }]);
    for callstack in [1, 5] {
        let sample = PerfSample { pid: 7, tid: 8, callstack, ..PerfSample::default() };
        te::perf_sample(&mut out, SEQUENCE, 15, &sample);
    }
    let (_, frames, report) = read(&out);
    let undefined = [
        "stack samples whose call stack has an undefined id",
        "frames of stack samples with an undefined id",
    ];
    assert_eq!((frames, undefined.map(|what| report.ids(what).to_vec())), (0, [vec![5], vec![7]]));
    assert!(undefined.iter().all(|what| report.is_defect(what)));
}

proptest! {
    #[test]
    fn damaged_traces_do_no_harm(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut trace = sample_trace();
        for (at, byte) in changes {
            let at = at.index(trace.len());
            trace[at] = byte;
        }
        read(&trace);
    }

    #[test]
    fn made_up_bundles_do_no_harm(field in 1_u32..140, bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut trace = Vec::new();
        put_message(&mut trace, trace::PACKET, |out| {
            put_uint(out, 8, 5);
            put_bytes(out, field, &bytes);
        });
        put_message(&mut trace, trace::PACKET, |out| {
            put_message(out, 1, |out| put_bytes(out, 4, &bytes));
        });
        read(&trace);
    }
}

/// What the processor did and how the stack ended survive both formats.
#[test]
fn samples_keep_all_that_they_say() {
    use hairline_formats::track_event::{CpuMode, PacketData, PacketReader, UnwindError};
    let (mode, unwind_error) = (CpuMode::Kernel, UnwindError::MemoryInvalid);
    let sample = PerfSample { cpu: Some(3), pid: 7, tid: 8, mode, unwind_error, ..PerfSample::default() };
    let mut trace = Vec::new();
    te::interned_stacks(&mut trace, SEQUENCE, true, &[]);
    te::perf_sample(&mut trace, SEQUENCE, 15, &sample);
    for format in [TraceFormat::Fxt, TraceFormat::TrackEvent] {
        let mut out = Vec::new();
        let (mut reader, mut context) = (open(&trace[..], None).unwrap(), Context::new());
        let mut writer = create(format, &mut out);
        while let Some(item) = reader.next(&mut context).unwrap() {
            writer.write(&item).unwrap();
        }
        writer.finish().unwrap();
        drop((reader, writer));
        trace = out;
    }
    let (mut reader, mut found) = (PacketReader::new(&trace[..]), Vec::new());
    while let Some((_, packet)) = reader.next().unwrap() {
        if let Some(PacketData::Sample(sample)) = packet.data {
            found.push(sample);
        }
    }
    assert_eq!(found, [sample]);
}
