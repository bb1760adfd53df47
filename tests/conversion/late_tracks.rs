//! Packets that describe a track after its first event, as tracing-perfetto writes them.

use hairline_convert::TraceFormat::{Fxt, Json, TrackEvent};
use hairline_convert::{Context, Report, create, open};
use hairline_formats::track_event::{
    self as te, Event, EventType, Name, ProcessTrack, SequenceId, ThreadTrack, TrackUuid,
};

use crate::convert;
use crate::differences::{different, shown};

const PROCESS: TrackUuid = TrackUuid(5);
const SEQUENCE: SequenceId = SequenceId(1);

fn event(out: &mut Vec<u8>, track: TrackUuid, kind: EventType, time: u64, name: &str) {
    te::event(
        out,
        &Event {
            needs_state: false,
            name: (!name.is_empty()).then_some(Name::Text(name)),
            track_uuid: Some(track),
            ..Event::new(SEQUENCE, kind, time)
        },
    );
}

/// Two threads. The outer slice of each thread follows the inner one, because a slice is written
/// when it ends.
fn late() -> Vec<u8> {
    let mut out = Vec::new();
    for (tid, name) in [(8, "main"), (9, "worker")] {
        let thread = TrackUuid(tid);
        event(&mut out, thread, EventType::SliceBegin, 1_500, "inner");
        let tid = i64::try_from(tid).expect("small");
        te::thread_descriptor(
            &mut out,
            SEQUENCE,
            &ThreadTrack { uuid: thread, parent_uuid: PROCESS, pid: 7, tid, name },
        );
        event(&mut out, thread, EventType::SliceEnd, 1_700, "");
        event(&mut out, thread, EventType::SliceBegin, 1_000, "outer");
        event(&mut out, thread, EventType::SliceEnd, 2_000, "");
        event(&mut out, thread, EventType::SliceBegin, 2_500, "last");
        event(&mut out, thread, EventType::SliceEnd, 2_700, "");
    }
    te::process_descriptor(
        &mut out,
        SEQUENCE,
        &ProcessTrack { uuid: PROCESS, pid: 7, name: "app", cmdline: &[] },
    );
    out
}

#[test]
fn threads_are_threads_from_their_first_event() {
    let trace = late();
    let before = shown(&trace);
    assert_eq!(before.table("slices").len(), 6);
    for to in [TrackEvent, Fxt, Json] {
        let (converted, report) = convert(&trace, to);
        assert_eq!(report, Report::default(), "{}", to.name());
        let different = different(&before, &shown(&converted));
        assert!(different.is_empty(), "as {}:\n{different}", to.name());
    }
}

/// Descriptions in a compressed packet and in a compressed file are found too.
#[test]
fn compression_hides_no_description() {
    use std::io::Write as _;
    let trace = late();
    let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    file.write_all(&trace).expect("memory");
    let mut packets = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    packets.write_all(&trace).expect("memory");
    let mut packet = Vec::new();
    hairline_formats::proto::put_message(&mut packet, te::fields::trace::PACKET, |out| {
        let bytes = packets.finish().expect("memory");
        hairline_formats::proto::put_bytes(out, te::fields::trace_packet::COMPRESSED_PACKETS, &bytes);
    });
    let plain = convert(&trace, Fxt).0;
    for other in [file.finish().expect("memory"), packet] {
        assert!(convert(&other, Fxt).0 == plain);
    }
}

/// A pipe can be read only once: the report says what that changes.
#[test]
fn an_input_that_is_read_once_is_counted() {
    let trace = late();
    for to in [Fxt, Json] {
        let (mut reader, mut context) = (open(&trace[..], None).expect("a trace"), Context::new());
        let mut out = Vec::new();
        let mut writer = create(to, &mut out);
        while let Some(item) = reader.next(&mut context).expect("a whole trace") {
            writer.write(&item).expect("memory");
        }
        writer.finish().expect("memory");
        let said: Vec<_> = writer.report().iter().collect();
        assert!(said.contains(&("tracks described as threads after their first event", 2)), "{said:?}");
    }
}

/// A packet that the first reading passes over, or whose texts it mends, does not end the look ahead.
#[test]
fn damaged_packets_hide_no_description() {
    let mut hole = Vec::new();
    event(&mut hole, TrackUuid(8), EventType::Instant, 1_400, &"n".repeat(60));
    let len = hole.len();
    let mut not_utf8 = hole.clone();
    let name = hole.iter().position(|byte| *byte == b'n').expect("a name");
    not_utf8[name] = 0xff;
    hole[len - 40..].fill(0);
    let late = late();
    let plain = convert(&late, Fxt).0;
    for (packet, counted) in [(hole, "records with a hole"), (not_utf8, "texts that are not UTF-8")] {
        let trace = [&packet[..], &late].concat();
        let (converted, report) = convert(&trace, Fxt);
        let said: Vec<_> = report.iter().map(|(what, _)| what).collect();
        assert!(said.len() == 1 && said[0].starts_with(counted), "{said:?}");
        assert!(counted != "records with a hole" || converted == plain);
    }
}
