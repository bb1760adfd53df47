//! The heap profile of a process that was killed: recovery has it up to some 100 ms before, with functions.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hairline::Format;
use hairline::recovery::{self, RecoverOptions};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension, turn};
use hairline_tests::regions::region_of;

use crate::{ALLOCATIONS, question, sums};

/// Bytes that the program keeps.
const KEPT: f64 = (60 << 20) as f64;

/// Starts a program that keeps what it allocates, and waits until it has.
fn hoarder(output: &Path, settings: &[(&str, &str)]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoarder"));
    command.arg("60").env("HAIRLINE", output).envs(settings.iter().copied());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    assert_eq!(line, "full\n");
    child
}

/// Whether a trace has what the program keeps. Nothing is counted twice, and no more than all of it.
fn has_all(path: &Path, what: &str) -> bool {
    let others = "select coalesce(sum(size), 0) from heap_profile_allocation";
    let verdict = judge::load(path, &[ALLOCATIONS, &question("hoard", None), others]);
    verdict.require_clean();
    let of = sums(&verdict, 1);
    let all: f64 = verdict.results[2].text().parse().expect("a number");
    assert!(of.live <= 1.05 * KEPT && all <= 1.1 * KEPT, "{what}: {of:?} of {all}");
    of.live >= 0.95 * KEPT
}

fn check(format: Format, settings: &[(&str, &str)]) {
    let _turn = turn(); // recovery allocates, and other tests profile this process
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("t.{}", extension(format)));
    let copy = folder.path().join(format!("copy.{}", extension(format)));
    let what = format!("{format:?}, {settings:?}");
    let mut child = hoarder(&path, settings);
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        // On a busy machine the session's thread may be late.
        std::thread::sleep(Duration::from_millis(200));
        recovery::snapshot(&region_of(&path), &copy).expect("a copy");
        if has_all(&copy, &what) {
            break;
        }
        assert!(Instant::now() < until, "{what}: a copy of the running process has no profile");
    }
    child.kill().expect("killed");
    child.wait().expect("it has ended");
    let recovered = recovery::recover(&region_of(&path), &RecoverOptions::new()).expect("a trace");
    assert!(has_all(&recovered.path.expect("a path"), &what), "{what}: recovery has no profile");
}

#[test]
fn recovery_has_the_heap_profile_of_a_killed_flight_recorder_and_so_has_a_copy_of_a_running_one() {
    for format in FORMATS {
        check(format, &[("HAIRLINE_HEAP", "64K"), ("HAIRLINE_OVERFLOW", "overwrite")]);
    }
}

#[test]
fn recovery_adds_to_the_dumps_of_peaks_what_came_after_them() {
    for format in FORMATS {
        for heap in ["64K", "64K,peak:25M"] {
            check(format, &[("HAIRLINE_HEAP", heap)]);
        }
    }
}

#[test]
fn recovery_has_the_heap_profile_of_a_rotation_in_its_last_file() {
    for format in FORMATS {
        check(format, &[("HAIRLINE_HEAP", "64K"), ("HAIRLINE_ROTATE", "64K")]);
    }
}
