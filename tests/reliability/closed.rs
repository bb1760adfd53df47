//! Programs that close all of their descriptors, as daemons and sandboxes do.

use hairline::Format;
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::program::{Run, run, run_refused};

/// What a session may have open: an output, events of the kernel, or nothing.
const SETTINGS: [&[(&str, &str)]; 4] = [
    &[],
    &[("HAIRLINE_SCHED", "on"), ("HAIRLINE_SAMPLE", "997"), ("HAIRLINE_COUNTERS", "all")],
    &[("HAIRLINE_ROTATE", "64K")],
    &[("HAIRLINE_OVERFLOW", "overwrite"), ("HAIRLINE_SCHED", "on")],
];

fn count(run: &Run, format: Format) -> i64 {
    let sql = ["select count(*) from slice where name in ('work', 'after') and dur >= 0"];
    let traces =
        run.files().into_iter().filter(|file| file.extension().is_some_and(|e| e == extension(format)));
    traces.map(|trace| judge::load(trace, &sql).results[0].single_i64()).sum()
}

#[test]
fn a_program_that_closes_all_descriptors_keeps_its_files_and_its_trace() {
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        for settings in SETTINGS {
            for way in ["close-all", "close-one-by-one"] {
                let variables = [&[("HAIRLINE", &*trace)], settings].concat();
                let run = run(&[way], &variables);
                assert_eq!(run.output.status.code(), Some(0), "{settings:?} {:?}", run.output);
                assert_eq!(count(&run, format), 20 + 300 * 100, "{settings:?} {:?}", run.output);
            }
        }
    }
}

/// Where no thread can have files of its own, the output is lost. It is said, and the program is unharmed.
#[test]
fn without_files_of_its_own_hairline_writes_into_no_file_of_the_program() {
    for format in FORMATS {
        let variables = [("HAIRLINE", &*format!("t.{}", extension(format))), ("HAIRLINE_LOG", "info")];
        let run = run_refused(&[libc::SYS_close_range], libc::ENOSYS, &["close-one-by-one"], &variables);
        assert_eq!(run.output.status.code(), Some(0), "{:?}", run.output);
        let told = run.said().iter().filter(|line| line.contains("has closed the descriptor")).count();
        assert_eq!(told, 1, "once: {:?}", run.output);
    }
}

/// The ring then has no file, and the summary says what it was that the system refused.
#[test]
fn a_ring_without_a_file_says_what_was_refused() {
    for (call, what) in [
        (libc::SYS_getrandom, "getrandom"),
        (libc::SYS_fstatfs, "fstatfs"),
        (libc::SYS_madvise, "madvise"),
        (libc::SYS_ftruncate, "ftruncate"),
    ] {
        let run = run_refused(
            &[call],
            libc::EPERM,
            &["return"],
            &[("HAIRLINE", "t.fxt"), ("HAIRLINE_LOG", "info")],
        );
        let said = run.said();
        let line = said.iter().find(|line| line.contains("the content of the ring is lost"));
        if let Some(line) = line {
            assert!(line.contains(what) && line.contains("Operation not permitted"), "{what}: {line}");
            assert!(!line.contains("no room"), "{line}");
        } else {
            assert!(call == libc::SYS_ftruncate, "{what}: {said:?}"); // the output cannot be made either
        }
    }
}

/// The system may refuse random numbers, which the standard library's maps want. Hairline's have none.
#[test]
fn without_random_numbers_a_trace_is_whole_whatever_it_records() {
    for format in FORMATS {
        let trace = format!("t.{}", extension(format));
        let stacks = [("HAIRLINE_STACKS", "*"), ("HAIRLINE_ROTATE", "64K")];
        for settings in SETTINGS.into_iter().chain([&stacks[..1], &stacks]) {
            let variables = [&[("HAIRLINE", &*trace)], settings].concat();
            let run = run_refused(&[libc::SYS_getrandom], libc::EPERM, &["return"], &variables);
            let said = run.said();
            assert!(!said.iter().any(|line| line.contains("stuck")), "{settings:?}: {said:?}");
            assert_eq!(count(&run, format), 20, "{settings:?}: {:?}", run.output);
        }
    }
}

#[test]
fn no_message_has_what_a_terminal_would_obey() {
    let run = run(&["return"], &[("HAIRLINE", "\u{1b}[31mred.fxt"), ("HAIRLINE_LOG", "info")]);
    let text = String::from_utf8_lossy(&run.output.stderr);
    assert!(text.contains("[31mred.fxt") && !text.contains('\u{1b}'), "{text:?}");
    let trace = run.path("\u{1b}[31mred.fxt");
    let mut hairline = std::process::Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    let drawn = hairline.arg("flame").arg(&trace).arg("--svg").output().expect("it ran");
    assert!(drawn.status.success() && !drawn.stdout.contains(&0x1b), "{drawn:?}");
}
