//! `hairline doctor`: the reasons for an empty trace, each in a program that has it.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::{FAMILY, Traced, files, first_line, hairline, run, stderr, without_tracing};

const LISTENS: &str = env!("CARGO_BIN_EXE_listens");

/// What the command says with its exit code.
fn doctor(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = run(hairline(folder).arg("doctor").args(arguments).envs(variables.iter().copied()));
    assert!(stderr(&output).lines().all(|line| !line.contains("panicked")), "{}", stderr(&output));
    (output.status.code(), stdout(&output))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Checks that a reason is found, and nothing else is wrong.
fn finds(arguments: &[&str], variables: &[(&str, &str)], reasons: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, said) = doctor(folder.path(), arguments, variables);
    assert_eq!(code, Some(1), "{said}");
    let wrong: Vec<&str> = said.lines().filter(|line| line.starts_with("wrong  ")).collect();
    assert_eq!(wrong.len(), reasons.len(), "{said}");
    for reason in reasons {
        assert!(wrong.iter().any(|line| line.contains(reason)), "{reason}: {said}");
    }
    assert_eq!(files(folder.path()), [""; 0], "nothing is left");
}

#[test]
fn a_program_that_records_is_found_healthy() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, said) = doctor(folder.path(), &["--", FAMILY, "child", "1"], &[]);
    assert_eq!(code, Some(0), "{said}");
    for line in
        ["ok     test event: recorded, and read back", "ok     program: ", "events of 1 process, read back"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(files(folder.path()), [""; 0], "nothing is left");
    // Programs that have none of it start those that do.
    let (code, said) = doctor(folder.path(), &["--", "sh", "-c", &format!("{FAMILY} child 1; true")], &[]);
    assert!(code == Some(0) && said.contains("a process or a library of it records"), "{said}");
}

#[test]
fn a_mistyped_variable_and_settings_without_an_output_are_said() {
    let program = ["--", FAMILY, "child", "1"];
    for name in ["HAIRLIN", "hairline", "HAIRLIEN_SCHED"] {
        let reason = format!("HAIRLINE: {name} is none of the recorder's variables");
        finds(&program, &[(name, "trace.pftrace")], &[&reason]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (code, said) = doctor(folder.path(), &program, &[("HAIRLINE_SOURCE_LOCATIONS", "on")]);
    let note =
        "note   HAIRLINE: it is not set: with HAIRLINE_SOURCE_LOCATIONS alone nothing is recorded; set";
    assert!(code == Some(0) && said.contains(note), "{said}");
}

#[test]
fn a_program_with_a_session_of_its_own_is_healthy() {
    let folder = tempfile::tempdir().expect("a folder");
    let ending = env!("CARGO_BIN_EXE_ending");
    let (code, said) = doctor(folder.path(), &["--", ending, "return", "own.fxt"], &[]);
    assert!(code == Some(0) && said.contains("40 events of 1 process, read back"), "{said}");
}

#[test]
fn the_program_is_no_reason_where_a_session_ran() {
    let script = format!("{FAMILY} child 1; true");
    let reasons =
        ["a session ran, and the categories \"net\" matched no event", "have the categories family"];
    finds(&["--categories", "net", "--", "sh", "-c", &script], &[], &reasons);
}

#[test]
fn a_script_that_opens_its_stderr_anew_loses_no_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("echo first >&2; echo second >/dev/stderr; {FAMILY} child 1; exit 200");
    let output = run(hairline(folder.path()).args(["doctor", "--", "sh", "-c", &script]));
    let passed_on = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{passed_on}");
    assert!(passed_on.contains("second\n") && !passed_on.contains('\0'), "{passed_on}");
}

#[test]
fn its_json_is_for_programs_whatever_the_command_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    for (command, is_healthy) in [([FAMILY, "child", "1"], true), (["echo", "not", "json"], false)] {
        let (code, said) = doctor(folder.path(), &[&["--json", "--"], &command[..]].concat(), &[]);
        let all = crate::json::parse("doctor", said.as_bytes());
        assert_eq!((code, &all["healthy"]), (Some(i32::from(!is_healthy)), &is_healthy.into()), "{said}");
        let findings = all["findings"].as_array().expect("an array");
        let has = |state: &str| findings.iter().any(|finding| finding["state"] == state);
        assert!(has("ok") && has("wrong") != is_healthy, "{said}");
    }
}

#[test]
fn reason_1_the_program_has_no_hairline() {
    finds(&["--", "sleep", "0"], &[], &["sleep has no Hairline; build it", "no process began to record"]);
}

/// A program as that of somebody who depends on Hairline without its feature.
#[test]
fn reason_2_the_feature_is_off() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("off");
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    fs::create_dir_all(folder.join("src")).expect("made");
    let manifest = format!(
        "[workspace]\n[package]\nname = 'off'\nversion = '0.0.0'\nedition = '2024'\n[dependencies]\n\
         hairline = {{ path = {:?}, default-features = false }}\n",
        project.join("sdk")
    );
    fs::write(folder.join("Cargo.toml"), manifest).expect("written");
    fs::write(folder.join("src/main.rs"), "fn main() { hairline::trace_scope!(\"off\", \"main\"); }")
        .expect("written");
    fs::copy(project.join("Cargo.lock"), folder.join("Cargo.lock")).expect("copied");
    for profile in ["dev", "release"] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "--profile", profile]).current_dir(&folder);
        let built = cargo.env("CARGO_TARGET_DIR", folder.join("target")).output().expect("cargo runs");
        assert!(built.status.success(), "{}", stderr(&built));
        let directory = if profile == "dev" { "debug" } else { profile };
        let program = folder.join("target").join(directory).join("off");
        let version = format!("off has Hairline {} without the feature `enable`", env!("CARGO_PKG_VERSION"));
        finds(&["--", program.to_str().expect("UTF-8")], &[], &[&version, "no process began to record"]);
    }
}

#[test]
fn reason_3_the_program_never_starts() {
    finds(&["--", "./no-such-program"], &[], &["command: ./no-such-program: No such file"]);
    finds(&["--", "/dev/null"], &[], &["command: /dev/null: Permission denied"]);
}

#[test]
fn reason_4_no_event_is_reached() {
    finds(
        &["--", FAMILY, "nothing"],
        &[],
        &["no process began to record; the command ended with the code 0"],
    );
}

#[test]
fn reason_5_the_filter_matches_nothing() {
    let reasons =
        ["a session ran, and the categories \"net,db\" matched no event", "have the categories family"];
    finds(&["--categories", "net,db", "--", FAMILY, "child", "1"], &[], &reasons);
    finds(&["--", FAMILY, "child", "1"], &[("HAIRLINE_CATEGORIES", "net,db")], &reasons);
}

#[test]
fn reason_6_it_is_killed_before_its_first_event() {
    finds(&["--", FAMILY, "abort"], &[], &["as by the signal 6, before its first event"]);
}

#[test]
fn reason_7_a_variable_has_a_wrong_value() {
    let reasons = [
        "recorder: buffer: HAIRLINE_BUFFER: 1 bytes",
        "test event: it did not come back",
        "no process began to record",
    ];
    finds(&["--", FAMILY, "child", "1"], &[("HAIRLINE_BUFFER", "1")], &reasons);
}

#[test]
fn reason_8_a_variable_is_misspelt() {
    let reasons = ["HAIRLINE_CATEGORY is unknown and has no effect; do you mean HAIRLINE_CATEGORIES?"];
    finds(&["--", FAMILY, "child", "1"], &[("HAIRLINE_CATEGORY", "family")], &reasons);
}

#[test]
fn reason_9_the_output_cannot_be_written() {
    let path = "/no/such/folder/t.pftrace";
    finds(&[], &[("HAIRLINE", path)], &["a file cannot be made there: No such file"]);
    finds(&[], &[("HAIRLINE", "trace.txt")], &["trace.txt: no extension of a trace"]);
}

#[test]
fn reason_10_the_program_has_more_rights_than_its_caller() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("changed");
    let program = folder.path().join("privileged");
    hairline_tests::programs::copy(FAMILY, &program);
    if std::os::unix::fs::chown(&program, Some(65534), Some(65534)).is_err() {
        eprintln!("not root here, so there is no second user: not tested");
        return;
    }
    fs::set_permissions(&program, Permissions::from_mode(0o6755)).expect("changed");
    let program = program.to_str().expect("UTF-8");
    finds(
        &["--", program, "child", "1"],
        &[],
        &["more rights than its caller", "no process began to record"],
    );
}

/// A program, until this value is dropped.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program);
        without_tracing(&mut command);
        command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Self(command.spawn().expect("it starts"));
        assert!(first_line(&mut running.0).starts_with("ready"));
        running
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn reason_11_the_process_does_not_listen() {
    let program = Running::start(FAMILY, &["child", "0", "stay"], &[]);
    finds(&["-p", &program.pid()], &[], &["does not listen: start it with HAIRLINE=listen"]);
}

#[test]
fn reason_12_a_process_has_reached_no_event() {
    for (value, reason) in [
        ("listen", "has HAIRLINE=listen, and does not listen; it listens from its first event on"),
        (
            "t.pftrace",
            "has HAIRLINE=t.pftrace, and no region of a session is here; the first event starts one",
        ),
    ] {
        let program = Running::start(FAMILY, &["ready"], &[("HAIRLINE", value)]);
        finds(&["-p", &program.pid()], &[], &[reason]);
    }
    let program = Running::start(LISTENS, &["quiet"], &[]);
    finds(&["-p", &program.pid(), "--for", "100ms"], &[], &["a session ran, and no event was recorded"]);
}

#[test]
fn reason_13_the_program_is_of_a_newer_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Traced::start(&["child", "0", "stay"], &folder.path().join("t.pftrace"), &[]);
    let region = region_of(&program.pid());
    // The number behind the first 8 bytes.
    let version = |number: u32| {
        let file = OpenOptions::new().read(true).write(true).open(&region).expect("opened");
        let mut old = [0; 4];
        file.read_exact_at(&mut old, 8).expect("read");
        file.write_all_at(&number.to_le_bytes(), 8).expect("written");
        u32::from_le_bytes(old)
    };
    let own = version(4711);
    finds(&["-p", &program.pid()], &[], &["a region of ABI version 4711"]);
    version(own);
    let (code, said) = doctor(folder.path(), &["-p", &program.pid()], &[]);
    assert!(code == Some(0) && said.contains("events until now, read back"), "{said}");
}

fn region_of(pid: &str) -> PathBuf {
    let own = |path: &PathBuf| path.to_string_lossy().contains(&format!("/hairline-{pid}-"));
    let entries = fs::read_dir("/dev/shm").expect("a folder").flatten();
    entries.map(|entry| entry.path()).find(own).expect("a region")
}

#[test]
fn a_process_that_records_or_listens_is_found_healthy() {
    let folder = tempfile::tempdir().expect("a folder");
    let listens = Running::start(LISTENS, &[], &[]);
    let traced = Traced::start(&["child", "0", "stay"], &folder.path().join("t.fxt"), &[]);
    for (pid, line) in
        [(listens.pid(), "ok     listener: process "), (traced.pid(), "events until now, read back")]
    {
        let (code, said) = doctor(folder.path(), &["-p", &pid], &[]);
        assert!(code == Some(0) && said.contains(line), "{said}");
    }
    assert_eq!(files(folder.path()), ["t.fxt"], "nothing else is left");
}

#[test]
fn a_process_that_does_not_exist_is_said_to_be_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    for (process, why) in [("4194305", "no process 4194305"), ("no-such-name", "with the name no-such-name")]
    {
        let output = run(hairline(folder.path()).args(["doctor", "-p", process]));
        assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(3), 1));
        assert!(stderr(&output).contains(why) && output.stdout.is_empty(), "{}", stderr(&output));
    }
}

#[test]
fn a_process_that_the_command_leaves_may_go_on_to_print() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "(sleep 1; echo more; echo more >&2; touch alive) & echo first";
    let output = run(hairline(folder.path()).args(["doctor", "--", "sh", "-c", script]));
    assert!(stderr(&output).starts_with("first\n"), "{}", stderr(&output));
    let until = Instant::now() + Duration::from_secs(20);
    while files(folder.path()) != ["alive"] {
        assert!(Instant::now() < until, "it was killed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Events are recorded without it, so it is no reason for an empty trace.
#[test]
fn shared_memory_that_is_missing_read_only_or_full_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (prepare, found) in [
        ("mount -t tmpfs -o ro none /dev/shm", "/dev/shm: Read-only file system"),
        ("mount -t tmpfs -o size=1m none /dev/shm", "/dev/shm: 1.0 MiB are free; a session needs 16 MiB"),
        ("mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3", "/dev/shm: No such file"),
    ] {
        let mut command = Command::new("unshare");
        let script = format!("{prepare} || exit 77; exec {} doctor", env!("CARGO_BIN_EXE_hairline_command"));
        command.args(["--mount", "sh", "-c", &script]).current_dir(folder.path());
        without_tracing(&mut command);
        let output = run(&mut command);
        if !matches!(output.status.code(), Some(0 | 1)) {
            eprintln!("no mounts of one's own here: not tested");
            return;
        }
        let line = format!("note   shared memory: {found}");
        assert!(stdout(&output).contains(&line), "{prepare}: {}{}", stdout(&output), stderr(&output));
    }
}
