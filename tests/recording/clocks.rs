//! The times of events, beside `CLOCK_BOOTTIME` before and after each event.

use std::thread;
use std::time::Duration;

use hairline::{Format, MemoryOutput, Session, trace_instant, trace_scope};
use hairline_formats::fxt;
use hairline_tests::clock::boottime;
use hairline_tests::recording::{FORMATS, record, turn};

/// The error that a time may have, in ns.
const ERROR_NS: i64 = 1_000;

/// Records an instant. Returns the time before and after it.
fn instant() -> (i64, i64) {
    let before = boottime();
    trace_instant!("clock", "now", before = before);
    (before, boottime())
}

/// Records instants from the session's first moment on: three at once, then one each 0.5 ms, so often that no
/// event comes after a pause, and too few to fill a chunk.
fn instants(later: usize) -> Vec<(i64, i64)> {
    let pause = |_| {
        thread::sleep(Duration::from_micros(500));
        instant()
    };
    (0..3).map(|_| instant()).chain((0..later).map(pause)).collect()
}

#[test]
fn each_time_of_a_thousand_starts_is_within_1_us_from_the_first_event_on() {
    let _turn = turn();
    for start in 0..1000 {
        let memory = MemoryOutput::new();
        let session = Session::builder().output_memory(&memory).format(Format::Fxt);
        let session = session.buffer_size(1 << 20).start().expect("a session");
        let bounds = instants(if start % 50 == 0 { 80 } else { 0 });
        session.stop().expect("stopped");
        let bytes = memory.to_vec();
        let mut reader = fxt::RecordReader::new(bytes.as_slice());
        let mut times = Vec::new();
        while let Some((_, record)) = reader.next().expect("a whole trace") {
            if let fxt::Record::Event(event) = record
                && event.kind == fxt::EventKind::Instant
            {
                times.push(event.timestamp.cast_signed());
            }
        }
        assert_eq!(times.len(), bounds.len(), "start {start}");
        assert!(times.is_sorted(), "start {start}: {times:?}");
        for (n, ((before, after), time)) in bounds.into_iter().zip(times).enumerate() {
            assert!(
                before - ERROR_NS <= time && time <= after + ERROR_NS,
                "start {start}, event {n}: {} ns after the time before, {} ns before the time after",
                time - before,
                after - time
            );
        }
    }
}

#[test]
fn times_are_those_of_the_systems_clock_for_others_too() {
    for format in FORMATS {
        let mut bounds = Vec::new();
        let trace = record(format, |_| bounds = instants(100));
        let rows = trace.rows(
            "select ts, coalesce(extract_arg(arg_set_id, 'debug.before'), extract_arg(arg_set_id, 'before')) \
             from slice where name = 'now' order by ts",
        );
        let rows: Vec<(i64, i64)> = rows
            .lines()
            .filter_map(|row| {
                let (ts, before) = row.split_once('\t')?;
                Some((ts.parse().ok()?, before.parse().ok()?))
            })
            .collect();
        assert_eq!(rows.len(), bounds.len(), "{format:?}");
        for ((before, after), (ts, recorded)) in bounds.into_iter().zip(rows) {
            assert_eq!(recorded, before, "{format:?}: no time jumps back");
            assert!(before - ERROR_NS <= ts && ts <= after + ERROR_NS, "{format:?}: {before} {ts} {after}");
        }
    }
}

/// Importers nest two instants that have one time. Some processors count in steps of 10 ns: an event may take
/// less.
#[test]
fn no_two_events_of_a_thread_have_one_time() {
    const COUNT: i64 = 20_000;
    for format in FORMATS {
        let trace = record(format, |_| {
            for n in 0..COUNT {
                trace_instant!("clock", "bare");
                trace_instant!("clock", "with a value", n);
                trace_scope!("clock", "scope");
            }
        });
        let times =
            "select count(*), count(distinct ts), max(depth), min(iif(name = 'scope', dur, 1)) from slice";
        let all = 3 * COUNT;
        assert_eq!(trace.rows(times), format!("{all}\t{all}\t0\t1"), "{format:?}");
    }
}
