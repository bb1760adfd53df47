//! What a session records with every event when it is asked to.

use std::time::{Duration, Instant};

use hairline::{Format, Overflow, scope, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, Trace, record_with};

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
        // A loaded machine may give the burning thread little time, but the sleeping one cannot have used
        // more.
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

// The first event of a callsite describes its place; the others are written on a shorter way.
#[test]
fn each_of_many_scopes_has_its_place_and_its_cpu_time() {
    const ROUNDS: usize = 50;
    for (format, has_times) in FORMATS.into_iter().flat_map(|format| [(format, true), (format, false)]) {
        let trace = record_with(
            format,
            |b| b.source_locations(true).thread_time(has_times),
            |_| {
                for n in 0..ROUNDS {
                    trace_scope!("t", "outer");
                    trace_scope!("t", "inner", n, text = "some text");
                    trace_instant!("t", "instant");
                    trace_instant!("t", "told", of = n);
                    let mut late = scope!("t", "late");
                    late.arg("n", n);
                }
            },
        );
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
        has_facts(&trace, ROUNDS, has_times, &["inner", "late", "outer"], &["instant", "told"]);
    }
}

/// All slices of these names, and all instants, have one place each in this file. If the session `has_times`,
/// the slices have CPU times too.
fn has_facts(trace: &Trace, count: usize, has_times: bool, slices: &[&str], instants: &[&str]) {
    let (places, times) = if trace.format == Format::TrackEvent {
        (
            "select s.name, count(distinct l.display_value) as lines, count(*) as n from slice s \
             join args f using (arg_set_id) join args l using (arg_set_id) \
             where f.key = 'source.file_name' and f.display_value = 'tests/vocabulary/detail.rs' \
             and l.key = 'source.line_number' group by s.name order by s.name",
            "select name, count(*) as n, sum(thread_dur >= 0 and dur > 0) as sound from slice \
             where thread_dur is not null group by name order by name",
        )
    } else {
        (
            "select s.name, count(distinct a.display_value) as lines, count(*) as n from slice s \
             join args a using (arg_set_id) where a.key = 'source' \
             and a.display_value glob 'tests/vocabulary/detail.rs:[0-9]*' group by s.name order by s.name",
            "select s.name, count(*) as n, sum(e.int_value >= b.int_value and s.dur > 0) as sound from slice s \
             join args b using (arg_set_id) join args e using (arg_set_id) \
             where b.key = 'cpu_begin_ns' and e.key = 'cpu_end_ns' group by s.name order by s.name",
        )
    };
    let verdict = trace.ask(&[places, times]);
    verdict.require_clean();
    let mut located = [slices, instants].concat();
    located.sort_unstable();
    let lines = |names: &[&str], line: &dyn Fn(&str) -> String| {
        names.iter().map(|name| line(name)).collect::<Vec<_>>().join("\n")
    };
    let expected = lines(&located, &|name| format!("{name}\t1\t{count}"));
    assert_eq!(verdict.results[0].text(), expected, "{:?}", trace.format);
    let timed = if has_times { slices } else { &[] };
    let expected = lines(timed, &|name| format!("{name}\t{count}\t{count}"));
    assert_eq!(verdict.results[1].text(), expected, "{:?}", trace.format);
}

// Chunks of 4 KiB, and texts of 0 to 60 bytes: the end of a chunk comes after each length of record, in each
// depth.
#[test]
fn records_with_places_and_cpu_times_end_chunks_of_any_fill() {
    const ROUNDS: usize = 4000;
    fn nested(depth: usize, text: &str) {
        if depth > 0 {
            trace_scope!("t", "nested", text = &text[..depth]);
            nested(depth - 1, text);
        }
    }
    let text = "0123456789".repeat(6);
    for (format, has_times) in FORMATS.into_iter().flat_map(|format| [(format, true), (format, false)]) {
        let small = |b: hairline::SessionBuilder| b.chunk_size(4096).buffer_size(1 << 20);
        let patient = Overflow::Block(Duration::from_secs(600));
        let trace = record_with(
            format,
            |b| small(b).overflow(patient).source_locations(true).thread_time(has_times),
            |_| {
                for n in 0..ROUNDS {
                    trace_scope!("t", "outer");
                    trace_scope!("t", "inner", text = &text[..n % 61]);
                    trace_instant!("t", "instant", n);
                    if n % 8 == 0 {
                        nested(8, &text[n % 50..]);
                    }
                }
            },
        );
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
        has_facts(&trace, ROUNDS, has_times, &["inner", "nested", "outer"], &["instant"]);
        let lengths: usize = (0..ROUNDS).map(|n| n % 61).sum::<usize>() + ROUNDS / 8 * (1..=8).sum::<usize>();
        let rows = trace.rows(
            "select sum(length(a.string_value)), max(s.depth) from slice s join args a using (arg_set_id) \
             where a.key in ('text', 'debug.text')",
        );
        assert_eq!(rows, format!("{lengths}\t9"), "{format:?}");
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
