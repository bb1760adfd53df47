//! Every way in which a process may end, and the trace that it leaves: complete, or to be recovered.

use std::os::unix::process::ExitStatusExt;

use hairline::Format;
use hairline::recovery::{RecoverOptions, recover};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::program::{Run, has_the_work, run};

/// Runs with a session of the program's own, and with one of the environment's.
fn each_way(way: &str, format: Format, variables: &[(&str, &str)], check: impl Fn(&Run)) {
    let name = format!("t.{}", extension(format));
    check(&run(&[way, &name], variables));
    let mut variables = variables.to_vec();
    variables.push(("HAIRLINE", &name));
    check(&run(&[way], &variables));
}

#[test]
fn whoever_comes_to_its_end_leaves_a_complete_trace() {
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        for (way, code) in [("return", 0), ("exit", 7), ("panic", 101), ("threads", 0)] {
            each_way(way, format, &[], |run| {
                assert_eq!(
                    (run.output.status.code(), run.said().len()),
                    (Some(code), 0),
                    "{way}: {:?}",
                    run.output
                );
                assert!(run.region().is_none(), "{way}");
                if way != "threads" {
                    has_the_work(&run.path(&trace));
                }
            });
        }
    }
}

#[test]
fn so_does_a_flight_recorder() {
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        for (way, code) in [("return", 0), ("exit", 7), ("panic", 101)] {
            let run = run(&[way], &[("HAIRLINE", &trace), ("HAIRLINE_OVERFLOW", "overwrite")]);
            assert_eq!(
                (run.output.status.code(), run.said().len()),
                (Some(code), 0),
                "{way}: {:?}",
                run.output
            );
            assert!(run.region().is_none(), "{way}");
            has_the_work(&run.path(&trace));
        }
    }
}

#[test]
fn threads_may_end_in_the_midst_of_recording_or_outlive_the_session() {
    for format in FORMATS {
        each_way("threads", format, &[], |run| {
            let sql = [
                "select count(*) from slice where name = 'work' and dur >= 0 having count(*) >= 40",
                "select count(*) from slice where name = 'open at the thread''s end'",
                "select count(*), min(dur) >= 0 from slice where name = 'in a destructor'",
            ];
            let verdict = judge::load(run.path(&format!("t.{}", extension(format))), &sql);
            let loss = "traced_buf_trace_writer_packet_loss"; // events after a thread's writer was gone, said to be lost
            assert!(verdict.complaints.iter().all(|c| c.name == loss), "{:?}", verdict.complaints);
            assert_eq!(verdict.results[0].iter().count(), 1);
            assert_eq!(verdict.results[1].single_i64(), 2);
            // Recorded where the destructor ran before the writer's, else counted: never half.
            assert!(
                ["1\t1", "2\t1", "0\t"].contains(&verdict.results[2].text().trim_end_matches("NULL")),
                "{}",
                verdict.results[2].text()
            );
        });
    }
}

#[test]
fn whoever_does_not_leaves_a_trace_to_be_recovered() {
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        for (way, signal) in
            [("abort", libc::SIGABRT), ("abort-in-panic", libc::SIGABRT), ("segv", libc::SIGSEGV)]
        {
            each_way(way, format, &[], |run| {
                assert_eq!(run.output.status.signal(), Some(signal), "{way}");
                let region = run.region().unwrap_or_else(|| panic!("{way}: no region"));
                recover(&region, &RecoverOptions::new()).expect("recovered");
                has_the_work(&run.path(&trace));
            });
        }
    }
}

#[test]
fn a_signal_that_ends_the_process_is_left_alone_unless_it_is_asked_for() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        let run = run(&["sigterm"], &[("HAIRLINE", &name)]);
        assert_eq!(run.output.status.signal(), Some(libc::SIGTERM));
        recover(&run.region().expect("a region"), &RecoverOptions::new()).expect("recovered");
        has_the_work(&run.path(&name));
    }
}

#[test]
fn on_request_the_trace_is_completed_and_the_process_dies_of_the_same_signal() {
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        for overflow in ["drop", "overwrite"] {
            for (way, signal) in [("sigterm", libc::SIGTERM), ("sigint", libc::SIGINT)] {
                let variables = [("HAIRLINE_SIGNALS", "on"), ("HAIRLINE_OVERFLOW", overflow)];
                each_way(way, format, &variables, |run| {
                    assert_eq!(run.output.status.signal(), Some(signal), "{way}: {:?}", run.output);
                    assert!(run.region().is_none(), "{way}");
                    has_the_work(&run.path(&trace));
                });
            }
        }
    }
}

#[test]
fn a_handler_of_the_programs_own_is_respected() {
    let run = run(&["own-handler", "t.pftrace"], &[]);
    assert_eq!(run.output.status.code(), Some(9));
    recover(&run.region().expect("a region"), &RecoverOptions::new()).expect("recovered");
    has_the_work(&run.path("t.pftrace"));
}

#[test]
fn a_flight_recorder_writes_a_snapshot_of_a_panic_even_if_the_process_then_aborts() {
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        let check = |run: &Run| {
            has_the_work(&run.path(&trace));
            let said = String::from_utf8_lossy(&run.output.stderr);
            assert!(said.contains("on purpose"), "the hook that was there has run: {said}");
        };
        check(&run(&["recorder-panic-caught", &trace], &[]));
        check(&run(&["recorder-panic", &trace], &[]));
        let variables =
            [("HAIRLINE", &*trace), ("HAIRLINE_OVERFLOW", "overwrite"), ("HAIRLINE_TRIGGER", "panic")];
        check(&run(&["recorder-panic-caught"], &variables));
    }
}

#[test]
fn a_flight_recorder_writes_a_snapshot_at_a_signal() {
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        has_the_work(&run(&["recorder-signal", &trace], &[]).path(&trace));
        let usr2 = libc::SIGUSR2.to_string();
        let variables =
            [("HAIRLINE", &*trace), ("HAIRLINE_OVERFLOW", "overwrite"), ("HAIRLINE_TRIGGER", &usr2)];
        has_the_work(&run(&["recorder-signal"], &variables).path(&trace));
    }
}
