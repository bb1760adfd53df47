//! What is new in TrackEvent: states of tracks, and call stacks of events.

use hairline_convert::{Context, EventKind, Item, TraceReader, TrackEventReader};
use hairline_formats::proto::{put_message, put_str, put_uint};
use hairline_formats::track_event::fields::{
    EventType, trace, trace_packet as packet, track_descriptor, track_event,
};

fn event(out: &mut Vec<u8>, time: u64, kind: EventType, track: u64, more: impl Fn(&mut Vec<u8>)) {
    put_message(out, trace::PACKET, |p| {
        put_uint(p, packet::TIMESTAMP, time);
        put_uint(p, packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        put_message(p, packet::TRACK_EVENT, |e| {
            put_uint(e, track_event::TYPE, kind as u64);
            put_uint(e, track_event::TRACK_UUID, track);
            more(e);
        });
    });
}

/// A state of a track from a time on; "" for none.
fn state(out: &mut Vec<u8>, time: u64, track: u64, name: &str) {
    event(out, time, EventType::State, track, |e| {
        if !name.is_empty() {
            put_str(e, track_event::NAME, name);
        }
    });
}

/// The events of a trace, and what the reader says.
fn read(trace: &[u8]) -> (Vec<String>, Vec<(&'static str, u64)>) {
    let (mut reader, mut context, mut events) = (TrackEventReader::new(trace), Context::new(), Vec::new());
    while let Some(item) = reader.next(&mut context).unwrap() {
        if let Item::Event(event) = item {
            let kind = match event.kind {
                EventKind::Begin => "begin",
                EventKind::End => "end",
                _ => "other",
            };
            events.push(format!("{} {} {kind} {}", event.time, event.track.0, event.name.text));
        }
    }
    (events, reader.report().iter().collect())
}

#[test]
fn a_state_is_a_slice_up_to_the_next_state_of_its_track() {
    let mut trace = Vec::new();
    for (uuid, name) in [(5, "screen"), (6, "radio")] {
        put_message(&mut trace, trace::PACKET, |p| {
            put_message(p, packet::TRACK_DESCRIPTOR, |d| {
                put_uint(d, track_descriptor::UUID, uuid);
                put_str(d, track_descriptor::NAME, name);
                put_message(d, track_descriptor::STATE, |_| {});
            });
        });
    }
    state(&mut trace, 10, 5, "on");
    state(&mut trace, 20, 6, "idle");
    state(&mut trace, 30, 5, "dim");
    state(&mut trace, 40, 5, "");
    state(&mut trace, 50, 5, "");
    state(&mut trace, 60, 5, "on");
    let (events, said) = read(&trace);
    let expected =
        ["10 0 begin on", "20 1 begin idle", "30 0 end ", "30 0 begin dim", "40 0 end ", "60 0 begin on"];
    assert_eq!(events, expected);
    assert_eq!(said, [("states of tracks, shown as slices", 6)]);
}

#[test]
fn call_stacks_of_events_are_counted() {
    let mut trace = Vec::new();
    event(&mut trace, 1, EventType::Instant, 5, |e| put_uint(e, track_event::CALLSTACK_IID, 3));
    event(&mut trace, 2, EventType::Instant, 5, |e| {
        put_message(e, track_event::CALLSTACK, |stack| put_message(stack, 1, |f| put_str(f, 1, "main")));
    });
    assert_eq!(read(&trace).1, [("call stacks of events left out", 2)]);
}
