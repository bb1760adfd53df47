//! Forked children, and programs that a traced one starts.

use hairline::Format;
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::program::{Run, has_the_work, run};

fn ended_well(run: &Run) {
    assert_eq!(run.output.status.code(), Some(0), "{:?}", run.output);
    assert!(run.region().is_none(), "it was completed");
}

#[test]
fn with_the_pid_in_its_path_each_child_and_grandchild_has_a_trace_of_its_own() {
    for format in FORMATS {
        for own_session in [true, false] {
            let template = format!("t-%p.{}", extension(format));
            let run = if own_session {
                run(&["fork", &template], &[])
            } else {
                run(&["fork"], &[("HAIRLINE", &template)])
            };
            ended_well(&run);
            assert_eq!(run.said(), [""; 0]);
            // 12 children, every other one with a child of its own; and the parent.
            let files = run.files();
            assert_eq!(files.len(), 12 + 6 + 1, "{files:?}");
            let parents = run.path(&template.replace("%p", &run.pid.to_string()));
            for file in &files {
                has_the_work(file);
                let sql = [
                    "select count(*) from slice where name = 'busy'",
                    "select count(distinct upid) from thread_track join thread using (utid) where upid is not null",
                ];
                let verdict = judge::load(file, &sql);
                assert_eq!(verdict.results[0].single_i64() > 0, *file == parents, "{}", file.display());
                assert_eq!(verdict.results[1].single_i64(), 1, "{}", file.display());
            }
        }
    }
}

#[test]
fn without_it_children_are_silent_and_the_parents_trace_is_unharmed() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        let run = run(&["fork"], &[("HAIRLINE", &name)]);
        ended_well(&run);
        assert_eq!(run.said(), [""; 0]);
        assert_eq!(run.files(), [run.path(&name)]);
        has_the_work(&run.path(&name));
    }
}

#[test]
fn a_flight_recorders_child_is_one_too() {
    let run = run(&["fork"], &[("HAIRLINE", "t-%p.pftrace"), ("HAIRLINE_OVERFLOW", "overwrite")]);
    ended_well(&run);
    assert_eq!(run.files().len(), 19);
    // The parent's ring holds the end of much.
    let parents = run.path(&format!("t-{}.pftrace", run.pid));
    run.files().iter().filter(|file| **file != parents).for_each(|file| has_the_work(file));
    judge::load(parents, &[]).require_clean();
}

#[test]
fn children_record_cpu_times_and_places_like_their_parent() {
    for format in FORMATS {
        let template = format!("t-%p.{}", extension(format));
        let detail = [("HAIRLINE_THREAD_TIME", "on"), ("HAIRLINE_SOURCE_LOCATIONS", "on")];
        let run = run(&["fork"], &[&[("HAIRLINE", template.as_str())], &detail[..]].concat());
        ended_well(&run);
        assert_eq!((run.said().len(), run.files().len()), (0, 12 + 6 + 1));
        let (timed, place) = if format == Format::Fxt {
            (
                "exists (select 1 from args a where a.arg_set_id = s.arg_set_id and a.key = 'cpu_end_ns')",
                "source",
            )
        } else {
            ("thread_dur >= 0", "source.line_number")
        };
        let sql = format!(
            "select sum(dur >= 0) = count(*), sum({timed}) = count(*), sum(exists ( \
               select 1 from args a where a.arg_set_id = s.arg_set_id and a.key = '{place}')) = count(*) \
             from slice s where name = 'work'"
        );
        for file in &run.files() {
            has_the_work(file);
            assert_eq!(judge::load(file, &[&sql]).results[0].text(), "1\t1\t1", "{}", file.display());
        }
    }
}

#[test]
fn a_program_started_by_a_traced_one_leaves_its_file_alone() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        let run = run(&["exec"], &[("HAIRLINE", &name)]);
        ended_well(&run);
        assert_eq!(run.said().len(), 5, "each says why it does not trace: {:?}", run.said());
        assert!(run.said().iter().all(|line| line.contains("%p")), "{:?}", run.said());
        has_the_work(&run.path(&name));
    }
}

#[test]
fn a_program_started_by_a_traced_one_has_its_own_file_with_the_pid_in_the_path() {
    let run = run(&["exec"], &[("HAIRLINE", "t-%p.fxt")]);
    ended_well(&run);
    assert_eq!((run.said().len(), run.files().len()), (0, 6));
    run.files().iter().for_each(|file| has_the_work(file));
}

#[test]
fn a_child_of_a_process_whose_session_is_over_may_start_its_own() {
    let run = run(&["fork-later", "t.fxt"], &[]);
    ended_well(&run);
    has_the_work(&run.path("t.fxt"));
    has_the_work(&run.path("child.pftrace"));
}
