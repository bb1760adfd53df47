//! Traces in binary: of packets, of which readers give most events in brief, and with states of threads.

use std::io;

use hairline_convert::{Error, TraceReader, open};
use hairline_formats::fxt::{self, ContextSwitch, EventKind, StringRef, ThreadRef, ThreadState};
use hairline_formats::track_event::fields::clock;
use hairline_formats::track_event::{
    CustomTrack, Event, EventType, SequenceId, TrackUuid, custom_descriptor, event, trace_uuid,
};
use hairline_tables::{Batch, Data, Sink, Source, TableId, Wanted, read};

struct Packets(Vec<u8>, bool);

impl Source for Packets {
    fn open(&mut self) -> Result<Box<dyn TraceReader + '_>, Error> {
        open(&self.0[..], None)
    }

    fn is_repeatable(&self) -> bool {
        self.1
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn batch(&mut self, _: &mut Batch) -> io::Result<()> {
        Ok(())
    }
}

/// More instants than events wait to be put in order lie between an event and an earlier one. The first
/// reading must see them, so that the second one sorts all.
#[test]
fn instants_between_events_that_are_out_of_order_are_sorted_too() {
    let (sequence, uuid) = (SequenceId(1), TrackUuid(4));
    let mut trace = Vec::new();
    trace_uuid(&mut trace, sequence, 0x1234);
    custom_descriptor(&mut trace, sequence, &CustomTrack { uuid, name: "track", ..CustomTrack::default() });
    let mut put = |kind, time| {
        let moment =
            Event { clock_id: Some(clock::BOOTTIME), needs_state: false, ..Event::new(sequence, kind, time) };
        event(&mut trace, &Event { track_uuid: Some(uuid), ..moment });
    };
    put(EventType::SliceBegin, 1_000_000);
    for n in 0..70_000 {
        put(EventType::Instant, 1_000_000 + n);
    }
    put(EventType::SliceBegin, 10);
    put(EventType::SliceEnd, 20);
    put(EventType::SliceEnd, 2_000_000);
    let wanted = Wanted::nothing().table(TableId::Slice).table(TableId::Instant);
    let summary =
        read(&mut Packets(trace, true), &wanted, tempfile::tempfile, &mut Nowhere).expect("a trace");
    assert_eq!(summary.late, 0);
    assert!(summary.left_out.is_empty() && summary.report.is_empty(), "{:?}", summary.left_out);
    assert_eq!((summary.rows[TableId::Slice as usize], summary.rows[TableId::Instant as usize]), (2, 70_000));
}

// thread 9   |runs ........ 3000|        |runs ...
// slice         |1200 ... 2200|
#[test]
fn what_a_thread_did_during_a_slice_is_not_guessed_if_its_states_may_still_come() {
    let mut trace = Vec::new();
    fxt::magic(&mut trace);
    fxt::initialization(&mut trace, 1_000_000_000);
    let switch = |trace: &mut Vec<u8>, timestamp, outgoing, incoming| {
        let outgoing_state = ThreadState::Blocked;
        let switch = ContextSwitch { timestamp, cpu: 1, outgoing, outgoing_state, incoming, args: &[][..] };
        fxt::context_switch(trace, &switch);
    };
    switch(&mut trace, 1_000, 10, 9);
    switch(&mut trace, 3_000, 9, 10);
    for (kind, timestamp) in [(EventKind::DurationBegin, 1_200), (EventKind::DurationEnd, 2_200)] {
        let thread = ThreadRef::Inline { process: 7, thread: 9 };
        let (category, name) = (StringRef::Inline("c"), StringRef::Inline("slice"));
        fxt::event(
            &mut trace,
            &fxt::Event { kind, timestamp, thread, category, name, args: &[], payload: None },
        );
    }
    switch(&mut trace, 4_000, 10, 9);
    for (is_repeatable, expected) in [(true, Some(1_000)), (false, None)] {
        let wanted = Wanted::nothing().columns(TableId::Slice, &["running"]);
        let mut batches = Vec::new();
        let mut source = Packets(trace.clone(), is_repeatable);
        let summary = read(&mut source, &wanted, tempfile::tempfile, &mut batches).expect("a trace");
        let running = batches
            .pop()
            .and_then(|batch: Batch| batch.columns.into_iter().flatten().next())
            .expect("a column");
        let Data::Int(values) = &running.data else { panic!("numbers") };
        let is_known = running.is_valid.first() != Some(&false);
        assert_eq!(is_known.then(|| values[0]), expected);
        let counted = summary.left_out.iter().find(|(what, _)| what.contains("`running`"));
        assert_eq!(counted.map(|(_, count)| count), (!is_repeatable).then_some(1));
    }
}
