//! Namespaces, in which a pid, a start time and a user mean something else than outside.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use hairline::Format;
use hairline_tests::mortal::{COUNTERS_LEN, Orders, Victim};

use crate::names::Trap;
use crate::others::{NOBODY, Stage, in_own_shm, said};

const HAIRLINE: &str = env!("CARGO_BIN_EXE_hairline_command");
const ENDING: &str = env!("CARGO_BIN_EXE_ending");
const MORTAL: &str = env!("CARGO_BIN_EXE_mortal");

/// The exit code of a recovery that does not know whether the process is alive.
const REFUSED: Option<i32> = Some(4);

/// A program in new namespaces. `None`, with a line on stderr, where those cannot be had.
fn unshared(namespaces: &[&str], program: &str, arguments: &[&str]) -> Option<Command> {
    let unshare = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(namespaces).arg(program).env_remove("HAIRLINE").stdin(Stdio::null());
        command
    };
    if !unshare("true").output().is_ok_and(|output| output.status.success()) {
        eprintln!("no namespaces {namespaces:?} here: not tested");
        return None;
    }
    let mut command = unshare(program);
    command.args(arguments);
    Some(command)
}

/// Namespaces of an ordinary user, in which the machine has started earlier.
const OTHER_TIME: [&str; 6] = ["--user", "--map-root-user", "--time", "--fork", "--boottime", "100000"];

/// Namespaces in which no user has a number: each one, this process's too, is the overflow user.
const NO_USERS: [&str; 1] = ["--user"];

/// A program in a time namespace has its own times in its trace, those of the kernel's events too.
#[test]
fn states_and_slices_are_of_one_time_in_a_time_namespace() {
    for file in ["t.pftrace", "t.fxt"] {
        let directory = tempfile::tempdir().expect("a directory");
        let trace = directory.path().join(file);
        let Some(mut command) = unshared(&OTHER_TIME, ENDING, &["long"]) else { return };
        command.env("HAIRLINE", &trace).env("HAIRLINE_SCHED", "on").env("HAIRLINE_LOG", "info");
        let output = command.output().expect("it ran");
        assert!(output.status.success(), "{output:?}");
        let verdict = hairline_tests::judge::load(
            &trace,
            &[
                "select count(*) from thread_state",
                "select max(ts + dur) - min(ts) < 60e9, min(ts) > 90000e9 from (select ts, dur from slice \
                 union all select ts, dur from thread_state where dur >= 0)",
            ],
        );
        verdict.require_clean();
        if verdict.results[0].text() == "0" {
            eprintln!("no context switches here: not tested: {:?}", said(&output));
            return;
        }
        assert_eq!(verdict.results[1].text(), "1\t1", "{file}");
    }
}

#[test]
fn record_says_that_a_process_has_a_clock_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("t.pftrace");
    let record = ["record", "-o", trace.to_str().expect("UTF-8"), "--", "unshare"];
    let Some(_) = unshared(&OTHER_TIME, "true", &[]) else { return };
    let mut command = Command::new(HAIRLINE);
    command.args(record).args(OTHER_TIME).args([ENDING, "return"]).env_remove("HAIRLINE");
    let output = command.output().expect("it ran");
    let lines = said(&output);
    let told = lines
        .iter()
        .filter(|line| line.contains("has a clock of its own") && line.contains("s later"))
        .count();
    assert_eq!(told, 1, "{output:?}");
}

#[test]
fn a_living_process_is_not_taken_for_dead_in_another_time_namespace() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut victim = Victim::start(MORTAL, directory.path(), Orders::new(Format::Fxt));
    victim.wait_until_committed(1000);
    let region = victim.region().expect("a region");
    let recover = |more: &[&str]| -> Option<Output> {
        let arguments = [&["recover", region.to_str().expect("UTF-8")], more].concat();
        Some(unshared(&OTHER_TIME, HAIRLINE, &arguments)?.output().expect("it ran"))
    };
    let Some(output) = recover(&[]) else { return };
    assert_eq!(output.status.code(), REFUSED, "{output:?}");
    assert!(region.exists());
    victim.kill();
    // The kernel knows no process with this pid, in whichever time.
    let output = recover(&[]).expect("namespaces");
    assert!(output.status.success() && !region.exists(), "{output:?}");
    victim.check(&victim.trace).expect("all steps");
}

/// `unshare --pid` alone leaves the `/proc` of the namespace above, where another process has the pid.
#[test]
fn a_living_process_is_not_taken_for_dead_by_the_proc_of_another_pid_namespace() {
    let Some(stage) = Stage::new() else { return };
    let directory = stage.path("directory");
    fs::create_dir(&directory).expect("made");
    File::create(directory.join("counters")).and_then(|f| f.set_len(COUNTERS_LEN as u64)).expect("made");
    // Its pid is 1, which outside is that of `init`.
    let script = format!(
        "cd {directory}
         unshare --pid --fork --kill-child {MORTAL} output=t.fxt counters=counters threads=1 pace=moderate \
             buffer=8388608 chunk=16384 compress=0 rotate=0 slow=0 end=never >&2 & holder=$!
         while ! [ -s t.fxt ]; do sleep 0.01; done
         sleep 0.2
         inside=\"nsenter --pid=/proc/$holder/ns/pid_for_children\"
         $inside {HAIRLINE} recover --all; echo all: $?
         $inside {HAIRLINE} recover 1; echo one: $?
         ls /dev/shm
         kill -9 $holder; wait $holder",
        directory = directory.display(),
    );
    let Some(mut command) = in_own_shm(":", &script) else { return };
    let output = command.stdin(Stdio::null()).output().expect("it ran");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("added"), "a living process's trace is not touched: {output:?}");
    let (_, after) = text.split_once("one: 4").unwrap_or_else(|| panic!("refused: {output:?}"));
    assert!(after.contains("\nhairline-1-"), "its region stays: {output:?}");
}

#[test]
fn a_session_in_another_time_namespace_removes_no_region_of_a_living_process() {
    let Some(stage) = Stage::new() else { return };
    // Two living processes have more than the quarter that dead ones may have.
    let script = format!(
        "for n in 1 2; do {ENDING} long >/dev/null & done
         until [ $(ls /dev/shm | wc -l) = 2 ] && [ $(find {directory} -name '*.fxt' -size +0 | wc -l) = 2 ]; do
             sleep 0.01
         done
         before=$(ls /dev/shm)
         unshare --time --fork --boottime 100000 {ENDING} much >/dev/null
         [ \"$before\" = \"$(ls /dev/shm)\" ] && echo kept
         wait",
        directory = stage.path("").display(),
    );
    let small = "mount -o remount,size=16m /dev/shm && unshare --time --fork --boottime 100000 true";
    let Some(mut command) = in_own_shm(small, &script) else { return };
    command.env("HAIRLINE", stage.path("%p.fxt")).env("HAIRLINE_BUFFER", "3M").stdin(Stdio::null());
    let output = command.output().expect("it ran");
    assert!(String::from_utf8_lossy(&output.stdout).contains("kept"), "{output:?}");
}

#[test]
fn a_link_is_not_ones_own_where_all_users_look_alike() {
    let Some(trap) = Trap::new() else { return };
    let theirs = trap.plant("theirs.fxt");
    let Some(mut program) = unshared(&NO_USERS, ENDING, &["return"]) else { return };
    let output = program.env("HAIRLINE", &theirs).output().expect("it ran");
    trap.has_caught_nothing();
    let lines = said(&output);
    assert_eq!((output.status.code(), lines.len()), (Some(0), 1), "{output:?}");
    assert!(lines[0].contains("link"), "{lines:?}");
    // The command too.
    let input = trap.stage.path("in.fxt");
    let recorded = Command::new(ENDING).arg("return").env("HAIRLINE", &input).output().expect("it ran");
    assert!(recorded.status.success(), "{recorded:?}");
    let arguments = ["convert", input.to_str().expect("UTF-8"), theirs.to_str().expect("UTF-8")];
    let output = unshared(&NO_USERS, HAIRLINE, &arguments).expect("namespaces").output().expect("it ran");
    trap.has_caught_nothing();
    let lines = said(&output);
    assert_eq!((output.status.code(), lines.len()), (Some(1), 1), "{output:?}");
    assert!(lines[0].contains("link"), "{lines:?}");
}

#[test]
fn a_trace_is_not_served_where_all_users_look_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("t.fxt");
    fs::write(&trace, "secret").expect("written");
    let trace = trace.to_str().expect("UTF-8");
    let arguments = ["20", HAIRLINE, "view", "--no-open", "--port", "0", trace];
    let Some(mut view) = unshared(&NO_USERS, "timeout", &arguments) else { return };
    let output = view.output().expect("it ran");
    let lines = said(&output);
    assert_eq!((output.status.code(), lines.len(), output.stdout.len()), (Some(1), 1, 0), "{output:?}");
    assert!(lines[0].contains("user namespace"), "{lines:?}");
}

#[test]
fn a_region_is_not_ones_own_where_all_users_look_alike() {
    let Some(stage) = Stage::new() else { return };
    let directory = stage.path("directory");
    fs::create_dir(&directory).expect("made");
    let mut victim = Victim::start(MORTAL, &directory, Orders::new(Format::Fxt));
    victim.wait_until_committed(1000);
    victim.kill();
    let region = victim.region().expect("a region");
    fs::set_permissions(&region, fs::Permissions::from_mode(0o644)).expect("changed");
    let recover = |namespaces: &[&str]| {
        let to = directory.join("to.fxt");
        let places = [&region, &to].map(|path| path.to_str().expect("UTF-8"));
        let arguments = ["recover", "--keep", places[0], "-o", places[1]];
        Some(unshared(namespaces, HAIRLINE, &arguments)?.output().expect("it ran"))
    };
    for owner in [NOBODY, 1] {
        chown(&region, Some(owner), None).expect("given away");
        let Some(output) = recover(&NO_USERS) else { return };
        assert!(!output.status.success(), "a region of user {owner}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("of this user"), "{output:?}");
    }
    // Where its users have numbers, a file of this user is its own.
    chown(&region, Some(0), None).expect("given back");
    let output = recover(&["--user", "--map-root-user"]).expect("namespaces");
    assert!(output.status.success(), "{output:?}");
    victim.check(Path::new(&directory.join("to.fxt"))).expect("all steps");
}
