//! More strings than FXT can number: 32,767. A process counts all that it has ever used, so this has one of
//! its own.

use hairline::{
    Flow, Track, interned, scope, trace_async, trace_begin, trace_counter, trace_end, trace_instant,
    trace_scope,
};
use hairline_tests::recording::{FORMATS, record_with};

/// Beyond the table, whatever the process has used before.
const STRINGS: usize = 33_000;

// number     1 ...................... 32,767 | 32,768 ......
// FXT        by index, each told once        | in full, each time
#[test]
fn strings_beyond_the_table_are_written_in_full() {
    let strings: Vec<&'static str> =
        (0..STRINGS).map(|n| &*Box::leak(format!("string {n}").into_boxed_str())).collect();
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.buffer_size(64 << 20),
            |_| {
                for text in &strings {
                    trace_instant!("t", "i", text = interned(text));
                }
                // These callsites are registered when there are no numbers left.
                let track = Track::new("late track");
                let flow = Flow::new();
                for n in 0..3 {
                    trace_scope!("late", "late scope", n);
                    trace_scope!("late", "late plain");
                    trace_instant!("late", "late instant", key = "value", flow: &flow);
                    trace_counter!("late", "late counter", n);
                    let mut scope = scope!("late", "late end");
                    scope.arg("late key", n);
                    drop(trace_async!("late", "late async", n));
                    trace_begin!("late", "late begin", track: &track);
                    trace_end!(&track, late_end = n);
                }
            },
        );
        let verdict = trace.ask(&[
            "select count(distinct a.display_value), count(*) from slice s join args a using (arg_set_id) where s.name = 'i'",
            "select name, category, count(*), sum(dur < 0) from slice where category = 'late' group by 1 order by 1",
            "select count(*), min(value), max(value) from counter",
            "select replace(key, 'debug.', ''), count(*) from args where key like '%late%' or key like '%n' group by 1 order by 1",
            "select count(*) from flow",
        ]);
        verdict.require_clean();
        let rows: Vec<String> = verdict.results.iter().map(|r| r.text()).collect();
        assert_eq!(rows[0], format!("{STRINGS}\t{STRINGS}"), "{format:?}");
        let names = ["late async", "late begin", "late end", "late instant", "late plain", "late scope"];
        assert_eq!(rows[1], names.map(|n| format!("{n}\tlate\t3\t0")).join("\n"), "{format:?}");
        assert_eq!(rows[2], "3\t0.0\t2.0", "{format:?}");
        assert!(
            rows[3].contains("late key\t3") && rows[3].contains("late_end\t3"),
            "{format:?}: {}",
            rows[3]
        );
        assert_eq!(rows[4], "2", "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}
