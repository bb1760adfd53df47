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

    let again = trace.clone();
    let mut reader = TrackEventReader::new(&trace[..])
        .reading_again(|| Ok(Box::new(std::io::Cursor::new(again)) as Box<dyn std::io::Read>));
    let (mut context, mut times) = (Context::new(), Vec::new());
    while let Some(item) = reader.next(&mut context).unwrap() {
        if let Item::Event(event) = item {
            times.push(event.time);
        }
    }
    assert_eq!(times, [1_010, 4_950, 1_020, 5_010, 5_005]);
}
