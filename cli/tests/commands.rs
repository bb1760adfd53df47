//! The command as a user meets it: output, exit codes, files.

use std::path::Path;
use std::process::{Command, Output};

use hairline::{Session, trace_scope};

/// A process that records ten scopes and aborts: this test program itself, when another test starts it so.
#[test]
fn victim() {
    let Some(output) = std::env::var_os("VICTIM_OUTPUT") else { return };
    let session = Session::builder().output(output).start().expect("a session");
    for _ in 0..10 {
        trace_scope!("cli", "scope");
    }
    std::mem::forget(session);
    std::process::abort();
}

/// Lets a victim die. Its number.
fn dead(trace: &Path) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "victim"]).env("VICTIM_OUTPUT", trace).env_remove("HAIRLINE");
    let child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn();
    let mut child = child.expect("a victim");
    let pid = child.id().to_string();
    assert!(!child.wait().expect("its end").success());
    pid
}

fn hairline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hairline")).args(arguments).output().expect("it ran")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The line of `hairline ls` about this process.
fn listed(pid: &str) -> Option<String> {
    let list = stdout(&hairline(&["ls"]));
    list.lines().find(|line| line.split_whitespace().next() == Some(pid)).map(str::to_owned)
}

#[test]
fn what_a_dead_process_left_is_listed_and_recovered_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("trace.fxt");
    let pid = dead(&trace);
    let titles = stdout(&hairline(&["ls"])).lines().next().map(str::to_owned).expect("a line");
    let titles: Vec<_> = titles.split_whitespace().collect();
    assert_eq!(titles, ["PID", "STATE", "SIZE", "PROCESS", "OUTPUT"]);
    let line = listed(&pid).expect("it is listed");
    assert!(line.contains(" dead ") && line.ends_with(&*trace.to_string_lossy()), "{line}");

    let kept = hairline(&["recover", "--keep", &pid, "-o", &directory.path().join("copy").to_string_lossy()]);
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    let done = hairline(&["recover", &pid]);
    assert_eq!((done.status.code(), stderr(&done).as_str()), (Some(0), ""));
    assert!(stdout(&done).contains(&*trace.to_string_lossy()) && stdout(&done).lines().count() == 1);
    let (original, copy) = (std::fs::read(&trace), std::fs::read(directory.path().join("copy")));
    assert!(original.expect("a trace") == copy.expect("a copy"));

    assert_eq!(listed(&pid), None);
    let again = hairline(&["recover", &pid]);
    let nothing = format!("hairline: process {pid} has left nothing\n");
    assert_eq!((again.status.code(), stderr(&again)), (Some(3), nothing));
}

#[test]
fn a_living_process_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = Session::builder().output(directory.path().join("trace.fxt")).start().expect("a session");
    let pid = std::process::id().to_string();
    assert!(listed(&pid).is_some_and(|line| line.contains(" alive ")));
    let refused = hairline(&["recover", &pid]);
    assert_eq!(
        (refused.status.code(), stderr(&refused).lines().count()),
        (Some(4), 1),
        "{}",
        stderr(&refused)
    );
    session.stop().expect("stopped");
}

#[test]
fn arguments_that_make_no_sense_are_told_so() {
    for arguments in
        [&["recover"][..], &["recover", "--all", "12"], &["recover", "--all", "-o", "x"], &["no"]]
    {
        assert_eq!(hairline(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let missing = hairline(&["recover", "/dev/shm/hairline-none"]);
    assert_eq!(
        (missing.status.code(), stderr(&missing).lines().count()),
        (Some(1), 1),
        "{}",
        stderr(&missing)
    );
    assert!(stdout(&hairline(&["recover", "--help"])).contains("hairline recover --all"));
}

#[test]
fn what_nohup_ignores_the_recorded_command_ignores_too() {
    let directory = tempfile::tempdir().expect("a directory");
    // SIGHUP is 1.
    let hup_of = |said: &str| {
        let mask = said.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
        u64::from_str_radix(mask.trim(), 16).expect("a number") & 1
    };
    let ignored = |trap: &str| {
        let script = format!("{trap} exec \"$0\" record -- grep SigIgn /proc/self/status");
        let mut shell = Command::new("sh");
        let shell = shell.current_dir(directory.path()).args(["-c", &script, env!("CARGO_BIN_EXE_hairline")]);
        hup_of(&stdout(&shell.output().expect("it ran")))
    };
    // This test may run under nohup too.
    let own = hup_of(&std::fs::read_to_string("/proc/self/status").expect("procfs"));
    assert_eq!([ignored(""), ignored("trap '' HUP;")], [own, 1]);
}

#[test]
fn a_missing_argument_is_told_with_what_to_write() {
    let recover = hairline(&["recover"]);
    let expected = "give a pid or a region, which `hairline ls` lists, or --all for all dead processes";
    assert_eq!((recover.status.code(), stderr(&recover)), (Some(2), format!("hairline: {expected}\n")));
    let record = hairline(&["record", "--sample", "ls"]);
    assert!(stderr(&record).contains("write `--` before the command"), "{}", stderr(&record));
    let record = hairline(&["record", "--sample", "0", "--", "ls"]);
    assert!(stderr(&record).contains("0 is not in 1..=10000"), "{}", stderr(&record));
}
