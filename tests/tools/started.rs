//! `hairline start`, `stop`, `trigger`, `ls`: sessions that outlive the command.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::running::{
    FOUR, LISTENS, Listening, interrupt, record, wait_until_recorded, whole, whole_but_ends,
};
use crate::{files, first_line, hairline, hairline_that_heeds_signals, run, stderr, without_tracing};

/// Of the process with this pid: state and output, in the list.
fn listed(folder: &Path, pid: &str) -> String {
    let listed = run(hairline(folder).arg("ls"));
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let own = listed.lines().find(|line| line.split_whitespace().next() == Some(pid));
    own.unwrap_or_default().to_owned()
}

#[test]
fn a_session_outlives_the_command_that_starts_it_until_a_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Listening::start(&[]);
    let pid = program.pid();
    for format in FORMATS {
        let trace = folder.path().join(format!("t.{}", extension(format)));
        let start = || {
            let mut command = hairline(folder.path());
            run(command.args(["start", &pid, "--overflow", "block", "-o"]).arg(&trace))
        };
        let started = start();
        assert_eq!(started.status.code(), Some(0), "{}", stderr(&started));
        let said = String::from_utf8_lossy(&started.stdout).into_owned();
        assert!(said.contains(&*trace.to_string_lossy()) && said.contains("on its own side"), "{said}");
        let list = listed(folder.path(), &pid);
        assert!(list.contains(" alive ") && list.ends_with(&*trace.to_string_lossy()), "{list}");
        for again in [start(), record(folder.path(), &pid, "u.fxt", &["--for", "100ms"])] {
            assert!(
                stderr(&again).contains("recorded already, until `hairline stop`, to "),
                "{}",
                stderr(&again)
            );
        }
        std::thread::sleep(Duration::from_millis(200));
        let stopped = run(hairline(folder.path()).args(["stop", &pid]));
        assert_eq!(stopped.status.code(), Some(0), "{}", stderr(&stopped));
        let said = String::from_utf8_lossy(&stopped.stdout).into_owned();
        assert!(said.contains(&*trace.to_string_lossy()) && said.contains(" records, "), "{said}");
        assert_eq!(whole(&trace), FOUR, "{format:?}");
        assert!(listed(folder.path(), &pid).contains(" listening "));
    }
}

#[test]
fn a_stop_gives_up_an_output_that_is_stuck() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("t.fxt");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let reader = Command::new("sh").args(["-c", "exec sleep 600 <\"$0\""]).arg(&pipe).spawn();
    let mut reader = reader.expect("it starts");
    let mut program = Listening::start(&["full"]);
    let pid = program.pid();
    let started = run(hairline(folder.path()).args(["start", &pid, "-o"]).arg(&pipe));
    assert_eq!(started.status.code(), Some(0), "{}", stderr(&started));
    std::thread::sleep(Duration::from_millis(300)); // until the pipe is full
    for expected in ["the output takes no bytes", "nothing is recorded"] {
        let stopped = run(hairline(folder.path()).args(["stop", &pid]));
        assert!(
            stopped.status.code() == Some(1) && stderr(&stopped).contains(expected),
            "{}",
            stderr(&stopped)
        );
    }
    assert!(program.ends());
    let _ = reader.kill().and_then(|()| reader.wait());
}

#[test]
fn a_stop_ends_no_other_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Listening::start(&[]);
    let pid = program.pid();
    let refused = |expected: &str| {
        let stopped = run(hairline(folder.path()).args(["stop", &pid]));
        let said = stderr(&stopped);
        assert!(stopped.status.code() == Some(1) && said.contains(expected), "{said}");
        assert_eq!((said.lines().count(), stopped.stdout.len()), (1, 0), "{said}");
    };
    refused("nothing is recorded");
    let recording = hairline_that_heeds_signals(folder.path())
        .args(["record", "-p", &pid, "--overflow", "block", "-o", "t.pftrace"])
        .spawn()
        .expect("it starts");
    wait_until_recorded(folder.path(), &pid);
    refused("records it: end that command");
    interrupt(&recording);
    assert!(recording.wait_with_output().expect("its end").status.success());
    assert_eq!(whole(&folder.path().join("t.pftrace")), FOUR);
    // A session of the environment.
    let trace = folder.path().join("own.fxt");
    let mut program = Command::new(LISTENS);
    without_tracing(&mut program);
    let mut program = Listening::of(program.env("HAIRLINE", &trace));
    wait_until_recorded(folder.path(), &program.pid());
    let stopped = run(hairline(folder.path()).args(["stop", &program.pid()]));
    assert!(stderr(&stopped).contains("that of the program or of its environment"), "{}", stderr(&stopped));
    assert!(program.ends());
    assert_eq!(whole(&trace), FOUR);
}

#[test]
fn a_session_that_nobody_stops_ends_whole_with_its_process() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Listening::start(&[]);
        let trace = folder.path().join(format!("t.{}", extension(format)));
        let mut command = hairline(folder.path());
        let started = run(command.args(["start", &program.pid(), "--overflow", "block", "-o"]).arg(&trace));
        assert_eq!(started.status.code(), Some(0), "{}", stderr(&started));
        std::thread::sleep(Duration::from_millis(100));
        assert!(program.ends());
        assert_eq!(whole(&trace), FOUR, "{format:?}");
    }
}

#[test]
fn a_start_replaces_no_trace_that_somebody_wants() {
    let folder = tempfile::tempdir().expect("a folder");
    let (wanted, foreign) = (folder.path().join("t.fxt"), folder.path().join("text.fxt"));
    // A session that was killed.
    let mut killed = crate::Traced::start(&["child", "0", "stay"], &wanted, &[]);
    killed.kill();
    std::fs::write(&foreign, "a text that somebody wants").expect("written");
    let before = std::fs::read(&wanted).expect("read");
    let program = Listening::start(&[]);
    for (path, becomes) in [(&wanted, "t-2.fxt"), (&foreign, "text-2.fxt")] {
        let started = run(hairline(folder.path()).args(["start", &program.pid(), "-o"]).arg(path));
        let said = String::from_utf8_lossy(&started.stdout).into_owned();
        assert!(started.status.success() && said.contains(becomes), "{said}{}", stderr(&started));
        let stopped = run(hairline(folder.path()).args(["stop", &program.pid()]));
        assert!(stopped.status.success(), "{}", stderr(&stopped));
        judge::load(folder.path().join(becomes), &["select 1"]).require_clean();
    }
    assert!(std::fs::read(&wanted).expect("read") == before);
    assert_eq!(std::fs::read_to_string(&foreign).expect("read"), "a text that somebody wants");
}

#[test]
fn what_a_start_cannot_do_is_said_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Listening::start(&["quiet"]);
    let pid = program.pid();
    let own = std::process::id().to_string();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    for (arguments, code, expected) in [
        (vec!["start", &*pid, "-o", "t.fxt"], 2, "give an absolute path"),
        (vec!["start", &*pid, "-o", &path("t.txt")], 1, "use a file with the extension"),
        (vec!["start", &*pid, "-o", &path("no/t.fxt")], 1, "No such file"),
        (vec!["start", &*pid, "-o", &path("t.fxt"), "--buffer", "1"], 2, "--buffer: "),
        (vec!["start", &*own, "-o", &path("t.fxt")], 3, "does not listen"),
        (vec!["start", "no-such-name", "-o", &path("t.fxt")], 3, "with the name no-such-name"),
        (vec!["stop", &*own], 3, "does not listen"),
    ] {
        let output = run(hairline(folder.path()).args(&arguments));
        let said = stderr(&output);
        assert!(output.status.code() == Some(code) && said.contains(expected), "{arguments:?}: {said}");
        assert_eq!((said.lines().count(), files(folder.path()).len()), (1, 0), "{said}");
    }
}

#[test]
fn a_trigger_makes_the_flight_recorder_of_a_start_write_a_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Listening::start(&[]);
    let pid = program.pid();
    let refused = run(hairline(folder.path()).args(["trigger", &pid]));
    assert!(
        refused.status.code() == Some(1) && stderr(&refused).contains("no session runs"),
        "{}",
        stderr(&refused)
    );
    for format in FORMATS {
        let trace = folder.path().join(format!("t-%n.{}", extension(format)));
        let mut start = hairline(folder.path());
        let started = run(start.args(["start", &pid, "--overflow", "overwrite", "-o"]).arg(&trace));
        assert_eq!(started.status.code(), Some(0), "{}", stderr(&started));
        std::thread::sleep(Duration::from_millis(200));
        let triggered = run(hairline(folder.path()).args(["trigger", &pid]));
        assert_eq!(triggered.status.code(), Some(0), "{}", stderr(&triggered));
        let first = folder.path().join(format!("t-1.{}", extension(format)));
        let until = Instant::now() + Duration::from_secs(20);
        while !first.exists() {
            assert!(Instant::now() < until, "{format:?}: {:?}", files(folder.path()));
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(whole_but_ends(&first), FOUR, "{format:?}");
        let stopped = run(hairline(folder.path()).args(["stop", &pid]));
        assert_eq!(stopped.status.code(), Some(0), "{}", stderr(&stopped));
        assert_eq!(
            whole_but_ends(&folder.path().join(format!("t-2.{}", extension(format)))),
            FOUR,
            "{format:?}"
        );
    }
    let mut start = hairline(folder.path());
    assert!(run(start.args(["start", &pid, "-o"]).arg(folder.path().join("u.fxt"))).status.success());
    let refused = run(hairline(folder.path()).args(["trigger", &pid]));
    assert!(stderr(&refused).contains("no flight recorder runs"), "{}", stderr(&refused));
}

#[test]
fn a_forked_child_of_a_started_session_has_its_own_and_is_stopped_on_its_own() {
    use std::io::Write;
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Listening::start(&["later"]);
        let pid = program.pid();
        let trace = |pid: &str| folder.path().join(format!("{pid}.{}", extension(format)));
        let mut start = hairline(folder.path());
        let started = run(start.args(["start", &pid, "--overflow", "block", "-o"]).arg(trace("%p")));
        assert_eq!(started.status.code(), Some(0), "{}", stderr(&started));
        program.child.stdin.as_mut().expect("piped").write_all(b"\n").expect("written");
        let child = first_line(&mut program.child);
        wait_until_recorded(folder.path(), &child);
        std::thread::sleep(Duration::from_millis(100));
        for (pid, rows) in [(&child, "worker-0\t1\t1\t0"), (&pid, FOUR)] {
            let stopped = run(hairline(folder.path()).args(["stop", pid]));
            assert_eq!(stopped.status.code(), Some(0), "{}", stderr(&stopped));
            assert_eq!(whole(&trace(pid)), rows, "{format:?}");
        }
        assert!(program.ends());
    }
}
