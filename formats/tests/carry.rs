//! Traces that are split: the state at the beginning of the second part.

use hairline_formats::fxt::{self, EventKind, Patch, StringRef, ThreadRef};
use hairline_formats::track_event::{
    self as te, EventType, Interned, InternedKind, Name, SequenceId, TrackUuid,
};
use proptest::prelude::*;

const THREAD: ThreadRef = ThreadRef::Index(1);

fn event(out: &mut Vec<u8>, kind: EventKind, timestamp: u64, payload: Option<u64>) {
    let name = StringRef::Index(7);
    fxt::event(
        out,
        &fxt::Event { kind, timestamp, thread: THREAD, category: StringRef::Empty, name, args: &[], payload },
    );
}

/// A thread with a name, a string, a slice that has ended, and an open slice with a flow.
fn records() -> Vec<u8> {
    let mut out = Vec::new();
    fxt::thread_record(&mut out, 1, 10, 11);
    fxt::kernel_object(&mut out, fxt::KERNEL_OBJECT_THREAD, 11, StringRef::Inline("worker"), &[]);
    fxt::string_record(&mut out, 7, "slice");
    event(&mut out, EventKind::DurationBegin, 100, None);
    event(&mut out, EventKind::DurationEnd, 110, None);
    event(&mut out, EventKind::DurationBegin, 120, None);
    event(&mut out, EventKind::FlowBegin, 120, Some(5));
    event(&mut out, EventKind::AsyncBegin, 130, Some(6));
    out
}

fn kinds(records: &[u8]) -> Vec<(EventKind, u64)> {
    let mut reader = fxt::RecordReader::new(records);
    let mut kinds = Vec::new();
    while let Some((_, record)) = reader.next().expect("records") {
        if let fxt::Record::Event(event) = record {
            kinds.push((event.kind, event.timestamp));
        }
    }
    kinds
}

fn fxt_put(carry: &mut fxt::Carry) -> Vec<u8> {
    let mut out = Vec::new();
    carry.put(&mut out);
    out
}

#[test]
fn in_fxt_open_slices_and_all_names_are_written_again() {
    let mut carry = fxt::Carry::new();
    assert_eq!(carry.look(&records()), []);
    let second = fxt_put(&mut carry);
    let expected =
        [(EventKind::DurationBegin, 120), (EventKind::FlowBegin, 120), (EventKind::AsyncBegin, 130)];
    assert_eq!(kinds(&second), expected);
    let text = String::from_utf8_lossy(&second);
    assert!(text.contains("worker") && text.contains("slice"));

    let mut end = Vec::new();
    event(&mut end, EventKind::DurationEnd, 140, None);
    event(&mut end, EventKind::AsyncEnd, 141, Some(6));
    assert_eq!(carry.look(&end), []);
    let third = fxt_put(&mut carry);
    assert_eq!(kinds(&third), []);
    carry.ended(11);
    assert!(!String::from_utf8_lossy(&fxt_put(&mut carry)).contains("worker"));
}

/// The importer ignores steps of a flow without a begin.
#[test]
fn in_fxt_a_flow_begins_in_each_part() {
    let mut carry = fxt::Carry::new();
    carry.look(&records());
    let mut end = Vec::new();
    event(&mut end, EventKind::DurationEnd, 140, None);
    carry.look(&end);
    fxt_put(&mut carry);
    let mut steps = Vec::new();
    event(&mut steps, EventKind::DurationBegin, 200, None);
    let at = steps.len();
    event(&mut steps, EventKind::FlowStep, 200, Some(5));
    event(&mut steps, EventKind::FlowStep, 210, Some(5));
    event(&mut steps, EventKind::FlowStep, 210, Some(99)); // begun in another process
    let patches = carry.look(&steps);
    let [Patch { at: patched, header }] = patches[..] else { panic!("{patches:?}") };
    assert_eq!(patched, at);
    steps[at..at + 8].copy_from_slice(&header.to_le_bytes());
    assert_eq!(kinds(&steps)[1], (EventKind::FlowBegin, 200));
}

fn packets() -> Vec<u8> {
    let mut out = Vec::new();
    let start = te::SequenceStart {
        sequence: SequenceId(3),
        first: true,
        dropped: false,
        track_uuid: TrackUuid(30),
        extra_counters: &[],
        timestamp_ns: 1000,
    };
    te::sequence_start(&mut out, &start);
    let thread =
        te::ThreadTrack { uuid: TrackUuid(30), parent_uuid: TrackUuid(1), pid: 10, tid: 11, name: "worker" };
    te::thread_descriptor(&mut out, SequenceId(3), &thread);
    te::interned(
        &mut out,
        SequenceId(3),
        &[Interned::Text { kind: InternedKind::EventName, iid: 4, name: "slice" }],
    );
    te::interned(
        &mut out,
        SequenceId(3),
        &[Interned::Text { kind: InternedKind::LogBody, iid: 1, name: "a message" }],
    );
    let begin =
        te::Event { name: Some(Name::Iid(4)), ..te::Event::new(SequenceId(3), EventType::SliceBegin, 5) };
    te::event(&mut out, &begin);
    te::event(&mut out, &te::Event::new(SequenceId(3), EventType::SliceEnd, 6));
    te::event(&mut out, &begin);
    out
}

fn te_put(carry: &mut te::Carry) -> Vec<u8> {
    let mut out = Vec::new();
    carry.put(|packet| out.extend_from_slice(packet));
    out
}

#[test]
fn in_track_event_a_sequence_continues_with_its_state() {
    let mut carry = te::Carry::new();
    carry.look(&packets());
    let second = te_put(&mut carry);
    let mut reader = te::PacketReader::new(second.as_slice());
    let (mut clock, mut begins) = (0, Vec::new());
    while let Some((_, packet)) = reader.next().expect("packets") {
        match packet.data {
            Some(te::PacketData::Clocks(clocks)) => {
                clock = clocks.map(Result::unwrap).find(|c| c.is_incremental).expect("its clock").timestamp;
            }
            Some(te::PacketData::Event(event)) => {
                begins.push((event.kind, packet.timestamp, packet.clock_id));
            }
            _ => {}
        }
    }
    assert_eq!(clock, 1016, "the time of its last event");
    assert_eq!(begins, [(Some(EventType::SliceBegin), Some(1016), Some(te::fields::clock::BOOTTIME))]);
    let text = String::from_utf8_lossy(&second);
    assert!(text.contains("worker") && text.contains("slice") && !text.contains("a message"));
    carry.ended(SequenceId(3));
    assert!(te_put(&mut carry).is_empty());
}

#[test]
fn a_second_split_writes_the_same_state_as_the_first() {
    let (mut first, mut second) = (te::Carry::new(), te::Carry::new());
    first.look(&packets());
    second.look(&te_put(&mut first));
    assert_eq!(te_put(&mut second), te_put(&mut first));
    let (mut first, mut second) = (fxt::Carry::new(), fxt::Carry::new());
    first.look(&records());
    second.look(&fxt_put(&mut first));
    assert_eq!(fxt_put(&mut second), fxt_put(&mut first));
}

proptest! {
    #[test]
    fn bytes_that_are_no_trace_are_ignored(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0..400_usize) {
        for whole in [records(), packets(), Vec::new()] {
            let mut mixed = whole;
            mixed.splice(at.min(mixed.len()).., bytes.iter().copied());
            let (mut fxt, mut te) = (fxt::Carry::new(), te::Carry::new());
            fxt.look(&mixed);
            te.look(&mixed);
            fxt_put(&mut fxt);
            te_put(&mut te);
        }
    }
}
