//! What a session records with every event when it is asked to.

use std::time::{Duration, Instant};

use hairline::{Format, scope, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, record_with};

fn burn(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[test]
fn scopes_have_the_cpu_time_of_their_thread() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.thread_time(true),
            |_| {
                {
                    trace_scope!("t", "burning");
                    burn(Duration::from_millis(20));
                }
                {
                    trace_scope!("t", "sleeping", with = "an argument");
                    std::thread::sleep(Duration::from_millis(20));
                }
                trace_instant!("t", "instant");
                let mut late = scope!("t", "late");
                late.arg("a", 1);
            },
        );
        let sql = if format == Format::TrackEvent {
            "select name, thread_dur from slice where thread_dur is not null order by ts"
        } else {
            "select s.name, e.int_value - b.int_value as thread_dur from slice s join args b using (arg_set_id) \
             join args e using (arg_set_id) where b.key = 'cpu_begin_ns' and e.key = 'cpu_end_ns' order by s.ts"
        };
        let verdict = trace.ask(&[sql]);
        verdict.require_clean();
        let rows: Vec<(String, i64)> =
            verdict.results[0].iter().map(|r| (r.str("name").to_owned(), r.i64("thread_dur"))).collect();
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["burning", "sleeping", "late"], "{format:?}");
        // A loaded machine may give the burning thread little time, but the sleeping one cannot have used more.
        assert!(rows[0].1 > 0 && rows[1].1 < 20_000_000 && rows[1].1 <= rows[0].1, "{format:?}: {rows:?}");
        assert_eq!(trace.rows("select count(*), sum(dur < 0) from slice"), "4\t0", "{format:?}");
    }
}

#[test]
fn scopes_and_instants_say_where_they_are() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.source_locations(true),
            |_| {
                for _ in 0..2 {
                    trace_scope!("t", "s"); // line
                }
                trace_instant!("t", "i", n = 1);
            },
        );
        let line = 1 + include_str!("detail.rs").lines().position(|l| l.ends_with("// line")).unwrap();
        let rows = if format == Format::TrackEvent {
            trace.rows(
                "select s.name || ' ' || f.display_value || ':' || l.display_value from slice s join args f using (arg_set_id) \
                 join args l using (arg_set_id) where f.key = 'source.file_name' and l.key = 'source.line_number' order by s.ts",
            )
        } else {
            trace.rows(
                "select s.name || ' ' || a.display_value from slice s join args a using (arg_set_id) \
                 where a.key = 'source' order by s.ts",
            )
        };
        let file = "tests/vocabulary/detail.rs";
        assert_eq!(rows, format!("s {file}:{line}\ns {file}:{line}\ni {file}:{}", line + 2), "{format:?}");
    }
}

#[test]
fn the_module_stands_where_the_function_would() {
    let trace = record_with(Format::TrackEvent, |b| b.source_locations(true), |_| trace_instant!("t", "i"));
    let sql =
        "select display_value from slice join args using (arg_set_id) where key = 'source.function_name'";
    assert_eq!(trace.rows(sql), module_path!());
}

#[test]
fn detail_and_loss_leave_whole_scopes() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.thread_time(true).source_locations(true).buffer_size(16 << 10).chunk_size(4096),
            |_| {
                fn deep(n: u32) {
                    trace_scope!("t", "deep", n);
                    if n > 0 {
                        deep(n - 1);
                    }
                }
                for _ in 0..20 {
                    deep(400);
                }
            },
        );
        let verdict =
            trace.ask(&["select count(*) as n, sum(dur < 0) as open from slice where name = 'deep'"]);
        let row = verdict.results[0].iter().next().unwrap();
        assert_eq!(row.i64("open"), 0, "{format:?}");
        assert_eq!(row.i64("n") as u64 + trace.summary.lost.total(), 20 * 401, "{format:?}");
    }
}
