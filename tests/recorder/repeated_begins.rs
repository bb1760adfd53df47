//! What a chunk begins with when the ones before it are gone: begins of open slices, their strings, their
//! flows.

use hairline::{Flow, Format, Overflow, SessionBuilder, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, record_with};

fn small(builder: SessionBuilder) -> SessionBuilder {
    builder.overflow(Overflow::Overwrite).buffer_size(256 << 10)
}

/// Where more is open than the beginning of a chunk can tell, the outermost are left out; their ends still
/// name their strings.
#[test]
fn the_end_of_a_slice_that_was_left_out_names_strings_that_are_told() {
    fn recurse_and_fill(depth: u32) {
        if depth > 0 {
            trace_scope!("t", "deep", text = "a text so long that not all begins can be told again");
            recurse_and_fill(depth - 1);
        } else {
            (0..10_000).for_each(|_| trace_instant!("t", "filler"));
        }
    }
    for format in FORMATS {
        let tiny = |b| small(b).buffer_size(64 << 10).chunk_size(4096);
        let trace = record_with(format, tiny, |_| {
            trace_scope!("left out", "left out");
            recurse_and_fill(40);
        });
        let rows = "select count(*) > 5, sum(name = 'left out'), sum(dur < 0) from slice where name in ('deep', 'left out')";
        assert_eq!(trace.rows(rows), "1\t0\t0", "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}

/// Its end has the callsite's name, which no begin tells.
#[test]
fn a_slice_named_at_run_time_ends_after_its_begin_was_repeated() {
    for format in FORMATS {
        let trace = record_with(format, small, |_| {
            let name = String::from("of this run");
            trace_scope!("t", "of the callsite", name: &name);
            (0..50_000).for_each(|_| trace_instant!("t", "filler"));
        });
        let rows = "select name, dur > 0 from slice where name != 'filler'";
        assert_eq!(trace.rows(rows), "of this run\t1", "{format:?}");
    }
}

/// In FXT the first record of a flow must be another one than those after it; and it was overwritten.
#[test]
fn a_flow_that_began_before_the_window_goes_on_in_it() {
    for format in FORMATS {
        let trace = record_with(format, small, |_| {
            let (flow, of_another_process) = (Flow::new(), Flow::from_id(77));
            trace_scope!("t", "outer", flow: &flow);
            for _ in 0..5000 {
                trace_scope!("t", "step", flow: &flow);
                trace_scope!("t", "other");
                trace_instant!("t", "filler", text = "some text");
            }
            trace_scope!("t", "last", end_flow: &flow);
            trace_instant!("t", "from elsewhere", flow: &of_another_process);
        });
        let verdict = trace.ask(&[
            "select count(*) > 100, count(*) = (select count(*) from slice where name = 'step') + 1 from flow",
            "select a.name, b.name from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id \
             where a.name != b.name order by 1",
        ]);
        // The one from elsewhere begins there.
        let elsewhere = i64::from(format == Format::Fxt);
        assert_eq!(verdict.stat("flow_step_without_start"), elsewhere, "{format:?}");
        assert_eq!(verdict.stat("flow_end_without_start"), 0, "{format:?}");
        assert_eq!(verdict.results[0].text(), "1\t1", "{format:?}");
        assert_eq!(verdict.results[1].text(), "outer\tstep\nstep\tlast", "{format:?}");
    }
}
