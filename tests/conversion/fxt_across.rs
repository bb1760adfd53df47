//! From Perfetto's packets to FXT, and from FXT to packets.

use hairline::{Flow, Format, trace_scope};
use hairline_convert::TraceFormat;
use hairline_tests::equal::Shown;
use hairline_tests::recording::record;

use crate::track_event::everything;
use crate::{convert, read};

/// Slices as FXT's importer and that of packets both show them: FXT's tracks have their names elsewhere.
const SAME: [&str; 4] = ["flows", "threads", "processes", "counters"];

#[track_caller]
fn shows_the_same(from: Format, to: TraceFormat, tables: &[&str], program: impl FnOnce()) -> [Shown; 2] {
    let trace = read(record(from, |_| program()).path());
    let (converted, _) = convert(&trace, to);
    let shown = [Shown::of_clean(&trace), Shown::of_clean(&converted)];
    for table in tables {
        assert_eq!(shown[1].table(table), shown[0].table(table), "{table}");
    }
    shown
}

/// Time, duration, depth, category and name of each slice.
fn slices(shown: &Shown) -> Vec<String> {
    let columns = |row: &String| row.split('\t').take(5).collect::<Vec<_>>().join("\t");
    shown.table("slices").iter().map(columns).collect()
}

#[test]
fn packets_become_fxt() {
    let [before, after] = shows_the_same(Format::TrackEvent, TraceFormat::Fxt, &SAME, everything);
    assert_eq!(slices(&after), slices(&before));
}

#[test]
fn fxt_becomes_packets() {
    let [before, after] = shows_the_same(Format::Fxt, TraceFormat::TrackEvent, &SAME, everything);
    assert_eq!(slices(&after), slices(&before));
}

#[test]
fn flows_whose_threads_are_told_of_in_the_wrong_order_are_whole_in_fxt() {
    let [before, _] = shows_the_same(Format::TrackEvent, TraceFormat::Fxt, &["flows"], || {
        let mut flows: Vec<Flow> = (0..200).map(|_| Flow::new()).collect();
        for round in 0..4 {
            flows = std::thread::spawn(move || {
                for flow in &flows {
                    if round == 3 {
                        trace_scope!("t", "last", end_flow: flow);
                    } else {
                        trace_scope!("t", "hop", flow: flow);
                    }
                }
                flows
            })
            .join()
            .unwrap();
        }
    });
    assert_eq!(before.table("flows").len(), 600);
}
