//! The judge on traces made by hand: nothing of Hairline has a part in them.

mod handmade;

use std::collections::HashSet;

use serde_json::json;

use super::{JudgeError, Verdict, load_bytes, try_load_bytes};
use handmade::{Event, Fxt, pftrace, track_descriptor, track_event};

const SLICES: &str = "select s.ts, s.dur, s.category, s.name, t.name as thread, p.name as process
    from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) join process p using (upid)
    order by s.ts";

/// process 7 "shop", thread 8 "till": 1000..1512 net/request
fn good_fxt() -> Fxt {
    Fxt::new()
        .ticks_per_second(1_000_000_000)
        .string(1, "net")
        .string(2, "request")
        .string(3, "process")
        .process_name(7, "shop")
        .thread_name(8, "till", 3, 7)
        .thread(1, 7, 8)
        .event(Event::Begin, 1000, 1, 2)
        .event(Event::End, 1512, 1, 2)
}

fn good_pftrace() -> Vec<u8> {
    pftrace(&[
        track_descriptor(1, |t| t.process(7, "shop")),
        track_descriptor(2, |t| t.thread(7, 8, "till")),
        track_event(1000, 2, |e| {
            e.begin("net", "request").arg_uint("bytes", u64::MAX).arg_int("delta", i64::MIN)
        }),
        track_event(1512, 2, |e| e.end()),
    ])
}

mod good_traces {
    use super::*;

    #[test]
    fn fxt_gives_its_rows_and_no_complaint() {
        let verdict = load_bytes(good_fxt().bytes(), &[SLICES]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "1000\t512\tnet\trequest\ttill\tshop");
    }

    #[test]
    fn perfetto_gives_its_rows_and_no_complaint() {
        let verdict = load_bytes(&good_pftrace(), &[SLICES]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "1000\t512\tnet\trequest\ttill\tshop");
    }

    #[test]
    fn twenty_in_a_row_do_not_see_one_another() {
        for i in 0..20_u64 {
            let trace = good_fxt().event(Event::Instant, 2000 + i, 1, 2);
            let verdict = load_bytes(trace.bytes(), &["select ts, dur from slice order by ts"]);
            verdict.require_clean();
            assert_eq!(verdict.results[0].text(), format!("1000\t512\n{}\t0", 2000 + i));
        }
    }

    #[test]
    fn tests_on_several_threads_take_turns() {
        std::thread::scope(|scope| {
            for i in 0..4_u64 {
                scope.spawn(move || {
                    let trace = good_fxt().event(Event::Instant, 3000 + i, 1, 2);
                    let verdict = load_bytes(trace.bytes(), &["select max(ts) from slice"]);
                    assert_eq!(verdict.results[0].single(), &json!(3000 + i));
                });
            }
        });
    }
}

mod bad_traces {
    use super::*;

    #[test]
    fn a_file_of_no_known_format_does_not_load() {
        let error = try_load_bytes(b"this is no trace, and says so", &[]).unwrap_err();
        assert!(matches!(&error, JudgeError::Load(why) if why.contains("Unknown trace type")), "{error}");
    }

    #[test]
    fn a_record_of_size_zero_fails_the_file() {
        let error = try_load_bytes(good_fxt().word(0).bytes(), &[]).unwrap_err();
        assert_eq!(error, JudgeError::Load("Unexpected record of size 0".to_owned()));
    }

    #[test]
    fn a_missing_file_does_not_load() {
        let error = super::super::Judge::try_load("/nowhere/at.all", &[]).unwrap_err();
        assert!(matches!(&error, JudgeError::Load(why) if why.contains("ENOENT")), "{error}");
    }

    #[test]
    fn a_trace_after_a_broken_one_is_judged_as_ever() {
        try_load_bytes(good_fxt().word(0).bytes(), &[]).unwrap_err();
        load_bytes(good_fxt().bytes(), &[]).require_clean();
    }
}

mod complaints {
    use super::*;

    fn unregistered_name() -> Verdict {
        load_bytes(good_fxt().event(Event::Instant, 2000, 1, 99).bytes(), &["select count() from slice"])
    }

    #[test]
    fn an_unregistered_string_is_one() {
        let verdict = unregistered_name();
        assert_eq!(verdict.results[0].single_i64(), 1, "the event is dropped");
        assert_eq!(verdict.stat("fuchsia_invalid_string_ref"), 1);
        let listed: Vec<String> = verdict.complaints.iter().map(ToString::to_string).collect();
        assert_eq!(listed, ["fuchsia_invalid_string_ref = 1 (error, analysis)"]);
    }

    #[test]
    #[should_panic(expected = "fuchsia_invalid_string_ref = 1")]
    fn require_clean_lists_them() {
        unregistered_name().require_clean();
    }

    #[test]
    fn a_mistake_filed_as_info_is_one() {
        let missing_interned_name = track_event(2000, 2, |e| e.begin_interned(5));
        let verdict = load_bytes(
            &pftrace(&[track_descriptor(2, |t| t.thread(7, 8, "till")), missing_interned_name]),
            &[],
        );
        assert!(!verdict.complaints.is_empty());
        assert!(verdict.complaints.iter().all(|stat| stat.severity == "info"), "{:?}", verdict.complaints);
    }
}

mod cells {
    use super::*;

    #[test]
    fn integers_are_exact() {
        let verdict = load_bytes(
            &good_pftrace(),
            &[
                "select 9223372036854775807 as max, -9223372036854775807 - 1 as min, 9007199254740993 as odd",
                "select key, int_value from args where key glob 'debug.*' order by key",
            ],
        );
        let row = verdict.results[0].iter().next().unwrap();
        assert_eq!(row.i64("max"), i64::MAX);
        assert_eq!(row.i64("min"), i64::MIN);
        assert_eq!(row.i64("odd"), (1 << 53) + 1);
        // trace_processor has no unsigned cells: a u64 shows as the i64 of the same bits.
        assert_eq!(verdict.results[1].text(), format!("debug.bytes\t-1\ndebug.delta\t{}", i64::MIN));
    }

    #[test]
    fn every_kind_of_cell_is_told_apart() {
        let verdict = load_bytes(b"", &["select 1 as i, 1.0 as r, 'a\tb' as s, null as n, x'00ff' as b"]);
        let rows = &verdict.results[0];
        assert_eq!(rows.rows, [[json!(1), json!(1.0), json!("a\tb"), json!(null), json!({"$blob": "00ff"})]]);
        assert_eq!(rows.text(), "1\t1.0\ta\\tb\tNULL\t{\"$blob\":\"00ff\"}");
    }

    #[test]
    fn rows_are_reached_by_name() {
        let verdict = load_bytes(b"", &["select 1 as a, 'x' as b union all select 2, 'y'"]);
        let rows = &verdict.results[0];
        assert_eq!(rows.column("a"), [&json!(1), &json!(2)]);
        assert_eq!(rows.iter().map(|row| row.str("b")).collect::<HashSet<_>>(), HashSet::from(["x", "y"]));
        assert_eq!(rows.to_string(), "a\tb\n1\tx\n2\ty");
    }

    #[test]
    #[should_panic(expected = r#"no column c in ["a"]"#)]
    fn a_column_that_is_not_there_is_named() {
        load_bytes(b"", &["select 1 as a"]).results[0].column("c");
    }
}

#[test]
fn a_wrong_query_is_shown() {
    let error = try_load_bytes(b"", &["select 1", "select nonsense from slice"]).unwrap_err();
    let JudgeError::Sql(why) = error else { panic!("{error}") };
    assert!(why.contains("no such column: nonsense") && why.contains("in: select nonsense"), "{why}");
}
