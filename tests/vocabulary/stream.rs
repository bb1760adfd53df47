//! What a stream says of itself.

use std::time::Duration;

use hairline::{Format, trace_instant, trace_scope};
use hairline_formats::track_event::SYNCHRONIZATION_MARKER;
use hairline_tests::recording::{FORMATS, record, record_with};

#[test]
fn a_trace_knows_its_machine_and_its_own_number() {
    let mut uuids = Vec::new();
    for format in FORMATS {
        let trace = record(format, |_| trace_instant!("t", "i"));
        let metadata = |name: &str| {
            trace.rows(&format!("select coalesce(str_value, int_value) from metadata where name = '{name}'"))
        };
        assert_eq!(metadata("system_name"), "Linux", "{format:?}");
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(metadata("system_release"), release.trim(), "{format:?}");
        assert_eq!(metadata("system_machine"), std::env::consts::ARCH, "{format:?}");
        let uuid = metadata("trace_uuid");
        assert_eq!((uuid.len(), uuid.matches('-').count()), (36, 4), "{format:?}: {uuid}");
        uuids.push(uuid);
    }
    assert_ne!(uuids[0], uuids[1]);
}

#[test]
fn a_trace_has_the_time_at_which_its_session_ended() {
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_instant!("t", "first");
            std::thread::sleep(Duration::from_millis(20));
            trace_instant!("t", "last");
        });
        let last = "(select ts from slice where name = 'last')";
        let end = trace.rows(&format!(
            "select count(*), min(int_value >= {last} and int_value < {last} + 5000000000) from metadata \
             where name = 'tracing_disabled_ns'"
        ));
        assert_eq!(end, "1\t1", "{format:?}");
    }
}

#[test]
fn every_clock_is_told_at_the_start_and_again() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.heartbeat(Duration::from_millis(50)),
            |_| {
                for _ in 0..20 {
                    trace_instant!("t", "i");
                    std::thread::sleep(Duration::from_millis(20));
                }
            },
        );
        let clocks = "select clock_name, count(*) >= 3 from clock_snapshot where clock_name is not null group by 1 order by 1";
        let again = u8::from(format == Format::TrackEvent);
        let names =
            ["BOOTTIME", "MONOTONIC", "MONOTONIC_COARSE", "MONOTONIC_RAW", "REALTIME", "REALTIME_COARSE"];
        assert_eq!(trace.rows(clocks), names.map(|n| format!("{n}\t{again}")).join("\n"), "{format:?}");
        let skew = trace.rows(
            "select max(abs(r.clock_value - b.clock_value - (select r0.clock_value - b0.clock_value from clock_snapshot r0 \
             join clock_snapshot b0 using (snapshot_id) where r0.clock_name = 'MONOTONIC' and b0.clock_name = 'BOOTTIME' \
             limit 1))) < 1000000 from clock_snapshot r join clock_snapshot b using (snapshot_id) \
             where r.clock_name = 'MONOTONIC' and b.clock_name = 'BOOTTIME'",
        );
        assert_eq!(skew, "1", "{format:?}: the clocks drift apart");
        let file = std::fs::read(trace.path()).unwrap();
        let markers = file.windows(16).filter(|w| **w == SYNCHRONIZATION_MARKER).count();
        assert!(if format == Format::Fxt { markers == 0 } else { markers >= 4 }, "{format:?}: {markers}");
    }
}

#[test]
fn the_statistics_say_what_went_through_the_ring_and_what_did_not() {
    let trace = record_with(
        Format::TrackEvent,
        |b| b.buffer_size(16 << 10).chunk_size(4096),
        |session| {
            for _ in 0..10 {
                for _ in 0..10_000 {
                    trace_scope!("t", "s");
                }
                session.flush().unwrap();
            }
        },
    );
    let lost = trace.summary.lost.total();
    assert!(lost > 0);
    let stat = |name: &str| {
        let verdict = trace.ask(&[&format!("select value from stats where name = 'traced_buf_{name}'")]);
        verdict.results[0].text().parse::<u64>().unwrap()
    };
    assert_eq!(stat("trace_writer_packet_loss"), lost);
    assert_eq!(stat("buffer_size"), 16 << 10);
    assert!(stat("bytes_written") > 10_000 && stat("bytes_written") <= trace.summary.bytes);
    assert!(stat("chunks_read") > 3, "{}", stat("chunks_read"));
}

#[test]
fn a_compressed_trace_says_the_same_in_fewer_bytes() {
    let run = |compress: bool| {
        record_with(
            Format::TrackEvent,
            |b| b.compress(compress).buffer_size(64 << 20),
            |session| {
                for n in 0..20_000 {
                    trace_scope!("t", "outer", n);
                    trace_instant!("t", "i", text = "the same text each time");
                    if n == 10_000 {
                        session.flush().unwrap();
                    }
                }
            },
        )
    };
    let (plain, small) = (run(false), run(true));
    let sql = "select count(*), sum(dur < 0), sum(depth), count(distinct arg_set_id) from slice";
    assert_eq!(plain.rows(sql), small.rows(sql));
    assert_eq!(
        (plain.summary.records, plain.summary.lost.total()),
        (small.summary.records, small.summary.lost.total())
    );
    assert!(small.summary.bytes * 3 < plain.summary.bytes, "{} {}", small.summary.bytes, plain.summary.bytes);
    let file = std::fs::read(small.path()).unwrap();
    assert_eq!(file.len() as u64, small.summary.bytes);
    let marked = file.windows(16).any(|w| *w == SYNCHRONIZATION_MARKER);
    assert!(marked, "the markers can be found without decompressing");
}
