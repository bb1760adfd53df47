//! Several traces become one.

use hairline_convert::TraceFormat;
use hairline_tests::equal::Shown;
use hairline_tests::recording::{FORMATS, record};

use crate::track_event::everything;
use crate::{merge, read};

const ALL: [TraceFormat; 3] = [TraceFormat::TrackEvent, TraceFormat::Fxt, TraceFormat::Json];

/// Time, duration, depth, category and name of each slice.
fn slices(shown: &[Shown]) -> Vec<String> {
    let rows = shown.iter().flat_map(|shown| shown.table("slices"));
    let mut rows: Vec<_> = rows.map(|row| row.split('\t').take(5).collect::<Vec<_>>().join("\t")).collect();
    rows.sort();
    rows
}

/// Whatever the order: the importer has no complaint, though clocks were read later in the first.
#[test]
fn recordings_of_one_machine_become_one() {
    let traces = FORMATS.map(|format| read(record(format, |_| everything()).path()));
    let shown = [&traces[0], &traces[1]].map(|trace| Shown::of_clean(trace));
    for order in [[0, 1], [1, 0]] {
        for to in ALL {
            let (merged, report) = merge(&order.map(|at| &traces[at][..]), to);
            let merged = Shown::of_clean(&merged);
            assert_eq!(slices(std::slice::from_ref(&merged)), slices(&shown), "{order:?} {to:?} {report:?}");
            // A process of one trace is not that of another, which may have its id in another container.
            assert_eq!(merged.table("processes").len(), 2, "{order:?} {to:?}");
            assert_eq!(merged.table("flows").len(), 2, "{order:?} {to:?}");
        }
    }
}

#[test]
fn clocks_that_were_read_earlier_are_not_told_later() {
    for format in FORMATS {
        let [first, second] = [0, 1].map(|_| read(record(format, |_| everything()).path()));
        let _ = Shown::of_clean(&merge(&[&second, &first], TraceFormat::TrackEvent).0);
    }
}

/// A flow 1 from a slice to another, 20 us later.
fn with_a_flow(ts: u32, pid: &str) -> Vec<u8> {
    let at = |ts: u32| format!(r#""ts":{ts},"pid":{pid},"tid":{pid}}}"#);
    let slice = |ts: u32| format!(r#"{{"ph":"X","name":"{ts}","dur":1,{}"#, at(ts));
    let flow = |ph: char, ts: u32| format!(r#"{{"ph":"{ph}","name":"f","id":1,"bp":"e",{}"#, at(ts));
    let events = [slice(ts), flow('s', ts), slice(ts + 20), flow('f', ts + 20)];
    format!("[{}]", events.join(",")).into_bytes()
}

/// The first is not over when the second begins.
const TWO_FLOWS: [&str; 2] = ["10000\t10\t30000\t30", "20000\t20\t40000\t40"];

#[test]
fn flows_that_each_trace_counts_stay_apart() {
    let json = [with_a_flow(10, "1"), with_a_flow(20, "2")];
    for by in ALL {
        let traces = [&json[0], &json[1]].map(|trace| merge(&[trace], by).0);
        for to in ALL {
            let merged = Shown::of_clean(&merge(&[&traces[0], &traces[1]], to).0);
            assert_eq!(merged.table("flows"), TWO_FLOWS, "{by:?} as {to:?}");
        }
    }
}

#[test]
fn processes_that_have_only_names_stay_apart() {
    let traces = [with_a_flow(10, r#""a""#), with_a_flow(20, r#""b""#)];
    for to in ALL {
        let merged = Shown::of_clean(&merge(&[&traces[0], &traces[1]], to).0);
        let names = merged.table("processes").iter().map(|row| row.split('\t').nth(1));
        assert_eq!(names.collect::<Vec<_>>(), [Some("a"), Some("b")], "{to:?}");
        assert_eq!(merged.table("flows"), TWO_FLOWS, "{to:?}");
    }
}

/// Each has an interval 1 of the same name, and they overlap.
#[test]
fn intervals_of_equal_numbers_stay_apart() {
    let of = |begin: u32, end: u32, pid: u32| {
        let event = |ph: char, ts: u32| {
            format!(r#"{{"ph":"{ph}","cat":"c","id":1,"name":"n","ts":{ts},"pid":{pid},"tid":{pid}}}"#)
        };
        format!("[{},{}]", event('b', begin), event('e', end)).into_bytes()
    };
    for second_pid in [1, 2] {
        let json = [of(1, 10, 1), of(5, 20, second_pid)];
        for by in ALL {
            let traces = [&json[0], &json[1]].map(|trace| merge(&[trace], by).0);
            for to in ALL {
                let merged = merge(&[&traces[0], &traces[1]], to).0;
                let slices = slices(&[Shown::of_clean(&merged)]);
                assert_eq!(slices, ["1000\t9000\t0\tc\tn", "5000\t15000\t0\tc\tn"], "{by:?} as {to:?}");
            }
        }
    }
}
