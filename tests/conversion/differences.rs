//! Small traces of what other tracers write: trace_processor shows the same of them in each format, or the
//! report says what is different.

use hairline_convert::TraceFormat::{Fxt, Json, TrackEvent};
use hairline_convert::{Report, TraceFormat};
use hairline_tests::equal::Shown;
use hairline_tests::judge;

use hairline_formats::fxt::ThreadRef;

use crate::convert;
use crate::fxt_handmade::{Trace, WORKER};
use crate::matrix::same;

/// The tables that are compared.
pub(crate) const TABLES: [&str; 4] = ["slices", "arguments", "counters", "flows"];

/// What trace_processor shows of a trace, whether it complains or not.
pub(crate) fn shown(trace: &[u8]) -> Shown {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::io::Write::write_all(&mut file, trace).expect("a temporary file");
    Shown::of(file.path())
}

/// What is different after a conversion, table by table: empty if all rows are equal.
pub(crate) fn different(before: &Shown, after: &Shown) -> String {
    let mut text = String::new();
    for table in TABLES {
        let (before, after) = (same(before, table), same(after, table));
        for (sign, these, those) in [('-', &before, &after), ('+', &after, &before)] {
            for row in these.iter().filter(|row| count(these, row) > count(those, row)) {
                text += &format!("  {table} {sign} {row}\n");
            }
        }
    }
    text
}

fn count(rows: &[String], row: &String) -> usize {
    rows.iter().filter(|other| *other == row).count()
}

/// Converts to a format. Returns what is different and what the report says.
pub(crate) fn outcome(trace: &[u8], to: TraceFormat) -> (String, Report) {
    let (converted, report) = convert(trace, to);
    (different(&shown(trace), &shown(&converted)), report)
}

/// Requires the same rows in all formats, with nothing to report.
#[track_caller]
fn equal(trace: &[u8]) {
    let mut wrong = String::new();
    for to in [TrackEvent, Fxt, Json] {
        let (converted, report) = convert(trace, to);
        let different = different(&shown(trace), &shown(&converted));
        if !different.is_empty() || !report.is_empty() {
            wrong += &format!("as {}: {report:?}\n{different}", to.name());
        }
        if let Err(complaints) =
            std::panic::catch_unwind(|| judge::load_bytes(&converted, &[]).require_clean())
        {
            drop(complaints);
            wrong += &format!("as {}: complaints\n", to.name());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Requires the same rows in all formats, or a report.
#[track_caller]
fn equal_or_said(trace: &[u8]) {
    let mut wrong = String::new();
    for to in [TrackEvent, Fxt, Json] {
        let (different, report) = outcome(trace, to);
        if !different.is_empty() && report.is_empty() {
            wrong += &format!("as {}:\n{different}", to.name());
        } else if !different.is_empty() {
            println!("as {}: said: {report:?}\n{different}", to.name());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_flow_that_comes_to_two_slices_has_two_arrows() {
    equal(
        br#"[{"name":"a","ph":"X","ts":10,"dur":5,"pid":1,"tid":1,"bind_id":"0x7","flow_out":true},
             {"name":"b","ph":"X","ts":20,"dur":5,"pid":1,"tid":2,"bind_id":"0x7","flow_in":true},
             {"name":"c","ph":"X","ts":30,"dur":5,"pid":1,"tid":3,"bind_id":"0x7","flow_in":true}]"#,
    );
    equal(
        br#"[{"name":"a","ph":"X","ts":10,"dur":5,"pid":1,"tid":1,"bind_id":"0x7","flow_out":true},
             {"name":"b","ph":"X","ts":20,"dur":5,"pid":1,"tid":2,"bind_id":"0x7","flow_in":true},
             {"name":"c","ph":"X","ts":30,"dur":5,"pid":1,"tid":3,"bind_id":"0x7","flow_in":true,"flow_out":true},
             {"name":"d","ph":"X","ts":40,"dur":5,"pid":1,"tid":3,"bind_id":"0x7","flow_in":true}]"#,
    );
    equal(
        br#"[{"name":"a","ph":"X","ts":10,"dur":5,"pid":1,"tid":1},
             {"name":"flow","cat":"flow","ph":"s","ts":12,"id":7,"pid":1,"tid":1},
             {"name":"b","ph":"X","ts":20,"dur":5,"pid":1,"tid":2},
             {"name":"flow","cat":"flow","ph":"f","ts":22,"id":7,"pid":1,"tid":2,"bp":"e"},
             {"name":"c","ph":"X","ts":30,"dur":5,"pid":1,"tid":3},
             {"name":"flow","cat":"flow","ph":"f","ts":32,"id":7,"pid":1,"tid":3,"bp":"e"}]"#,
    );
}

#[test]
fn a_reused_flow_id() {
    equal_or_said(
        br#"[{"name":"a","ph":"X","ts":10,"dur":5,"pid":1,"tid":1},
             {"name":"f","cat":"f","ph":"s","ts":12,"id":7,"pid":1,"tid":1},
             {"name":"b","ph":"X","ts":20,"dur":5,"pid":1,"tid":2},
             {"name":"f","cat":"f","ph":"f","ts":22,"id":7,"pid":1,"tid":2,"bp":"e"},
             {"name":"c","ph":"X","ts":30,"dur":5,"pid":1,"tid":3},
             {"name":"f","cat":"f","ph":"s","ts":32,"id":7,"pid":1,"tid":3},
             {"name":"d","ph":"X","ts":40,"dur":5,"pid":1,"tid":3},
             {"name":"f","cat":"f","ph":"f","ts":42,"id":7,"pid":1,"tid":3,"bp":"e"}]"#,
    );
    equal_or_said(
        br#"[{"name":"a","ph":"X","ts":10,"dur":5,"pid":1,"tid":1},
             {"name":"f","cat":"f","ph":"s","ts":12,"id":7,"pid":1,"tid":1},
             {"name":"c","ph":"X","ts":30,"dur":5,"pid":2,"tid":3},
             {"name":"f","cat":"f","ph":"s","ts":32,"id":7,"pid":2,"tid":3},
             {"name":"b","ph":"X","ts":40,"dur":5,"pid":1,"tid":2},
             {"name":"f","cat":"f","ph":"f","ts":42,"id":7,"pid":1,"tid":2,"bp":"e"},
             {"name":"d","ph":"X","ts":50,"dur":5,"pid":2,"tid":3},
             {"name":"f","cat":"f","ph":"f","ts":52,"id":7,"pid":2,"tid":3,"bp":"e"}]"#,
    );
}

#[test]
fn complete_slices_with_an_equal_begin_the_child_first() {
    equal_or_said(
        br#"[{"name":"child","ph":"X","ts":10,"dur":5,"pid":1,"tid":1},
             {"name":"parent","ph":"X","ts":10,"dur":20,"pid":1,"tid":1},
             {"name":"next","ph":"X","ts":40,"dur":20,"pid":1,"tid":1}]"#,
    );
    equal_or_said(
        br#"[{"name":"child","ph":"X","ts":10.5,"dur":5.001,"pid":1,"tid":1},
             {"name":"parent","ph":"X","ts":10.5,"dur":20.001,"pid":1,"tid":1},
             {"name":"next","ph":"X","ts":40,"dur":20,"pid":1,"tid":1}]"#,
    );
}

#[test]
fn complete_slices_that_outlive_their_parent() {
    equal_or_said(
        br#"[{"name":"a","ph":"X","ts":10,"dur":10,"pid":1,"tid":1},
             {"name":"b","ph":"X","ts":15,"dur":20,"pid":1,"tid":1},
             {"name":"next","ph":"X","ts":40,"dur":20,"pid":1,"tid":1}]"#,
    );
    equal_or_said(
        br#"[{"name":"a","ph":"X","ts":10.5,"dur":10.001,"pid":1,"tid":1},
             {"name":"b","ph":"X","ts":15.5,"dur":20.001,"pid":1,"tid":1},
             {"name":"next","ph":"X","ts":40.001,"dur":20.001,"pid":1,"tid":1}]"#,
    );
}

#[test]
fn ends_of_another_name() {
    equal_or_said(
        br#"[{"name":"a","ph":"B","ts":10,"pid":1,"tid":1},
             {"name":"b","ph":"B","ts":15,"pid":1,"tid":1},
             {"name":"a","ph":"E","ts":20,"pid":1,"tid":1},
             {"name":"b","ph":"E","ts":25,"pid":1,"tid":1}]"#,
    );
    equal_or_said(
        br#"[{"name":"a","ph":"B","ts":10,"pid":1,"tid":1},
             {"name":"x","ph":"E","ts":20,"pid":1,"tid":1},
             {"name":"a","ph":"E","ts":25,"pid":1,"tid":1}]"#,
    );
}

#[test]
fn ends_with_and_without_a_name_in_a_thread_out_of_the_order_of_time() {
    equal_or_said(
        br#"[{"name":"b","ph":"B","ts":20,"pid":1,"tid":1},
             {"name":"","ph":"E","ts":30,"pid":1,"tid":1},
             {"name":"a","ph":"B","ts":20,"pid":1,"tid":1},
             {"name":"a","ph":"E","ts":40,"pid":1,"tid":1,"args":{"z":2}}]"#,
    );
    equal_or_said(
        br#"[{"name":"i","ph":"i","s":"t","ts":25,"pid":1,"tid":1},
             {"name":"b","ph":"B","ts":10,"pid":1,"tid":1},
             {"name":"","ph":"E","ts":40,"pid":1,"tid":1},
             {"name":"a","ph":"B","ts":20,"pid":1,"tid":1},
             {"name":"a","ph":"E","ts":40,"pid":1,"tid":1,"args":{"z":2}}]"#,
    );
}

#[test]
fn ends_that_are_out_of_the_order_of_time() {
    equal_or_said(
        br#"[{"name":"a","ph":"B","ts":10,"pid":1,"tid":1},
             {"name":"b","ph":"B","ts":20,"pid":1,"tid":1},
             {"name":"b","ph":"E","ts":40,"pid":1,"tid":1},
             {"name":"a","ph":"E","ts":30,"pid":1,"tid":1}]"#,
    );
    equal_or_said(
        br#"[{"name":"a","ph":"B","ts":10,"pid":1,"tid":1},
             {"name":"b","ph":"B","ts":20,"pid":1,"tid":1},
             {"name":"b","ph":"E","ts":40,"pid":1,"tid":1},
             {"ph":"E","ts":30,"pid":1,"tid":1}]"#,
    );
    equal_or_said(
        br#"[{"name":"a","cat":"x","ph":"B","ts":10,"pid":1,"tid":1},
             {"name":"b","cat":"y","ph":"B","ts":20,"pid":1,"tid":1},
             {"cat":"y","ph":"E","ts":40,"pid":1,"tid":1},
             {"cat":"x","ph":"E","ts":30,"pid":1,"tid":1}]"#,
    );
}

#[test]
fn a_slice_without_duration_before_a_bound_slice_of_its_time() {
    equal_or_said(
        br#"[{"name":"c","ph":"X","ts":40,"dur":0,"pid":1,"tid":1},
             {"name":"b","ph":"X","ts":10,"dur":1,"pid":1,"tid":1,"bind_id":"0x7","flow_out":true},
             {"name":"b","ph":"X","ts":40,"dur":1,"pid":1,"tid":1,"bind_id":"0x7","flow_in":true}]"#,
    );
}

#[test]
fn arguments_that_are_nested_deeply() {
    let args = format!("{}1{}", "{\"k\":".repeat(40), "}".repeat(40));
    equal_or_said(
        format!(r#"[{{"name":"a","ph":"X","ts":10,"dur":5,"pid":1,"tid":1,"args":{args}}}]"#).as_bytes(),
    );
}

#[test]
fn processes_with_ids_that_are_no_numbers() {
    equal_or_said(
        br#"[{"name":"a","ph":"X","ts":10,"dur":5,"pid":1.5,"tid":1},
             {"name":"b","ph":"X","ts":11,"dur":5,"pid":true,"tid":1},
             {"name":"c","ph":"X","ts":10,"dur":5,"pid":2.5,"tid":1},
             {"name":"d","ph":"X","ts":10,"dur":5,"pid":"x","tid":1},
             {"name":"e","ph":"X","ts":10,"dur":5,"pid":"y","tid":1}]"#,
    );
}

#[test]
fn fxt_flows_with_several_names() {
    use hairline_formats::fxt::EventKind::{DurationComplete, FlowBegin, FlowEnd, FlowStep};
    let mut trace = Trace::new(1_000_000_000);
    trace
        .event(DurationComplete, 100, "a", 200)
        .event(FlowBegin, 110, "begin", 77)
        .on(WORKER, DurationComplete, 300, "b", 400, &[])
        .on(WORKER, FlowStep, 310, "step", 77, &[])
        .event(DurationComplete, 500, "c", 600)
        .event(FlowEnd, 510, "end", 77)
        .event(DurationComplete, 700, "d", 800)
        .event(FlowBegin, 710, "begin", 77)
        .event(DurationComplete, 900, "e", 1000)
        .event(FlowEnd, 910, "end", 77);
    equal_or_said(&trace.0);
}

#[test]
fn a_flow_that_begins_at_the_end_of_its_slice() {
    use hairline_formats::fxt::EventKind::{DurationComplete, FlowBegin, FlowEnd};
    let mut trace = Trace::new(1_000_000_000);
    trace
        .event(DurationComplete, 100, "a", 200)
        .event(FlowBegin, 200, "f", 77)
        .on(WORKER, DurationComplete, 300, "b", 400, &[])
        .on(WORKER, FlowEnd, 400, "f", 77, &[]);
    equal_or_said(&trace.0);
}

#[test]
fn fxt_flows_of_two_processes_with_one_id() {
    use hairline_formats::fxt::EventKind::{DurationComplete, FlowBegin, FlowEnd};
    let other = ThreadRef::Inline { process: 70, thread: 90 };
    let mut trace = Trace::new(1_000_000_000);
    trace
        .event(DurationComplete, 100, "a", 200)
        .event(FlowBegin, 110, "f", 77)
        .on(other, DurationComplete, 100, "b", 200, &[])
        .on(other, FlowBegin, 120, "f", 77, &[])
        .event(DurationComplete, 300, "c", 400)
        .event(FlowEnd, 310, "f", 77)
        .on(other, DurationComplete, 300, "d", 400, &[])
        .on(other, FlowEnd, 320, "f", 77, &[]);
    equal_or_said(&trace.0);
}
