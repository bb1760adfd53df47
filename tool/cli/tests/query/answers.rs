//! What is answered, and in which form.

use hairline::{trace_instant, trace_scope};
use serde_json::json;

use crate::{Folder, SMALL, stderr, stdout};

/// All columns of all rows of each table, in an order that both ways of reading have.
const TABLES: [(&str, &str); 10] = [
    ("slice", "id"),
    ("instant", "id"),
    ("counter", "time, track, value"),
    ("flow", "time, slice_out, slice_in"),
    ("arg", "owner, key, value_type, int_value"),
    ("thread", "id"),
    ("process", "id"),
    ("sched", "start, tid"),
    ("sample", "time, tid"),
    ("trace", "uuid"),
];

#[test]
fn a_trace_and_its_export_have_the_same_rows() {
    for name in ["a.pftrace", "a.fxt", "a.json"] {
        let folder = Folder::new();
        if name == "a.json" {
            folder.write(name, SMALL);
        } else {
            folder.record(name);
        }
        folder.hairline(&["export", name, "-o", "tables"]);
        let mut all = 0;
        for (table, order) in TABLES {
            let question = format!("select * from {table} order by {order}");
            let rows = folder.rows(&[&question, name]);
            assert_eq!(rows, folder.rows(&[&question, "tables"]), "{name}: {table}");
            all += rows.len();
        }
        assert!(all > if name == "a.json" { 10 } else { 300 * 6 }, "{name}: {all}");
        for view in ["slowest", "by_name", "critical"] {
            // Rows of equal durations have no order.
            let text = |input| {
                let mut rows: Vec<_> =
                    folder.rows(&["--view", view, input]).iter().map(ToString::to_string).collect();
                rows.sort();
                rows
            };
            let rows = text(name);
            assert!(!rows.is_empty(), "{name}: {view}");
            if view != "slowest" {
                assert_eq!(rows, text("tables"), "{name}: {view}");
            }
        }
    }
}

#[test]
fn nesting_and_self_times_are_those_of_the_trace() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    let question = "select name, start, duration, self_time, depth, parent from slice order by start";
    let expected = [
        json!({"name": "outer", "start": 0, "duration": 10_000, "self_time": 6_000, "depth": 0, "parent": null}),
        json!({"name": "inner", "start": 2_000, "duration": 3_000, "self_time": 3_000, "depth": 1, "parent": 1}),
        json!({"name": "inner", "start": 6_000, "duration": 1_000, "self_time": 1_000, "depth": 1, "parent": 1}),
        json!({"name": "open", "start": 20_000, "duration": null, "self_time": null, "depth": 0, "parent": null}),
    ];
    assert_eq!(folder.rows(&[question, "a.json"]), expected);
    // A question that needs few columns, and one that needs none.
    let question = "select sum(depth) as depths from slice where name = 'inner'";
    assert_eq!(folder.rows(&[question, "a.json"]), [json!({"depths": 2})]);
    assert_eq!(folder.rows(&["select count(*) as n from slice", "a.json"]), [json!({"n": 4})]);
    assert_eq!(
        folder.rows(&["select count(*) as n from slice where trace is null", "a.json"]),
        [json!({"n": 0})]
    );
}

#[test]
fn percentiles_are_exact() {
    let folder = Folder::new();
    let events: Vec<String> = (1..=1000)
        .map(|n| format!(r#"{{"name":"n{}","ph":"X","ts":{},"dur":{n},"pid":1,"tid":1}}"#, n % 2, n * 2000))
        .collect();
    folder.write("a.json", format!("[{}]", events.join(",")));
    let question = "select name, slices, p50, p99, longest from by_name order by name";
    let expected = [
        json!({"name": "n0", "slices": 500, "p50": 501_000, "p99": 990_020, "longest": 1_000_000}),
        json!({"name": "n1", "slices": 500, "p50": 500_000, "p99": 989_020, "longest": 999_000}),
    ];
    assert_eq!(folder.rows(&[question, "a.json"]), expected);
    let question = "select percentile(duration, 99) as a, percentile_cont(duration, 0.99) as b,
                    percentile_disc(duration, 0.99) as c, median(duration) as d, percentile(duration, 0) as e,
                    percentile(duration, 100) as f, median(nullif(1, 1)) as g from slice where name = 'n1'";
    let expected = json!({
        "a": 989_020.0, "b": 989_020.0, "c": 989_000, "d": 500_000.0, "e": 1_000.0, "f": 999_000.0, "g": null
    });
    assert_eq!(folder.rows(&[question, "a.json"]), [expected]);
    let floats = "select median(v) as m, percentile_disc(v, 0.5) as d
                  from (select 0.5 as v union all select 2 union all select 1.5 union all select null)";
    assert_eq!(folder.rows(&[floats, "a.json"]), [json!({"m": 1.5, "d": 1.5})]);
    for (wrong, said) in [
        ("select percentile(duration, 101) from slice", "a percentile is from 0 to 100"),
        ("select percentile_cont(duration, 99) from slice", "a percentile is from 0 to 1"),
        ("select median(name) from slice", "a percentile of Text"),
    ] {
        let output = folder.run(&[wrong, "a.json"]);
        assert_eq!(output.status.code(), Some(1), "{wrong}");
        assert!(stderr(&output).contains(said), "{wrong}: {}", stderr(&output));
    }
}

/// SQLite may take rows from an index, in groups, or by blocks: the answer is that of a plain look at all.
#[test]
fn conditions_joins_and_groups_find_the_rows_that_a_look_at_all_finds() {
    let folder = Folder::new();
    let mut events = Vec::new();
    for n in 0_u64..10_000 {
        let (name, dur) = (n % 7, n * 7919 % 1009 + 1);
        events.push(format!(
            r#"{{"name":"n{name}","cat":"c{}","ph":"X","ts":{},"dur":{dur},"pid":1,"tid":{}}}"#,
            n % 3,
            n * 2000,
            n % 2 + 1
        ));
    }
    folder.write("a.json", format!("[{}]", events.join(",")));
    folder.hairline(&["export", "a.json", "-o", "tables"]);
    // A plus before a column hides it from the planner.
    for (question, plain) in [
        ("from slice where name = 'n3'", "from slice where +name = 'n3'"),
        ("from slice where name = 'none'", "from slice where +name = 'none'"),
        ("from slice where id = 77", "from slice where +id = 77"),
        ("from slice where id = 77.0", "from slice where +id = 77.0"),
        ("from slice where id = null", "from slice where +id = null"),
        (
            "from slice where start between 5000000000 and 6000000001",
            "from slice where +start between 5000000000 and 6000000001",
        ),
        (
            "from slice where start > 5e9 and duration <= 7000",
            "from slice where +start > 5e9 and +duration <= 7000",
        ),
        (
            "from slice where name in ('n1', 'n2') and category = 'c1'",
            "from slice where +name in ('n1', 'n2') and +category = 'c1'",
        ),
        ("from slice where name = 'N3' collate nocase", "from slice where +name = 'N3' collate nocase"),
        ("from slice where parent is null", "from slice where +parent is null"),
        (
            "from slice join thread on thread.id = slice.thread",
            "from slice join thread on +thread.id = +slice.thread",
        ),
        (
            "from slice left join arg on arg.owner = slice.id",
            "from slice left join arg on +arg.owner = +slice.id",
        ),
    ] {
        for input in ["a.json", "tables"] {
            let rows = |of: &str| {
                let sums = "select count(*) as n, sum(slice.duration) as d, min(slice.id) as i";
                folder.rows(&[&format!("{sums} {of}"), input])
            };
            assert_eq!(rows(question), rows(plain), "{input}: {question}");
        }
    }
    for order in ["name, start", "category desc, start", "parent, start", "name, start desc", "start, name"] {
        let plain = order.split(", ").map(|column| format!("+{column}")).collect::<Vec<_>>().join(", ");
        let of = |order: &str| {
            folder.rows(&[&format!("select id, name from slice order by {order} limit 9000"), "a.json"])
        };
        assert_eq!(of(order), of(&plain), "{order}");
    }
    let by_name =
        |group: &str| format!("select name, count(*) as n from slice group by {group} order by {group}");
    assert_eq!(folder.rows(&[&by_name("name"), "a.json"]), folder.rows(&[&by_name("+name"), "a.json"]));
    for columns in
        ["name", "name, category", "duration, name", "id, start, duration, track, self_time", "value"]
    {
        let from = if columns == "value" { "(select duration / 2.0 as value from slice)" } else { "slice" };
        let plain = columns.split(", ").map(|column| format!("+{column}")).collect::<Vec<_>>().join(", ");
        for select in [
            "select count(*) as n, group_concat(v) as v from (select count(*) || ' ' || min({}) as v from FROM group by GROUP order by 1)",
            "select count(*) as n from (select distinct GROUP from FROM)",
        ] {
            let of = |group: &str| {
                let first = columns.split(", ").next().expect("a column");
                folder.rows(&[
                    &select.replace("{}", first).replace("FROM", from).replace("GROUP", group),
                    "a.json",
                ])
            };
            assert_eq!(of(columns), of(&plain), "{columns}");
        }
    }
}

#[test]
fn values_of_all_kinds_come_as_they_are() {
    let folder = Folder::new();
    for name in ["a.pftrace", "a.fxt"] {
        folder.session(name, || {
            let text = "it's \"quoted\" \0 and\n\u{e4}";
            trace_instant!("t", "any", big = u64::MAX, small = i64::MIN, half = 0.5, yes = true, text = text);
            trace_scope!("t", "a 'name' with \"quotes\"");
        });
        let question =
            "select key, value_type, int_value, float_value, bool_value, text_value from arg order by key";
        let mut rows = folder.rows(&[question, name]);
        rows.iter_mut()
            .for_each(|row| row.as_object_mut().expect("a row").retain(|_, value| !value.is_null()));
        let expected = [
            json!({"key": "big", "value_type": "uint", "int_value": -1}),
            json!({"key": "half", "value_type": "float", "float_value": 0.5}),
            json!({"key": "small", "value_type": "int", "int_value": i64::MIN}),
            json!({"key": "text", "value_type": "text", "text_value": "it's \"quoted\" \0 and\n\u{e4}"}),
            json!({"key": "yes", "value_type": "bool", "bool_value": 1}),
        ];
        assert_eq!(rows, expected, "{name}");
        let question = "select owner from arg where text_value = 'it''s \"quoted\" ' || char(0) || ' and' || char(10, 228)";
        assert_eq!(folder.rows(&[question, name]).len(), 1, "{name}");
        let question = "select name from slice where name = 'a ''name'' with \"quotes\"'";
        assert_eq!(folder.rows(&[question, name]), [json!({"name": "a 'name' with \"quotes\""})], "{name}");
    }
}

#[test]
fn the_functions_that_other_engines_have_are_there() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    let question = "select least(3, 1.5, null) as a, greatest('b', 'a', 9) as b, least(null) as c,
                    floor(-1.5) as d, ceil(1.2) as e, sqrt(9) as f, floor(null) as g";
    let expected = json!({"a": 1.5, "b": "b", "c": null, "d": -2.0, "e": 2.0, "f": 3.0, "g": null});
    assert_eq!(folder.rows(&[question, "a.json"]), [expected]);
}

#[test]
fn an_answer_is_a_table_or_csv_or_json() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    let question =
        "select name, duration, self_time / 1e6 as ms from slice where depth < 9 order by start, id";
    let table = folder.run(&[question, "a.json"]);
    let expected = "name   duration     ms\nouter     10000  0.006\ninner      3000  0.003\n\
                    inner      1000  0.001\nopen\n";
    assert_eq!(stdout(&table), expected);
    let csv = folder.run(&["--csv", question, "a.json"]);
    let expected = "name,duration,ms\nouter,10000,0.006\ninner,3000,0.003\ninner,1000,0.001\nopen,,\n";
    assert_eq!(stdout(&csv), expected);
    let none = folder.run(&["--csv", "select name from slice where depth = 7", "a.json"]);
    assert_eq!(stdout(&none), "name\n", "the names are there without rows");
    let none = folder.run(&["--json", "select name from slice where depth = 7", "a.json"]);
    assert_eq!(stdout(&none), "[]\n");
}

#[test]
fn a_table_ends_after_so_many_rows_and_says_so() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    let output = folder.run(&["--rows", "2", "select name from slice order by start", "a.json"]);
    assert!(output.status.success());
    assert_eq!(stdout(&output), "name\nouter\ninner\n");
    let said = "hairline: there are more than 2 rows: --csv and --json print all, --rows N more\n";
    assert_eq!(stderr(&output), said);
}

#[test]
fn a_question_comes_from_a_file_too_and_may_begin_with_a_comment() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    folder.write("q.sql", "-- how many\nselect count(*) as n from slice;\n");
    for arguments in
        [&["--file", "q.sql", "a.json"][..], &["-- how many\nselect count(*) as n from slice", "a.json"]]
    {
        assert_eq!(folder.rows(arguments), [json!({"n": 4})], "{arguments:?}");
    }
}

#[test]
fn explain_shows_the_plan_and_reads_no_trace() {
    let folder = Folder::new();
    folder.write("a.json", "no trace at all");
    let output = folder.run(&["--explain", "select name from slice where duration > 5 order by 1", "a.json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let plan = stdout(&output);
    assert!(plan.starts_with("SCAN slice") && plan.contains("\nUSE TEMP B-TREE FOR ORDER BY\n"), "{plan}");
}

#[test]
fn wrong_arguments_exit_with_2_and_wrong_questions_with_1() {
    let folder = Folder::new();
    folder.write("a.json", SMALL);
    for (arguments, code, said) in [
        (&["a.json"][..], 2, "a question is missing"),
        (&["select 1"], 2, "name a trace, or a folder of `hairline export`"),
        (&["--view", "slow", "a.json"], 2, "there is no such view; choose from slowest, by_name, critical"),
        (&["--file", "none.sql", "a.json"], 2, "none.sql"),
        (&["--csv", "--json", "select 1", "a.json"], 2, "cannot be used with"),
        (&["select 1", "none.json"], 1, "none.json: No such file"),
        (&["selct 1", "a.json"], 1, "selct"),
        (
            &["select nme from slice", "a.json"],
            1,
            "no such column: nme, in line 1 of the question; `select *",
        ),
        (
            &["select s.dur from slice s", "a.json"],
            1,
            "no such column: s.dur, in line 1 of the question; it is `duration`",
        ),
        (&["select ts from slice", "a.json"], 1, "it is `start` of slices"),
        (
            &["select 1 from slices", "a.json"],
            1,
            "no such table: slices; there are slice, instant, counter, ",
        ),
        (&["select 1; select 2", "a.json"], 1, "there is a second statement"),
        (&[".tables", "a.json"], 1, "syntax error"),
        (&["--json", "select 1 as a, 2 as a", "a.json"], 1, "name"),
    ] {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{arguments:?}: {}", stdout(&output));
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let folder = Folder::new();
    folder.record("a.fxt");
    let question = "select a.name from slice a, slice b"; // 360,000 rows
    let mut child =
        folder.command(&["--csv", question, "a.fxt"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.as_mut().expect("the program runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "name\n");
    assert!(child.wait().expect("it ends").success());
}

/// Such a trace is read once if its events are in order, and the rows of that reading are printed only if so.
#[test]
fn events_far_from_the_order_of_time_are_in_their_slices() {
    let folder = Folder::new();
    // The inner slices come last, after more events than are put in order on the way.
    let event = |name: &str, phase: &str, time: u64| {
        format!(r#"{{"name":"{name}","ph":"{phase}","ts":{time},"pid":1,"tid":1}}"#)
    };
    let slice = |name: &str, begin: u64, end: u64| event(name, "B", begin) + "," + &event(name, "E", end);
    let mut all: Vec<String> = (0..200_000).map(|n| slice("outer", 100 * n, 100 * n + 50)).collect();
    all.push(slice("inner", 10, 20));
    folder.write("late.json", format!("[{}]", all.join(",")));
    let of = |sql: &str| folder.rows(&[sql, "late.json"]);
    let sums = of("select name, count(*) as n, sum(self_time) as s from slice group by 1 order by 1");
    assert_eq!(sums[0], serde_json::json!({"name": "inner", "n": 1, "s": 10_000}));
    assert_eq!(
        sums[1],
        serde_json::json!({"name": "outer", "n": 200_000, "s": 200_000 * 50_000 - 10_000_u64})
    );
    // An answer whose first rows would be printed before the last event is read.
    let first = of("select name, depth from slice limit 2");
    assert!(first.contains(&serde_json::json!({"name": "inner", "depth": 1})), "{first:?}");
}
