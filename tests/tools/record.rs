//! `hairline record`

#![allow(unsafe_code)] // kill

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Output};

use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::{FAMILY, files, first_line, hairline, hairline_that_heeds_signals, run, stderr};

/// Processes by name: how many, with how many threads and slices each; and how many slices are open.
const PROCESSES: &str = "select n, threads, steps, count(*) from (select p.upid, p.name as n, count(distinct t.tid) as threads, \
    sum(s.name = 'step') as steps from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
    join process p using (upid) group by p.upid) group by 1, 2, 3 order by threads, steps";
const OPEN: &str = "select count(*) from slice where dur < 0";

#[test]
fn a_parent_of_twenty_of_which_three_are_killed_leaves_one_trace() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("out.{}", extension(format));
        let output =
            run(hairline(folder.path()).args(["record", "-o", &trace, "--", FAMILY, "parent", "20", "3"]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(files(folder.path()), [trace.as_str()], "nothing else is left");
        let said = stderr(&output);
        assert!(
            said.contains("21 processes, 41 threads, ")
                && said.contains("3 processes ended without completing their traces"),
            "{said}"
        );
        assert!(said.contains(&format!("hairline view {trace}")), "{said}");

        let counters = "select count(distinct ct.id), count(*), min(c.value), max(c.value) from counter c join \
            process_counter_track ct on c.track_id = ct.id";
        // Each step has its child's number: it is in the process that it was recorded in, and in no other.
        let mixed = "select count(distinct p.upid), count(distinct a.int_value), count(distinct p.upid || ' ' || a.int_value) \
            from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) join process p using (upid) \
            join args a using (arg_set_id) where s.name = 'step' and a.key in ('child', 'debug.child')";
        let starts = "select count(*) from slice c join slice p on c.parent_id = p.id where c.name = 'start' and p.name = 'parent'";
        let verdict =
            judge::load(folder.path().join(&trace), &[PROCESSES, OPEN, counters, mixed, starts, TIME]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "family\t1\t0\t1\nfamily\t2\t200\t20", "{format:?}");
        assert_eq!(verdict.results[1].text(), "0", "{format:?}");
        if format == hairline::Format::TrackEvent {
            assert_eq!(verdict.results[2].text(), "20\t4000\t0.0\t99.0");
        }
        assert_eq!(verdict.results[3].text(), "20\t20\t20", "{format:?}");
        assert_eq!(verdict.results[4].text(), "20", "{format:?}");
        assert_eq!(verdict.results[5].text(), "1", "{format:?}: one clock");
    }
}

/// The CPU time of other processes, and how long it was counted, by the argument's name.
const OTHERS: &str = "select replace(a.key, 'debug.', '') as n, a.int_value as t from slice s join args a using (arg_set_id) \
    where s.category = 'hairline' and s.name = 'other processes' order by 1";

#[test]
fn the_cpu_time_of_other_programs_is_in_the_trace() {
    /// It ends with the test, also with one that fails.
    struct Computes(Child);
    impl Drop for Computes {
        fn drop(&mut self) {
            let _ = self.0.kill().and_then(|()| self.0.wait());
        }
    }
    let computes = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
    let computes = Computes(computes.expect("sh"));
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("out.{}", extension(format));
        // On a busy machine it takes a while until the other program runs.
        let command = format!("{FAMILY} parent 2 0; sleep 0.5");
        let output = run(
            hairline(folder.path()).args(["record", "--sched", "-o", &trace, "--", "sh", "-c", &command])
        );
        if stderr(&output).contains("no context switches") {
            eprintln!("skipped: {}", stderr(&output));
            break;
        }
        let verdict = judge::load(folder.path().join(&trace), &[OTHERS]);
        verdict.require_clean();
        let rows: Vec<_> =
            verdict.results[0].iter().map(|row| (row.str("n").to_owned(), row.i64("t"))).collect();
        let time = |name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.1);
        let (recorded, taken) = (time("recorded"), time(&format!("sh ({})", computes.0.id())));
        assert!(recorded > Some(0) && taken > recorded.map(|all| all / 50), "{format:?}: {rows:?}");
        assert!(!rows.iter().any(|row| row.0.contains("family")), "{format:?}: {rows:?}");
    }
}

/// Whether all that the children did lies within the parent's slice.
const TIME: &str = "select (select min(ts) from slice where name = 'step') > ts and \
    (select max(ts + dur) from slice where name = 'step') < ts + dur from slice where name = 'parent'";

#[test]
fn forked_children_have_tracks_of_their_own() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("out.{}", extension(format));
        let ending = env!("CARGO_BIN_EXE_ending");
        let output =
            run(hairline(folder.path()).args(["record", "--keep-parts", "-o", &trace, "--", ending, "fork"]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let sql = [
            "select count(*), count(distinct track_id), sum(dur < 0), sum(depth) from slice",
            "select count(distinct upid) from thread_track join thread using (utid) where upid is not null",
        ];
        let counts = |path: &std::path::Path| {
            let verdict = judge::load(path, &sql);
            verdict.require_clean();
            let all = verdict.results.iter().flat_map(|rows| rows.rows[0].clone());
            all.map(|cell| cell.as_i64().expect("a number")).collect::<Vec<_>>()
        };
        let whole = counts(&folder.path().join(&trace));
        let parts = files(folder.path()).into_iter().find(|name| name.contains(".parts-")).expect("parts");
        let parts = folder.path().join(parts);
        let mut sums = vec![0; whole.len()];
        for part in files(&parts) {
            counts(&parts.join(part)).into_iter().zip(&mut sums).for_each(|(n, sum)| *sum += n);
        }
        assert_eq!(whole, sums, "{format:?}: slices, tracks, open slices, depths, processes");
        assert_eq!(whole[4], 19, "the parent, 12 children, 6 of theirs");
    }
}

#[test]
fn compressed_parts_become_one_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(hairline(folder.path()).env("HAIRLINE_COMPRESS", "on").args([
        "record",
        "--categories",
        "family",
        "--",
        FAMILY,
        "parent",
        "3",
        "1",
    ]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let verdict = judge::load(folder.path().join("trace.pftrace"), &[PROCESSES, OPEN]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "family\t1\t0\t1\nfamily\t2\t200\t3");
}

#[test]
fn a_flight_recorder_leaves_the_last_of_each_process() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("out.{}", extension(format));
        let options = ["--overflow", "overwrite", "--buffer", "1M"];
        let output = run(hairline(folder.path())
            .args(["record", "-o", &trace])
            .args(options)
            .args(["--", FAMILY, "parent", "4", "2"]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let verdict = judge::load(folder.path().join(&trace), &[PROCESSES, OPEN]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "family\t1\t0\t1\nfamily\t2\t200\t4", "{format:?}");
    }
}

#[test]
fn counters_of_each_process_are_recorded_where_they_are_asked_for() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("out.{}", extension(format));
        let options = ["--counters", "threads,rss@100"];
        let command = ["--", FAMILY, "parent", "2", "0"];
        let output = run(hairline(folder.path()).args(["record", "-o", &trace]).args(options).args(command));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let counters = "select count(distinct p.upid), count(distinct c.id) from process_counter_track c \
            join process p using (upid) where c.name like 'process: threads%' or c.name like 'process: resident memory%'";
        let verdict = judge::load(folder.path().join(&trace), &[counters]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "3\t6", "{format:?}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(hairline(folder.path()).args(["record", "--counters", "rss,memory", "--", FAMILY]));
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(125), 1), "{said}");
    assert!(said.contains("--counters: ") && said.contains("rss,memory"), "{said}");
    assert_eq!(files(folder.path()), [""; 0]);
}

#[test]
fn a_buffer_that_no_process_could_have_is_refused_before_the_command_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused: [(&[&str], &str); 6] = [
        (&["--buffer", "1"], "at least 64K"),
        (&["--buffer", "0"], "at least 64K"),
        (&["--buffer", "63K"], "at least 64K"),
        (&["--buffer", "500G"], "at most 268435456K"),
        (&["--buffer", "15K", "--overflow", "overwrite"], "at least 16K"),
        (&["--buffer", "2000G", "--overflow", "overwrite"], "at most 1073741824K"),
    ];
    for (options, limit) in refused {
        let mut command = hairline(folder.path());
        let output = run(command.arg("record").args(options).args(["--", FAMILY, "parent", "1", "0"]));
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(125), 1), "{options:?}: {said}");
        assert!(said.starts_with("hairline: --buffer: ") && said.contains(limit), "{options:?}: {said}");
        assert_eq!(files(folder.path()), [""; 0], "{options:?}");
    }
    let least: [&[&str]; 2] = [&["--buffer", "64K"], &["--buffer", "16K", "--overflow", "overwrite"]];
    for options in least {
        let mut command = hairline(folder.path());
        let output = run(command.arg("record").args(options).args(["--", FAMILY, "parent", "1", "0"]));
        assert_eq!(output.status.code(), Some(0), "{options:?}: {}", stderr(&output));
        assert_eq!(files(folder.path()), ["trace.pftrace"], "{options:?}: {}", stderr(&output));
    }
}

#[test]
fn the_exit_code_is_the_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let code =
        |command: &[&str]| run(hairline(folder.path()).args(["record", "--"]).args(command)).status.code();
    assert_eq!(code(&[FAMILY, "exit", "7"]), Some(7));
    assert_eq!(code(&[FAMILY, "exit", "0"]), Some(0));
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(128 + 9));
    assert_eq!(code(&["./there-is-no-such-program"]), Some(127));
    assert_eq!(code(&["/dev/null"]), Some(126));
    let output =
        run(hairline(folder.path()).args(["record", "-o", "no/folder.fxt", "--", FAMILY, "exit", "0"]));
    assert_eq!(
        (output.status.code(), stderr(&output).lines().count()),
        (Some(125), 1),
        "{}",
        stderr(&output)
    );
    let output = run(hairline(folder.path()).args(["record", "-o", "trace.json", "--", FAMILY, "exit", "0"]));
    assert_eq!(
        (output.status.code(), stderr(&output).lines().count()),
        (Some(125), 1),
        "{}",
        stderr(&output)
    );
    // Also what is not an argument at all: 2 may be the command's own code.
    for arguments in [&[][..], &["--sample", "0", "--", "true"], &["--wait", "soon", "--", "true"]] {
        let output = run(hairline(folder.path()).arg("record").args(arguments));
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(run(hairline(folder.path()).args(["record", "--help"])).status.code(), Some(0));
    assert_eq!(run(hairline(folder.path()).args(["stats", "--no-such-option"])).status.code(), Some(2));
}

#[test]
fn a_command_that_records_nothing_is_told_so_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("trace.pftrace"), "of before").expect("written");
    let output = run(hairline(folder.path()).args(["record", "--", "sh", "-c", "exit 5"]));
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(5), 1), "{said}");
    assert!(said.contains("no trace") && said.contains("`enable`"), "{said}");
    assert_eq!(files(folder.path()), ["trace.pftrace"]);
    assert_eq!(std::fs::read(folder.path().join("trace.pftrace")).expect("read"), b"of before");
}

/// A command in a process group of its own, as a shell starts it.
fn start(folder: &std::path::Path, arguments: &[&str]) -> Child {
    let mut command = hairline_that_heeds_signals(folder);
    let mut child = command.args(arguments).process_group(0).spawn().expect("it starts");
    assert_eq!(first_line(&mut child), "ready");
    child
}

/// As Ctrl-C does: to all of the group. Or to the process alone.
fn signal(child: &Child, signal: libc::c_int, group: bool) {
    let pid = child.id().cast_signed();
    // SAFETY: takes numbers; the child is ours and not waited for.
    unsafe { libc::kill(if group { -pid } else { pid }, signal) };
}

fn end(child: Child) -> Output {
    child.wait_with_output().expect("its end")
}

#[test]
fn ctrl_c_is_the_commands_and_the_trace_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let has_work = |output: &Output| {
        let verdict = judge::load(folder.path().join("trace.pftrace"), &[PROCESSES]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "family\t2\t200\t1", "{}", stderr(output));
        assert_eq!(files(folder.path()), ["trace.pftrace"]);
    };
    // One that heeds it, and one that dies of it.
    let child = start(folder.path(), &["record", "--", FAMILY, "interrupted", "0"]);
    signal(&child, libc::SIGINT, true);
    let output = end(child);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    has_work(&output);
    let child = start(folder.path(), &["record", "--", FAMILY, "child", "0", "stay"]);
    signal(&child, libc::SIGINT, true);
    let output = end(child);
    assert_eq!((output.status.code(), output.status.signal()), (Some(130), None), "{}", stderr(&output));
    has_work(&output);
    // SIGTERM that only this process gets is passed on.
    let child = start(folder.path(), &["record", "--", FAMILY, "child", "0", "stay"]);
    signal(&child, libc::SIGTERM, false);
    let output = end(child);
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    has_work(&output);
    // Of one that heeds none of them, the second in a row is the end.
    let child = start(folder.path(), &["record", "--", FAMILY, "interrupted", "1000000000"]);
    let has_ended = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
        stat.unwrap_or_default().contains(") Z ")
    };
    while !has_ended() {
        signal(&child, libc::SIGINT, true);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let output = end(child);
    assert!([Some(137), Some(125)].contains(&output.status.code()), "{}", stderr(&output));
}

#[test]
fn who_outlives_the_command_is_named_and_its_own_trace_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(hairline(folder.path()).args(["record", "--wait", "0", "--", FAMILY, "daemon"]));
    let pid: libc::pid_t = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
    // SAFETY: takes numbers; the process stays until it is killed.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let said = stderr(&output);
    assert!(said.contains(&format!("process {pid} (family) is still running")), "{said}");
    let parts = files(folder.path()).into_iter().find(|name| name.contains(".parts-")).expect("its part");
    while !hairline::recovery::find()
        .expect("regions")
        .iter()
        .any(|r| r.pid == pid.cast_unsigned() && r.is_dead())
    {}
    let recovered = run(hairline(folder.path()).args(["recover", &pid.to_string()]));
    assert_eq!(recovered.status.code(), Some(0), "{}", stderr(&recovered));
    let part = folder.path().join(&parts).join(&files(&folder.path().join(&parts))[0]);
    let verdict = judge::load(part, &[PROCESSES]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "family\t2\t200\t1");
}

#[test]
fn a_daemon_that_records_only_after_the_commands_end_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(hairline(folder.path()).args(["record", "--wait", "20", "--", FAMILY, "late", "700"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(files(folder.path()), ["trace.pftrace"], "{}", stderr(&output));
    let verdict = judge::load(folder.path().join("trace.pftrace"), &[PROCESSES]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "family\t2\t200\t1", "{}", stderr(&output));
    // Without a wait it is named.
    let output = run(hairline(folder.path()).args(["record", "--wait", "0", "--", FAMILY, "late", "700"]));
    let said = stderr(&output);
    assert!(said.contains("still running without a recorded event: process "), "{said}");
}

#[test]
fn a_signal_that_only_this_process_gets_is_passed_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = start(folder.path(), &["record", "--", FAMILY, "interrupted", "0"]);
    signal(&child, libc::SIGINT, false);
    let output = end(child);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    for number in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGQUIT] {
        let child = start(folder.path(), &["record", "--", FAMILY, "child", "0", "stay"]);
        signal(&child, number, false);
        let output = end(child);
        assert_eq!(output.status.code(), Some(128 + number), "{}", stderr(&output));
        let verdict = judge::load(folder.path().join("trace.pftrace"), &[PROCESSES]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "family\t2\t200\t1", "{}", stderr(&output));
        let names = files(folder.path()).into_iter().filter(|name| !name.starts_with("core"));
        assert_eq!(names.collect::<Vec<_>>(), ["trace.pftrace"]);
    }
}

/// Another user who may write the output's directory can move the folder of the parts away and give its name
/// to another one. Here the command does that.
#[test]
fn what_takes_the_place_of_the_folder_of_the_parts_is_neither_written_nor_read() {
    const SCRIPT: &str = r#"
        parts=${HAIRLINE%/*}
        mv "$parts" "$parts.away" && mkdir "$parts" || exit 9
        for name in names lost states samples.pftrace; do ln -s "$PWD/precious" "$parts/$name"; done
        ln -s "$PWD/secret" "$parts/1-secret.pftrace"
        cp secret "$parts/2-secret.pftrace"
        mkfifo "$parts/3-secret.pftrace"
        true
    "#;
    for options in [&[][..], &["--sched"], &["--sched", "--sample"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let secret =
            hairline(folder.path()).args(["record", "-o", "t.pftrace", "--", FAMILY, "exit", "0"]).status();
        assert!(secret.expect("it ran").success());
        std::fs::rename(folder.path().join("t.pftrace"), folder.path().join("secret")).expect("a trace");
        std::fs::write(folder.path().join("precious"), "precious").expect("written");
        let mut command = hairline(folder.path());
        command.arg("record").args(options).args(["--wait", "0", "--", "sh", "-c", SCRIPT]);
        let output = run(&mut command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(std::fs::read(folder.path().join("precious")).expect("read"), b"precious", "{options:?}");
        assert!(said.contains("it was moved or replaced"), "{said}");
        let names = files(folder.path());
        let [away, parts] = ["away", ""].map(|end| {
            let is_it =
                |name: &&String| name.contains(".parts-") && name.ends_with(".away") == (end == "away");
            folder.path().join(names.iter().find(is_it).expect("a folder"))
        });
        assert_eq!(files(&away), [""; 0], "{options:?}: what was recorded is removed");
        assert_eq!(files(&parts).len(), 7, "{options:?}: what others put there stays");
        let trace = folder.path().join("trace.pftrace");
        if trace.exists() {
            let verdict = judge::load(
                &trace,
                &[
                    "select count(*) from slice where category is not 'hairline'",
                    "select count(*) > 0 from sched",
                ],
            );
            verdict.require_clean();
            assert_eq!(verdict.results[0].text(), "0", "{options:?}: nothing of the secret");
            assert_eq!(verdict.results[1].text(), "1", "{options:?}");
        } else {
            assert!(options.is_empty() || said.contains("no context switches"), "{said}");
        }
    }
}

#[test]
fn what_a_recording_needs_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let script = r#"stat -c %a "${HAIRLINE%/*}""#;
    let output = run(hairline(folder.path()).args(["record", "--wait", "0", "--", "sh", "-c", script]));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "700\n", "{}", stderr(&output));
    // The trace is not: it has the mode of a new file.
    let output = run(hairline(folder.path()).args(["record", "--", FAMILY, "child", "0"]));
    let mode =
        |name: &str| std::fs::metadata(folder.path().join(name)).map(|about| about.permissions().mode());
    std::fs::write(folder.path().join("other"), "").expect("written");
    let modes = ["trace.pftrace", "other"].map(|name| mode(name).expect("a file"));
    assert_eq!(modes[0], modes[1], "{}", stderr(&output));
}

/// A day, the UUID of the trace, and the number of different UUIDs that the judge found.
const FACTS: [&str; 2] = [
    "select count(*) from clock_snapshot where clock_name = 'REALTIME' and clock_value > 1700000000000000000",
    "select str_value from metadata where name = 'trace_uuid'",
];

#[test]
fn with_the_states_of_threads_the_trace_has_the_clock_of_the_day_and_the_commands_uuid() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("out.{}", extension(format));
        let output = run(hairline(folder.path()).args([
            "record",
            "--sched",
            "--keep-parts",
            "-o",
            &trace,
            "--",
            FAMILY,
            "parent",
            "2",
            "0",
        ]));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        if said.contains("no context switches") {
            eprintln!("{said}: not tested");
            return;
        }
        let kept = said.lines().find_map(|line| line.split("own traces are in ").nth(1)).expect("the parts");
        let parts = files(std::path::Path::new(kept));
        let verdict = judge::load(folder.path().join(&trace), &FACTS);
        verdict.require_clean();
        assert_ne!(verdict.results[0].text(), "0", "{format:?}");
        // The trace is that of the command, which has the first number of all processes.
        let uuid = verdict.results[1].text();
        let first = parts.iter().filter(|part| part.ends_with(extension(format)));
        let of_parts =
            first.map(|part| judge::load(std::path::Path::new(kept).join(part), &FACTS).results[1].text());
        let of_parts: Vec<String> = of_parts.collect();
        assert_eq!(
            of_parts.iter().filter(|of_part| **of_part == uuid).count(),
            1,
            "{format:?}: {of_parts:?}"
        );
        let exported = run(hairline(folder.path()).args(["export", &trace, "-o", "tables"]));
        assert_eq!(exported.status.code(), Some(0), "{}", stderr(&exported));
        let dates = files(&folder.path().join("tables/slice"));
        assert!(dates.iter().all(|date| date.starts_with("date=20")), "{format:?}: {dates:?}");
        assert_eq!(dates.len(), 1, "{format:?}: {dates:?}");
    }
}

/// The slices `work` of a trace.
fn work(trace: &std::path::Path) -> i64 {
    let verdict = judge::load(trace, &["select count(*) from slice where name = 'work' and dur >= 0"]);
    verdict.require_clean();
    verdict.results[0].single_i64()
}

#[test]
fn a_process_that_executes_another_traced_program_is_in_the_trace_as_both() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("out.{}", extension(format));
        let ending = env!("CARGO_BIN_EXE_ending");
        let output = run(hairline(folder.path()).args(["record", "-o", &trace, "--", ending, "exec-self"]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(work(&folder.path().join(&trace)), 40, "{format:?}: {}", stderr(&output));
    }
}

#[test]
fn a_number_that_processes_have_in_turn_names_no_part_twice() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("out.{}", extension(format));
        // Each of the three is process 1 of its own namespace.
        let script = format!(
            "for n in 1 2 3; do unshare --pid --fork --mount-proc {} return || exit 9; done",
            env!("CARGO_BIN_EXE_ending")
        );
        let output = run(hairline(folder.path()).args(["record", "-o", &trace, "--", "sh", "-c", &script]));
        if output.status.code() == Some(9) {
            return eprintln!("no namespaces here: not tested");
        }
        assert_eq!(work(&folder.path().join(&trace)), 60, "{format:?}: {}", stderr(&output));
    }
}

#[test]
fn the_name_of_a_trace_may_have_placeholders() {
    let folder = tempfile::tempdir().expect("a folder");
    let ending = env!("CARGO_BIN_EXE_ending");
    for _ in 0..2 {
        let command = ["record", "-o", "%e-%n.fxt", "--", ending, "return"];
        assert_eq!(run(hairline(folder.path()).args(command)).status.code(), Some(0));
    }
    assert_eq!(files(folder.path()), ["ending-1.fxt", "ending-2.fxt"]);
    let output =
        run(hairline(folder.path()).args(["record", "-o", "%p-%h-%t-%u.fxt", "--", ending, "return"]));
    let names = files(folder.path());
    assert!(names.len() == 3 && names.iter().all(|name| !name.contains('%')), "{names:?}");
    assert!(stderr(&output).contains(&names[0]), "{}", stderr(&output));
}

#[test]
fn of_several_recordings_to_one_path_at_a_time_none_replaces_another() {
    for exists in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let record = || {
            let mut command = hairline(folder.path());
            command.args(["record", "-o", "t.fxt", "--", env!("CARGO_BIN_EXE_ending"), "pause"]);
            command.spawn().expect("it starts")
        };
        if exists {
            record().wait().expect("its end");
        }
        let children: Vec<Child> = (0..4).map(|_| record()).collect();
        let said: String = children.into_iter().map(|child| stderr(&end(child))).collect();
        assert_eq!(files(folder.path()), ["t-2.fxt", "t-3.fxt", "t-4.fxt", "t.fxt"], "{said}");
        assert_eq!(said.matches("written by another process meanwhile").count(), 3, "{said}");
        for name in files(folder.path()) {
            assert_eq!(work(&folder.path().join(name)), 20);
        }
    }
}

#[test]
fn a_recording_replaces_no_trace_of_a_program_that_was_killed() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = format!("t.{}", extension(format));
        let ending = env!("CARGO_BIN_EXE_ending");
        let mut program = std::process::Command::new(ending);
        program
            .arg("abort")
            .current_dir(folder.path())
            .env("HAIRLINE", &trace)
            .stderr(std::process::Stdio::null());
        let mut program = program.spawn().expect("it starts");
        let pid = program.id().to_string();
        program.wait().expect("its end");
        let before = std::fs::read(folder.path().join(&trace)).expect("a trace");
        for n in 2..4 {
            let output = run(hairline(folder.path()).args(["record", "-o", &trace, "--", ending, "return"]));
            let second = format!("t-{n}.{}", extension(format));
            assert!(stderr(&output).contains("without its end"), "{}", stderr(&output));
            assert_eq!(work(&folder.path().join(second)), 20);
            assert!(before == std::fs::read(folder.path().join(&trace)).expect("a trace"));
        }
        assert!(run(hairline(folder.path()).args(["recover", &pid])).status.success());
        assert_eq!(work(&folder.path().join(&trace)), 20);
    }
}
