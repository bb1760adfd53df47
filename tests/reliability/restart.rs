//! A recovery, and a new run of the program that writes to the same path, at the same time.

#![allow(unsafe_code)] // kill, flock

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use hairline::recovery::{self, RecoverError, RecoverOptions};
use hairline::{Format, Session};
use hairline_tests::judge;
use hairline_tests::mortal::{Orders, Victim};
use hairline_tests::recording::{FORMATS, turn};

use crate::others::said;
use crate::program::has_the_work;

/// A program that was killed; its ring holds so much that to recover it takes some time.
fn dead(format: Format, directory: &Path, scopes: u64) -> Victim {
    let orders = Orders {
        chunk: 16 << 20,
        buffer: 64 << 20,
        moderate: false,
        end: scopes.to_string(),
        ..Orders::new(format)
    };
    let mut victim = Victim::start(env!("CARGO_BIN_EXE_mortal"), directory, orders);
    victim.wait_until_committed(scopes);
    victim.kill();
    victim
}

fn signal(child: &Child, number: libc::c_int) {
    // SAFETY: takes numbers; the child has not been waited for.
    unsafe { libc::kill(child.id().cast_signed(), number) };
}

/// A recovery that was stopped while it has the trace open. `None` if it was over sooner.
fn stopped_recovery(victim: &Victim) -> Option<Child> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    command.arg("recover").arg("--keep").arg(victim.region().expect("a region"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let files = format!("/proc/{}/fd", child.id());
    let has_it_open = || {
        let open = fs::read_dir(&files).into_iter().flatten().flatten();
        open.filter_map(|f| fs::read_link(f.path()).ok()).any(|path| path == victim.trace)
    };
    let is_over = || fs::read_dir(&files).into_iter().flatten().count() == 0;
    let began = Instant::now();
    while !has_it_open() {
        // Until its `exec` it has this process's files.
        if is_over() && began.elapsed() > Duration::from_secs(1) {
            break;
        }
    }
    signal(&child, libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(20));
    has_it_open().then_some(child).or_else(|| {
        eprintln!("the recovery was over before it could be stopped");
        None
    })
}

/// The program is started again, with the same output.
fn start_again(victim: &Victim) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ending"));
    command.arg("return").env("HAIRLINE", &victim.trace).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

fn end(child: Child) -> Output {
    let output = child.wait_with_output().expect("it ran");
    assert!(output.status.success(), "{output:?}");
    output
}

#[test]
fn a_program_that_is_started_again_does_not_write_into_a_trace_that_is_being_recovered() {
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let victim = dead(format, directory.path(), 100_000);
        let recovery = (0..5).find_map(|_| stopped_recovery(&victim)).expect("a recovery that was stopped");
        let began = Instant::now();
        let output = end(start_again(&victim));
        let took = began.elapsed();
        signal(&recovery, libc::SIGCONT);
        end(recovery);
        let lines = said(&output);
        assert!(lines.len() == 1 && lines[0].contains("recover"), "it says why: {output:?}");
        assert!(took < Duration::from_secs(8), "{took:?}");
        victim.check(&victim.trace).expect("all steps");
        judge::load(&victim.trace, &[]).require_clean();
    }
}

#[test]
fn a_program_that_is_started_again_waits_a_moment_for_a_recovery_that_ends() {
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let victim = dead(format, directory.path(), 100_000);
        let recovery = (0..5).find_map(|_| stopped_recovery(&victim)).expect("a recovery that was stopped");
        let again = start_again(&victim);
        std::thread::sleep(Duration::from_millis(200));
        signal(&recovery, libc::SIGCONT);
        end(recovery);
        let output = end(again);
        assert_eq!(said(&output), [""; 0]);
        has_the_work(&victim.trace);
    }
}

#[test]
fn a_recovery_leaves_the_trace_of_a_session_that_goes_on_alone() {
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let victim = dead(format, directory.path(), 1000);
        let _turn = turn();
        let session = Session::builder().output(&victim.trace).start().expect("a session");
        (0..1000).for_each(|_| drop(hairline::scope!("restart", "of the new run")));
        session.flush().expect("flushed");
        let region = victim.region().expect("a region");
        let recovered = recovery::recover(&region, &RecoverOptions::new()).expect("recovered");
        let beside = recovered.path.expect("a trace");
        let name = beside.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(name.ends_with(&format!(".recovered-{}", victim.pid())), "{name}");
        victim.check(&beside).expect("all steps");
        (0..1000).for_each(|_| drop(hairline::scope!("restart", "of the new run")));
        session.stop().expect("stopped");
        let sql = "select count(*) from slice where name = 'of the new run' and dur >= 0";
        let verdict = judge::load(&victim.trace, &[sql]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "2000");
    }
}

/// Somebody else has locked the very trace: it is not this recovery's to change, and the region stays for
/// another one.
#[test]
fn a_recovery_touches_no_trace_that_somebody_else_has_locked() {
    let directory = tempfile::tempdir().expect("a directory");
    let victim = dead(Format::Fxt, directory.path(), 1000);
    let region = victim.region().expect("a region");
    let file = File::open(&victim.trace).expect("opened");
    // SAFETY: a call on an open descriptor.
    assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }, 0);
    let before = fs::read(&victim.trace).expect("read");
    for options in [RecoverOptions::new(), RecoverOptions::new().to(directory.path().join("to.fxt"))] {
        let error = recovery::recover(&region, &options).expect_err("locked");
        let is_busy = matches!(&error, RecoverError::Io { source, .. }
            if source.kind() == std::io::ErrorKind::WouldBlock);
        assert!(is_busy, "{error:?}");
        assert!(before == fs::read(&victim.trace).expect("read") && region.exists());
    }
    drop(file);
    recovery::recover(&region, &RecoverOptions::new()).expect("recovered");
    victim.check(&victim.trace).expect("all steps");
}
