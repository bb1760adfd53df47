//! How fast a trace is read, and written again: `speed TRACE [fxt|pftrace|json]`. `speed make TRACE.fxt MIB` makes one.

use std::time::Instant;

use hairline_convert::{Context, Item, Source, create, open};
use hairline_formats::Value;
use hairline_formats::track_event::{self as te, Event, EventType, Interned, Name, SequenceStart};

const THREADS: u32 = 8;
/// Packets of a thread that stand together, as in a chunk of the SDK.
const RUN: usize = 1000;

/// A trace as the SDK writes it: slices, every fourth with an argument.
fn trace(bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 100_000);
    te::process_descriptor(&mut out, 1, &te::ProcessTrack { uuid: 7, pid: 7, name: "p", cmdline: &[] });
    for sequence in 2..2 + THREADS {
        let (track_uuid, tid) = (u64::from(sequence) << 40, i64::from(sequence));
        let start = SequenceStart {
            sequence,
            first: true,
            dropped: false,
            track_uuid,
            extra_counters: &[],
            timestamp_ns: 1 << 40,
        };
        te::sequence_start(&mut out, &start);
        let thread = te::ThreadTrack { uuid: track_uuid, parent_uuid: 7, pid: 7, tid, name: "t" };
        te::thread_descriptor(&mut out, sequence, &thread);
        let strings: Vec<String> = (0..100).map(|n| format!("function {n}")).collect();
        let names = strings.iter().zip(1..).map(|(name, iid)| Interned::EventName { iid, name });
        te::interned(&mut out, sequence, &names.collect::<Vec<_>>());
        let others =
            [Interned::Category { iid: 1, name: "app" }, Interned::AnnotationName { iid: 1, name: "n" }];
        te::interned(&mut out, sequence, &others);
    }
    let mut n = 0;
    while out.len() < bytes {
        let sequence = 2 + (n % THREADS as usize) as u32;
        for k in 0..RUN as u64 {
            let argument = [(Name::Iid(1), Value::I64(k.cast_signed()))];
            let begin = Event {
                categories: &[Name::Iid(1)],
                name: Some(Name::Iid(1 + k % 100)),
                annotations: if k % 4 == 0 { &argument } else { &[] },
                ..Event::new(sequence, EventType::SliceBegin, 1000 + k)
            };
            te::event(&mut out, &begin);
            te::event(&mut out, &Event::new(sequence, EventType::SliceEnd, 900));
        }
        n += 1;
    }
    out
}

fn main() {
    let megabytes = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200);
    let trace = trace(megabytes * 1_000_000);
    if let Some(path) = std::env::args().nth(2) {
        std::fs::write(path, &trace).unwrap();
    }
    for is_written in [false, true, false, true] {
        let (mut context, mut events, mut converted) =
            (Context::new(), 0_u64, Vec::with_capacity(trace.len()));
        let start = Instant::now();
        let mut reader = open(&trace[..], None).expect("a trace");
        let mut writer = create(Source::TrackEvent, &mut converted).expect("a writer");
        while let Some(item) = reader.next(&mut context).expect("a trace") {
            events += u64::from(matches!(item, Item::Event(_)));
            if is_written {
                writer.write(&item).expect("memory");
            }
        }
        writer.finish().expect("memory");
        let took = start.elapsed();
        drop(writer);
        let (seconds, len) = (took.as_secs_f64(), trace.len() as f64);
        println!(
            "{}: {:.0} MB/s, {:.0} ns an event of {:.1} bytes; {:.1} bytes written",
            if is_written { "read and written" } else { "read" },
            len / seconds / 1e6,
            seconds * 1e9 / events as f64,
            len / events as f64,
            converted.len() as f64 / events as f64,
        );
    }
}
