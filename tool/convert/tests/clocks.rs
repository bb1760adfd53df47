//! Clocks whose snapshot follows their first event.

use hairline_convert::{Context, Item, TraceReader, TrackEventReader};
use hairline_formats::proto::{put_message, put_uint};
use hairline_formats::track_event::fields::{clock, clock_reading, clock_snapshot, trace, trace_packet};
use hairline_formats::track_event::{Event, EventType, SequenceId, event};

const SEQUENCE: SequenceId = SequenceId(7);
/// A clock of the sequence whose times are relative to the one before.
const INCREMENTAL: u32 = 64;
/// Another clock of the sequence.
const LATE: u32 = 70;

/// A snapshot: the number, the time and whether it is incremental, of each clock.
fn snapshot(trace: &mut Vec<u8>, clocks: &[(u32, u64, bool)]) {
    put_message(trace, trace::PACKET, |packet| {
        put_uint(packet, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, u64::from(SEQUENCE.0));
        put_message(packet, trace_packet::CLOCK_SNAPSHOT, |snapshot| {
            for (id, time, is_incremental) in clocks {
                put_message(snapshot, clock_snapshot::CLOCKS, |reading| {
                    put_uint(reading, clock_reading::CLOCK_ID, u64::from(*id));
                    put_uint(reading, clock_reading::TIMESTAMP, *time);
                    put_uint(reading, clock_reading::IS_INCREMENTAL, u64::from(*is_incremental));
                });
            }
        });
    });
}

fn instant(trace: &mut Vec<u8>, clock: u32, timestamp: u64) {
    let packet = Event::new(SEQUENCE, EventType::Instant, timestamp);
    event(trace, &Event { clock_id: Some(clock), needs_state: false, ..packet });
}

#[test]
fn a_snapshot_that_is_used_early_leaves_the_increments_of_other_clocks() {
    let mut trace = Vec::new();
    snapshot(&mut trace, &[(clock::BOOTTIME, 1_000, false), (INCREMENTAL, 500, true)]);
    instant(&mut trace, INCREMENTAL, 10);
    instant(&mut trace, LATE, 40);
    instant(&mut trace, INCREMENTAL, 10);
    let clocks = [(clock::BOOTTIME, 5_000, false), (INCREMENTAL, 4_500, true), (LATE, 90, false)];
    snapshot(&mut trace, &clocks);
    instant(&mut trace, INCREMENTAL, 10);
    instant(&mut trace, LATE, 95);

    assert_eq!(read(&trace), (vec![1_010, 4_950, 1_020, 5_010, 5_005], vec![]));
}

/// The times of the events, and the report.
fn read(trace: &[u8]) -> (Vec<i64>, Vec<(&'static str, u64)>) {
    let again = trace.to_vec();
    let mut reader = TrackEventReader::new(trace)
        .reading_again(|| Ok(Box::new(std::io::Cursor::new(again)) as Box<dyn std::io::Read>));
    let (mut context, mut times) = (Context::new(), Vec::new());
    while let Some(item) = reader.next(&mut context).unwrap() {
        match item {
            Item::Event(event) => times.push(event.time),
            Item::Trace(trace) => assert!(trace.clocks.iter().all(|clock| clock.time < 1 << 63)),
            _ => {}
        }
    }
    (times, reader.report().iter().collect())
}

const NO_READING: &str = "readings of clocks left out: they are beyond 292 years";
const NO_TIME: &str = "events left out: their time is beyond 292 years";

#[test]
fn a_reading_of_more_than_63_bits_is_left_out_and_the_others_are_used() {
    let mut trace = Vec::new();
    let far = (clock::REALTIME, 1 << 63, false);
    snapshot(&mut trace, &[(clock::BOOTTIME, 1_000, false), far, (LATE, 90, false)]);
    instant(&mut trace, LATE, 95);
    snapshot(&mut trace, &[(clock::BOOTTIME, u64::MAX, false), (LATE, 200, false)]);
    instant(&mut trace, LATE, 205);
    assert_eq!(read(&trace), (vec![1_005, 1_115], vec![(NO_READING, 2)]));
}

#[test]
fn a_time_of_more_than_63_bits_is_left_out_and_does_not_begin_anew() {
    let mut trace = Vec::new();
    let most = i64::MAX.cast_unsigned();
    let clocks = [(clock::BOOTTIME, most - 10, false), (LATE, 5, false), (INCREMENTAL, most - 10, true)];
    snapshot(&mut trace, &clocks);
    for time in [10, 16, most] {
        instant(&mut trace, LATE, time);
    }
    for increment in [4, 7, most, 2] {
        instant(&mut trace, INCREMENTAL, increment);
    }
    let near = i64::MAX - 10;
    assert_eq!(read(&trace), (vec![near + 5, near + 4, near + 6], vec![(NO_TIME, 4)]));
}

/// As in importers, whose times are signed.
#[test]
fn a_time_of_64_bits_on_the_clock_of_the_trace_is_before_0() {
    let mut trace = Vec::new();
    instant(&mut trace, clock::BOOTTIME, u64::MAX - 4);
    assert_eq!(read(&trace), (vec![-5], vec![]));
}
