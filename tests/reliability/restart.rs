//! A recovery, and a new run of the program that writes to the same path, at the same time.

#![allow(unsafe_code)] // flock

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use hairline::recovery::{self, RecoverError, RecoverOptions};
use hairline::{Format, Session};
use hairline_tests::children;
use hairline_tests::judge;
use hairline_tests::mortal::{Orders, Victim};
use hairline_tests::recording::{FORMATS, extension, turn};

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

/// A program that is killed if nobody waited for it: one that was stopped would stay for ever.
struct Started(Option<Child>);

impl Started {
    fn new(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("it starts")))
    }

    fn pid(&self) -> u32 {
        self.0.as_ref().expect("it has not ended").id()
    }

    fn signal(&self, number: libc::c_int) {
        children::signal(self.pid(), number);
    }

    /// Waits until it has stopped or ended. Returns whether it has stopped.
    fn has_stopped(&self) -> bool {
        let pid = self.pid().cast_signed();
        wait_until("it stops or ends", || children::is_over(pid));
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("its state");
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    }

    /// Waits for its end, which is a good one.
    fn end(mut self) -> Output {
        let output = self.0.take().expect("it has not ended").wait_with_output().expect("it ran");
        assert!(output.status.success(), "{output:?}");
        output
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for an event.
///
/// # Panics
/// When it has not come after a minute.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::yield_now();
    }
}

/// Locks a file as a session does. `None` where another process has.
fn lock(path: &Path) -> Option<File> {
    let file = File::open(path).expect("opened");
    // SAFETY: a call on an open descriptor.
    let error = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    (error == 0).then_some(file)
}

/// A recovery that stands still while it has the trace locked. It goes from stop to stop until it has; one
/// that is over before is started again.
fn stopped_recovery(victim: &Victim) -> Started {
    let region = victim.region().expect("a region");
    for _ in 0..50 {
        // It begins with a stop.
        let script =
            format!("kill -STOP $$; exec {} recover --keep \"$0\"", env!("CARGO_BIN_EXE_hairline_command"));
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(&region).stdout(Stdio::null()).stderr(Stdio::null());
        let recovery = Started::new(&mut command);
        while recovery.has_stopped() {
            if lock(&victim.trace).is_none() {
                return recovery;
            }
            recovery.signal(libc::SIGCONT);
            std::thread::sleep(Duration::from_micros(300));
            recovery.signal(libc::SIGSTOP);
        }
        recovery.end();
    }
    panic!("no recovery could be stopped while it had the trace locked");
}

/// The program is started again, with the same output.
fn start_again(victim: &Victim) -> Started {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ending"));
    command.arg("return").env("HAIRLINE", &victim.trace).stdout(Stdio::null()).stderr(Stdio::piped());
    Started::new(&mut command)
}

#[test]
fn a_program_that_is_started_again_during_a_recovery_records_beside_the_trace() {
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let victim = dead(format, directory.path(), 100_000);
        let recovery = stopped_recovery(&victim);
        let output = start_again(&victim).end(); // though the recovery does not go on
        recovery.signal(libc::SIGCONT);
        recovery.end();
        let lines = said(&output);
        assert!(lines.len() == 1 && lines[0].contains("recover"), "it says why: {output:?}");
        has_the_work(&directory.path().join(format!("trace-2.{}", extension(format))));
        victim.check(&victim.trace).expect("all steps");
        judge::load(&victim.trace, &[]).require_clean();
    }
}

#[test]
fn a_recovery_leaves_the_trace_of_a_session_that_goes_on_alone() {
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let victim = dead(format, directory.path(), 1000);
        std::fs::remove_file(&victim.trace).expect("removed");
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
    let file = lock(&victim.trace).expect("locked");
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
