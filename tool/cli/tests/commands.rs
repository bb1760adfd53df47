//! The command as a user meets it: output, exit codes, files.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

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

/// This process can have one session at a time.
static SESSION: Mutex<()> = Mutex::new(());

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
fn what_a_killed_record_has_left_is_joined_by_other_commands() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path().join("trace.pftrace.parts-aB3dEf");
    std::fs::create_dir(&folder).expect("a folder");
    let output = hairline(&["recover", &folder.to_string_lossy()]);
    let (code, said) = (output.status.code(), stderr(&output));
    assert!(code == Some(1) && said.contains("hairline merge -o OUTPUT"), "{code:?}: {said}");
}

#[test]
fn a_trace_whose_folder_is_gone_says_so_and_how_its_events_are_discarded() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path().join("folder");
    std::fs::create_dir(&folder).expect("a folder");
    let pid = dead(&folder.join("trace.fxt"));
    std::fs::remove_dir_all(&folder).expect("removed");
    let failed = hairline(&["recover", &pid]);
    let said = stderr(&failed);
    assert_eq!((failed.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains(&format!("; the folder {} is gone: make it again", folder.display())), "{said}");
    let remove = said.split('`').nth(1).expect("a command");
    assert!(Command::new("sh").args(["-c", remove]).status().expect("it runs").success(), "{remove}");
    assert_eq!(listed(&pid), None);
}

#[test]
fn a_living_process_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let _turn = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
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
        (Some(3), 1),
        "{}",
        stderr(&missing)
    );
    let missing = hairline(&["snapshot", "/dev/shm/hairline-none", "-o", "x.fxt"]);
    assert_eq!(missing.status.code(), Some(3), "{}", stderr(&missing));
    assert!(stdout(&hairline(&["recover", "--help"])).contains("hairline recover --all"));
}

#[test]
fn a_trace_of_a_region_goes_to_a_file_whose_name_says_its_format() {
    let directory = tempfile::tempdir().expect("a directory");
    let pid = dead(&directory.path().join("trace.fxt"));
    let own = directory.path().join("own.fxt");
    let _turn = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    let session = Session::builder().output(&own).start().expect("a session");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
        command.current_dir(directory.path()).args(arguments).output().expect("it ran")
    };
    let alive = std::process::id().to_string();
    let wrong = "the session writes FXT: end it in .fxt";
    let all: [(&[&str], i32, &str); 8] = [
        (&["recover", &pid, "-o", "-"], 2, "cannot go to stdout"),
        (&["recover", &pid, "-o", "x.json"], 2, wrong),
        (&["recover", &pid, "-o", "x.pftrace"], 2, wrong),
        (&["recover", &pid, "-o", "x.fxt.gz"], 2, wrong),
        (&["snapshot", &alive, "-o", "-"], 2, "cannot go to stdout"),
        (&["snapshot", &alive, "-o", "x.json"], 2, wrong),
        (&["record", "-o", "-", "--", "true"], 125, "cannot go to stdout"),
        (&["record", "-o", "-", "--format", "fxt", "--", "true"], 125, "cannot go to stdout"),
    ];
    for (arguments, code, complaint) in all {
        let output = run(arguments);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "{arguments:?}: {said}");
        assert!(said.contains(complaint), "{arguments:?}: {said}");
    }
    let names = std::fs::read_dir(directory.path()).expect("the directory").count();
    assert_eq!(names, 2, "only the traces of both processes");
    for (arguments, name) in
        [(["snapshot", &alive, "-o", "y.fxt"], "y.fxt"), (["recover", &pid, "-o", "z"], "z")]
    {
        let output = run(&arguments);
        assert!(output.status.success() && directory.path().join(name).exists(), "{}", stderr(&output));
    }
    session.stop().expect("stopped");
}

#[test]
fn a_list_that_cannot_be_printed_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let pid = dead(&directory.path().join("trace.fxt"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let full = std::fs::File::options().write(true).open("/dev/full").expect("opened");
    let output = command.arg("ls").stdout(full).output().expect("it ran");
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(1), 1), "{}", stderr(&output));
    assert!(hairline(&["recover", &pid]).status.success());
}

#[test]
fn a_command_without_a_sample_is_told_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    let command = command.current_dir(directory.path()).args(["record", "--sample", "1", "--", "true"]);
    let output = command.output().expect("it ran");
    let said = stderr(&output);
    if said.contains("no samples: ") {
        eprintln!("{said}: not tested");
        return;
    }
    assert!(output.status.success() && said.contains("there was no stack sample"), "{said}");
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
