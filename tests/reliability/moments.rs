//! Forks, ends of threads and signals at the worst moments: the program `moments` goes through them, and must
//! neither hang nor crash, and its trace must be whole.

use std::path::Path;

use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::program::moments as run;

/// The importer's count of what `TraceStats` says was lost.
const LOSS: &str = "traced_buf_trace_writer_packet_loss";

/// Sessions as they are by default, and those that record CPU times and places in the source.
const PLAIN: &[(&str, &str)] = &[];
const DETAILED: &[(&str, &str)] = &[("MOMENTS_DETAILED", "on")];

/// So many slices of this name are there, whole, and the judge has nothing to complain of.
fn has_slices(trace: &Path, name: &str, count: u64) {
    let sql = format!("select count(*), ifnull(min(dur) >= 0, 1) from slice where name = '{name}'");
    let verdict = judge::load(trace, &[&sql]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), format!("{count}\t1"), "{}", trace.display());
}

#[test]
fn a_thread_whose_first_event_comes_from_the_last_of_its_destructors_does_no_harm() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        let run = run(&["end-of-threads", &name], &[]);
        let [threads, records, thread_exit, lost] = run.numbers()[..] else { panic!("{:?}", run.output) };
        // A begin, an end and an instant of each, and the work of the main thread.
        let (work, threads_made) = (400 * 20 * 10 * 2, 400 * 8);
        assert_eq!(threads, threads_made);
        assert_eq!((records, thread_exit, lost), (work + 3 * threads, 0, 0), "{format:?}");
        has_slices(&run.directory().join(&name), "work", work / 2);
    }
}

#[test]
fn a_signal_at_the_end_of_a_thread_whose_handler_records_does_no_harm() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        let run = run(&["signal-at-exit", &name], &[]);
        let [recorded, refused, of_ends, lost, after] = run.numbers()[..] else { panic!("{:?}", run.output) };
        // One in each of four rounds of destructors, 200 times, and those that came in time otherwise.
        assert!(recorded + refused >= 4 * 200, "{recorded} {refused}");
        assert_eq!((lost, of_ends), (refused, refused), "{format:?}: each is in the trace or counted");
        let sql = "select count(*), min(dur) >= 0 from slice where name like 'in a handler%'";
        let verdict = judge::load(run.directory().join(&name), &[sql]);
        // The importer names what the trace says was lost, as it should.
        assert!(verdict.complaints.iter().all(|stat| stat.name == LOSS), "{:?}", verdict.complaints);
        assert_eq!(verdict.results[0].text(), format!("{recorded}\t1"));
        eprintln!("{after} handlers ran after the last destructor of a thread that had not recorded");
    }
}

#[test]
fn a_thread_that_is_cancelled_before_its_first_event_records_and_the_session_starts() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        for (output, variables) in [(&*name, PLAIN), ("", &[("HAIRLINE", &*name)])] {
            let run = run(&["cancelled", output], variables);
            assert_eq!(run.numbers(), [0, 0], "unwound, lost: {:?}", run.output);
            has_slices(&run.directory().join(&name), "of a cancelled thread", 20);
        }
    }
}

/// As sessions record, and as flight recorders do, whose last window is of all.
const KINDS: [&str; 2] = ["", "-of-recorder"];

#[test]
fn the_first_event_of_a_thread_and_of_a_callsite_may_come_from_a_handler_that_interrupts_malloc() {
    for (format, kind) in FORMATS.into_iter().flat_map(|format| KINDS.map(|kind| (format, kind))) {
        let name = format!("t.{}", extension(format));
        let run = run(&[&format!("first-in-handler{kind}"), &name], &[]);
        let [rounds, lost] = run.numbers()[..] else { panic!("{:?}", run.output) };
        assert_eq!(lost, 0, "{format:?}{kind}");
        let trace = run.directory().join(&name);
        has_slices(&trace, "the first of a thread", rounds);
        has_slices(&trace, "new 29", 1);
    }
}

/// std gives the threads of a program alternate stacks of 8 KiB, of which the kernel itself may take 3.
#[test]
fn the_events_of_a_signal_handler_take_little_stack() {
    // Builds without optimisation take more, so that a program needs larger stacks there.
    let (first, later) = if cfg!(debug_assertions) { (48 << 10, 24 << 10) } else { (4 << 10, 2 << 10) };
    for (format, kind) in FORMATS.into_iter().flat_map(|format| KINDS.map(|kind| (format, kind))) {
        let name = format!("t.{}", extension(format));
        let run = run(&[&format!("stack{kind}"), &name], &[]);
        let [of_callsite, of_thread, warm, lost] = run.numbers()[..] else { panic!("{:?}", run.output) };
        eprintln!("{format:?}{kind}: {of_callsite}, {of_thread}, {warm} bytes");
        assert!(of_callsite <= first && of_thread <= first && warm <= later, "{:?}", run.numbers());
        assert_eq!(lost, 0);
        has_slices(&run.directory().join(&name), "on a small stack", 4);
    }
}

#[test]
fn a_child_that_no_handler_announced_records_nothing_and_does_not_harm_the_trace() {
    for format in FORMATS {
        for (way, detail) in [("clone", PLAIN), ("bare-fork", PLAIN), ("clone", DETAILED)] {
            let name = format!("t.{}", extension(format));
            let run = run(&[way, &name], detail);
            let [recorded, lost] = run.numbers()[..] else { panic!("{:?}", run.output) };
            assert_eq!(lost, 0, "{way}");
            has_slices(&run.directory().join(&name), "work", recorded);
            assert!(!run.directory().join("of-a-child.fxt").exists(), "it is silent");
        }
    }
}

#[test]
fn an_event_that_a_handler_interrupted_to_fork_goes_on_in_both_processes() {
    for (format, detail) in FORMATS.into_iter().flat_map(|format| [(format, PLAIN), (format, DETAILED)]) {
        let name = format!("t.{}", extension(format));
        let run = run(&["fork-in-handler", &name], detail);
        let [recorded, lost] = run.numbers()[..] else { panic!("{:?}", run.output) };
        assert_eq!(lost, 0);
        has_slices(&run.directory().join(&name), "work", recorded);
    }
}

#[test]
fn a_child_does_not_wait_for_room_for_ever_though_its_thread_did_when_a_handler_forked() {
    run(&["fork-while-waiting"], &[]);
}

#[test]
fn flush_and_stop_return_in_a_child_that_a_handler_forked_meanwhile() {
    run(&["fork-in-flush-and-stop"], &[]);
}

#[test]
fn a_signal_whose_handler_records_may_come_at_any_moment_of_a_fork() {
    for format in FORMATS {
        run(&["fork-under-signals", &format!("t-%p.{}", extension(format))], &[]);
    }
}

#[test]
fn a_child_does_not_hang_where_nothing_is_traced() {
    run(&["fork-without-session"], &[]);
}

#[test]
fn a_child_of_a_fork_during_the_environments_start_does_not_hang() {
    for after in [0, 100, 300, 1000, 3000, 8000, 12_000, 16_000, 20_000] {
        let run = run(&["fork-during-start", &after.to_string()], &[("HAIRLINE", "t-%p.fxt")]);
        for file in std::fs::read_dir(run.directory()).expect("a directory").flatten() {
            judge::load(file.path(), &[]).require_clean();
        }
    }
}

#[test]
fn a_childs_snapshot_is_of_its_own_session() {
    for format in FORMATS {
        let extension = extension(format);
        let run = run(&["snapshot-in-child", &format!("t-%p.{extension}")], &[]);
        for n in 0..20 {
            has_slices(&run.directory().join(format!("of-child-{n}.{extension}")), "work", 1);
        }
    }
}

#[test]
fn a_childs_first_call_may_be_a_snapshot_whatever_the_parent_was_doing() {
    for format in FORMATS {
        for way in ["snapshot-first", "snapshot-first-busy"] {
            let extension = extension(format);
            let run = run(&[way, &format!("t-%p.{extension}")], &[]);
            let took = run.numbers();
            assert!(took.len() == 8 && took.iter().all(|took| *took < 2000), "milliseconds: {took:?}");
            for n in 0..8 {
                // An error is as good. What is there is of the child's own window.
                let taken = run.directory().join(format!("of-child-{n}.{extension}"));
                if taken.exists() {
                    has_slices(&taken, "work", 0);
                }
                let later = run.directory().join(format!("later-{n}.{extension}"));
                has_slices(&later, "of the child", 1);
                has_slices(&later, "work", 0);
            }
        }
    }
}

#[test]
fn a_signal_handler_may_trigger_a_snapshot_whatever_it_interrupts() {
    let run = run(&["trigger-in-handler", "t-%n.fxt"], &[]);
    let files = std::fs::read_dir(run.directory()).expect("a directory").count();
    assert!(files > 1, "snapshots were taken: {files}");
}

#[test]
fn what_closed_sessions_held_is_given_back_though_threads_still_have_their_chunks() {
    let run = run(&["idle-threads"], &[]);
    let [of_one, bytes] = run.numbers()[..] else { panic!("{:?}", run.output) };
    // Each of 20 had a ring with the memory of its start at least, 5 MiB in all. What is left are the headers.
    assert!(of_one >= 256 << 10, "{of_one} bytes: the program does not see its regions");
    assert!(bytes < 1 << 20, "{bytes} bytes are still in use");
    assert!(run.region().is_none(), "no file is left");
}

#[test]
fn a_session_starts_though_a_timer_interrupts_it_all_the_time() {
    let run = run(&["timer", "t.fxt"], &[]);
    assert_eq!(run.numbers(), [20, 0], "{:?}", run.output);
}

#[test]
fn scopes_that_are_forgotten_are_counted_and_named() {
    let run = run(&["forget", "t.fxt"], &[]);
    let said = String::from_utf8_lossy(&run.output.stdout);
    assert!(run.numbers()[0] > 0 && said.contains("never ended"), "{said}");
}

/// Whoever meets the full ring: the summary says why it is full.
#[test]
fn scopes_that_are_forgotten_are_named_though_another_thread_meets_the_full_ring() {
    let run = run(&["forget-beside", "t.fxt"], &[]);
    let said = String::from_utf8_lossy(&run.output.stdout);
    let [lost, forgotten] = run.numbers()[..] else { panic!("{:?}", run.output) };
    assert!(lost > 0, "the ring was full: {said}");
    assert!(said.contains("never ended"), "{lost} events were lost beside {forgotten} scopes: {said}");
}

#[test]
fn a_real_time_thread_on_the_drain_threads_core_does_not_hang() {
    for format in FORMATS {
        let run = run(&["real-time", &format!("t.{}", extension(format))], &[]);
        let [is_real_time, scopes, lost] = run.numbers()[..] else { panic!("{:?}", run.output) };
        if is_real_time == 0 {
            eprintln!("NOT TESTED: no real-time priority here, which needs root or RLIMIT_RTPRIO");
        }
        assert!(scopes > 1000 && lost < scopes, "{scopes} scopes, {lost} lost");
        judge::load(run.directory().join(format!("t.{}", extension(format))), &[]);
    }
}
