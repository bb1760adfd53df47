//! TrackEvent: what a stream says of itself, and the state of a sequence.

use hairline_formats::track_event::fields::clock;
use hairline_formats::track_event::{
    self as te, Event, EventType, Interned, InternedKind, Name, SequenceId, SequenceStart, SystemInfo,
    TraceStats, TrackUuid, clock_snapshot, compressed_packets, interned, sequence_start,
    synchronization_marker, system_info, trace_stats, trace_uuid,
};
use hairline_tests::judge::{load_bytes, try_load_bytes};

use super::{instant, on_track, root, rows, start};

const SLICES: &str =
    "select s.ts, s.category, s.name, t.name from slice s join track t on s.track_id = t.id order by s.ts";

#[test]
fn a_packet_without_a_track_or_clock_has_those_of_its_sequence_s_defaults() {
    let named = |name, timestamp| Event {
        name: Some(Name::Text(name)),
        ..Event::new(SequenceId(1), EventType::Instant, timestamp)
    };
    let mut trace = Vec::new();
    root(&mut trace, 10, "ten");
    root(&mut trace, 11, "eleven");
    start(&mut trace, 10, &[]);
    te::event(&mut trace, &named("by default", 5));
    te::event(&mut trace, &Event { track_uuid: Some(TrackUuid(11)), ..named("another track", 5) });
    te::event(&mut trace, &Event { clock_id: Some(clock::BOOTTIME), ..named("another clock", 1500) });
    te::event(&mut trace, &named("since the last but one", 5));
    let expected = [
        "1005\tNULL\tby default\tten",
        "1010\tNULL\tanother track\televen",
        "1015\tNULL\tsince the last but one\tten",
        "1500\tNULL\tanother clock\tten",
    ];
    assert_eq!(rows(&trace, [SLICES]), [expected.join("\n")]);
}

#[test]
fn a_new_start_makes_void_what_the_sequence_said_before() {
    let mut trace = Vec::new();
    root(&mut trace, 10, "ten");
    root(&mut trace, 11, "eleven");
    let by_number = Event {
        name: Some(Name::Iid(1)),
        categories: &[Name::Iid(1)],
        ..Event::new(SequenceId(1), EventType::Instant, 5)
    };
    te::event(&mut trace, &by_number); // before any state: passed over
    start(&mut trace, 10, &[]);
    interned(
        &mut trace,
        SequenceId(1),
        &[
            Interned::Text { kind: InternedKind::EventName, iid: 1, name: "old" },
            Interned::Text { kind: InternedKind::Category, iid: 1, name: "c" },
        ],
    );
    te::event(&mut trace, &by_number);
    let again = SequenceStart {
        sequence: SequenceId(1),
        first: false,
        dropped: true,
        track_uuid: TrackUuid(11),
        extra_counters: &[],
        timestamp_ns: 2000,
    };
    sequence_start(&mut trace, &again);
    interned(
        &mut trace,
        SequenceId(1),
        &[Interned::Text { kind: InternedKind::EventName, iid: 1, name: "new" }],
    );
    te::event(&mut trace, &Event { categories: &[], ..by_number });
    let verdict = load_bytes(&trace, &[SLICES]);
    assert_eq!(verdict.results[0].text(), "1005\tc\told\tten\n2005\tNULL\tnew\televen");
    assert_eq!(verdict.stat("tokenizer_skipped_packets"), 1, "{:?}", verdict.complaints);
}

#[test]
fn clocks_are_converted_by_the_snapshot_before_them() {
    let mut trace = Vec::new();
    root(&mut trace, 10, "t");
    clock_snapshot(
        &mut trace,
        SequenceId(1),
        &[(clock::BOOTTIME, 1000), (clock::MONOTONIC, 500), (clock::REALTIME, 7)],
    );
    let on_clock = |clock_id, timestamp| Event { clock_id, ..on_track(10, EventType::Instant, timestamp) };
    te::event(&mut trace, &on_clock(Some(clock::MONOTONIC), 600));
    te::event(&mut trace, &on_clock(Some(clock::REALTIME), 207));
    te::event(&mut trace, &on_clock(None, 1300));
    let [slices, clocks] = rows(
        &trace,
        [
            "select ts from slice order by ts",
            "select clock_name, clock_value, ts, snapshot_id from clock_snapshot order by clock_name",
        ],
    );
    assert_eq!(slices, "1100\n1200\n1300");
    assert_eq!(clocks, "BOOTTIME\t1000\t1000\t0\nMONOTONIC\t500\t1000\t0\nREALTIME\t7\t1000\t0");
}

#[test]
fn a_synchronization_marker_changes_nothing() {
    let with = |marked: bool| {
        let mut trace = Vec::new();
        root(&mut trace, 10, "t");
        start(&mut trace, 10, &[]);
        te::event(&mut trace, &Event::new(SequenceId(1), EventType::Instant, 5));
        if marked {
            synchronization_marker(&mut trace, SequenceId(1));
        }
        te::event(&mut trace, &Event::new(SequenceId(1), EventType::Instant, 5));
        rows(&trace, [SLICES])
    };
    assert_eq!(with(true), with(false));
    assert_eq!(with(true)[0].lines().count(), 2);
}

#[test]
fn a_uuid_is_the_trace_s_own() {
    let mut trace = Vec::new();
    trace_uuid(&mut trace, SequenceId(1), 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
    let uuid = "select str_value from metadata where name = 'trace_uuid'";
    assert_eq!(rows(&trace, [uuid]), ["01234567-89ab-cdef-fedc-ba9876543210"]);
}

#[test]
fn of_a_machine_the_kernel_and_the_timezone_are_shown() {
    let machine = SystemInfo {
        sysname: "Linux",
        release: "6.1",
        version: "#1",
        machine: "x86_64",
        tracer: "a tracer",
        page_size: 4096,
        num_cpus: 8,
        timezone_off_mins: -90,
        ram_bytes: 1 << 34,
    };
    let mut trace = Vec::new();
    system_info(&mut trace, SequenceId(1), &machine);
    let sql = "select name, coalesce(str_value, int_value) from metadata where name not like 'trace_%' order by name";
    let expected = "system_machine\tx86_64\nsystem_name\tLinux\nsystem_release\t6.1\nsystem_version\t#1\ntimezone_off_mins\t-90";
    assert_eq!(rows(&trace, [sql]), [expected], "the tracer, pages, processors and memory are in no table");
}

#[test]
fn statistics_are_stats_and_a_loss_is_a_complaint() {
    let of = TraceStats {
        size: 100,
        bytes_written: 20,
        chunks_written: 3,
        chunks_discarded: 4,
        events_lost: 5,
        flushes_requested: 7,
        flushes_succeeded: 6,
    };
    let mut trace = Vec::new();
    trace_stats(&mut trace, SequenceId(1), &of);
    let verdict = load_bytes(&trace, &[]);
    let expected = [
        ("traced_buf_buffer_size", 100),
        ("traced_buf_bytes_written", 20),
        ("traced_buf_bytes_read", 20),
        ("traced_buf_chunks_written", 3),
        ("traced_buf_chunks_read", 3),
        ("traced_buf_chunks_discarded", 4),
        ("traced_buf_trace_writer_packet_loss", 5),
        ("traced_flushes_requested", 7),
        ("traced_flushes_succeeded", 6),
        ("traced_producers_connected", 1),
        ("traced_total_buffers", 1),
    ];
    for (name, value) in expected {
        assert_eq!(verdict.stat(name), value, "{name}");
    }
    let complaints: Vec<&str> = verdict.complaints.iter().map(|stat| stat.name.as_str()).collect();
    assert_eq!(complaints, ["traced_buf_trace_writer_packet_loss"]);
}

/// A zlib stream that stores its bytes as they are (RFC 1950, RFC 1951 section 3.2.4).
fn stored(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a block of less than 64 KiB");
    let (mut a, mut b) = (1_u32, 0);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    let header = [0x78, 0x01, 0x01]; // deflate, no preset dictionary; the last block, stored
    [&header, &length.to_le_bytes()[..], &(!length).to_le_bytes(), bytes, &(b << 16 | a).to_be_bytes()]
        .concat()
}

#[test]
fn compressed_packets_are_read_in_their_place_and_broken_ones_fail_the_file() {
    let mut inside = Vec::new();
    root(&mut inside, 10, "t");
    start(&mut inside, 10, &[]);
    te::event(
        &mut inside,
        &Event { name: Some(Name::Text("inside")), ..Event::new(SequenceId(1), EventType::Instant, 5) },
    );
    let mut trace = Vec::new();
    compressed_packets(&mut trace, &stored(&inside));
    te::event(
        &mut trace,
        &Event { name: Some(Name::Text("after")), ..Event::new(SequenceId(1), EventType::Instant, 5) },
    );
    assert_eq!(rows(&trace, [SLICES]), ["1005\tNULL\tinside\tt\n1010\tNULL\tafter\tt"]);
    compressed_packets(&mut trace, &stored(&[])); // no packets
    instant(&mut trace, 10, "later", 2000);
    assert_eq!(rows(&trace, ["select count(*) from slice"]), ["3"]);
    compressed_packets(&mut trace, b"not zlib");
    let error = try_load_bytes(&trace, &[]).unwrap_err();
    assert!(error.to_string().contains("Failed to decompress"), "{error}");
}
