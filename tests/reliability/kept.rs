//! A new run at the path of an earlier one: a trace that somebody wants stays as it is.

use std::fs;
use std::path::{Path, PathBuf};

use hairline::recovery::{self, RecoverError, RecoverOptions};
use hairline::{Format, Overflow, Session, trace_scope};
use hairline_tests::judge;
use hairline_tests::mortal::{Orders, Victim};
use hairline_tests::recording::{FORMATS, extension, turn};
use tempfile::TempDir;

use crate::program::{Run, has_the_work, run, run_in, run_refused};

/// A program that was killed after so many scopes, and its trace.
fn killed(format: Format, scopes: u64) -> (Victim, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let orders = Orders { threads: 1, end: scopes.to_string(), ..Orders::new(format) };
    let mut victim = Victim::start(env!("CARGO_BIN_EXE_mortal"), directory.path(), orders);
    victim.wait_until_committed(scopes);
    victim.kill();
    (victim, directory)
}

/// Runs a program that records to `path` because of its environment.
fn run_again(path: &Path) -> Run {
    run(&["return"], &[("HAIRLINE", path.to_str().expect("UTF-8"))])
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let (stem, extension) = (path.file_stem().expect("a name"), path.extension().expect("an extension"));
    let name = format!("{}{suffix}.{}", stem.to_string_lossy(), extension.to_string_lossy());
    path.with_file_name(name)
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn the_trace_of_a_killed_run_stays_when_the_program_is_started_again() {
    for format in FORMATS {
        // The first scopes of the last one are in the file only, and so are its strings and tracks.
        for scopes in [500, 5_000, 100_000] {
            let (victim, _directory) = killed(format, scopes);
            let before = read(&victim.trace);
            for n in 2..5 {
                let run = run_again(&victim.trace);
                let second = beside(&victim.trace, &format!("-{n}"));
                let said = run.said();
                assert_eq!(said.len(), 1, "{:?}", run.output);
                assert!(said[0].contains(victim.trace.to_str().expect("UTF-8")), "{said:?}");
                assert!(
                    said[0].ends_with(&format!("this trace is in {}", beside(&victim.trace, "-2").display()))
                );
                assert!(before == read(&victim.trace));
                has_the_work(&beside(&victim.trace, "-2")); // which has ended, and is replaced each time
                assert!(n == 2 || !second.exists());
            }
            let recovered = recovery::recover(&victim.region().expect("a region"), &RecoverOptions::new());
            assert_eq!(recovered.expect("recovered").path.as_deref(), Some(&*victim.trace));
            victim.check(&victim.trace).expect("all steps");
            judge::load(&victim.trace, &[]).require_clean();
        }
    }
}

#[test]
fn the_trace_of_a_session_that_has_ended_is_replaced_by_the_next_run() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        for settings in [&[][..], &[("HAIRLINE_MAX_FILE_SIZE", "64K")], &[("HAIRLINE_OVERFLOW", "overwrite")]]
        {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join(&name);
            for _ in 0..3 {
                let variables = [&[("HAIRLINE", path.to_str().expect("UTF-8"))], settings].concat();
                let run = run(&["return"], &variables);
                assert_eq!(run.said().len(), 0, "{:?}", run.output);
                has_the_work(&path);
            }
            assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
        }
    }
}

#[test]
fn a_recovered_trace_and_a_file_that_is_no_trace_stay() {
    for format in FORMATS {
        let (victim, directory) = killed(format, 1_000);
        recovery::recover(&victim.region().expect("a region"), &RecoverOptions::new()).expect("recovered");
        let recovered = read(&victim.trace);
        run_again(&victim.trace);
        assert!(recovered == read(&victim.trace));
        has_the_work(&beside(&victim.trace, "-2"));
        let notes = directory.path().join(format!("notes.{}", extension(format)));
        fs::write(&notes, "what I saw").expect("written");
        let run = run_again(&notes);
        assert_eq!(run.said().len(), 1, "{:?}", run.output);
        assert_eq!(read(&notes), b"what I saw");
        has_the_work(&beside(&notes, "-2"));
        let empty = directory.path().join(format!("empty.{}", extension(format)));
        fs::write(&empty, "").expect("written");
        assert_eq!(run_again(&empty).said().len(), 0);
        has_the_work(&empty);
    }
}

/// A program that has aborted when its ring had gone round many times, and its trace, which is elsewhere now.
fn aborted(format: Format, way: &str) -> (Run, PathBuf, PathBuf) {
    let name = format!("t.{}", extension(format));
    let variables = [("HAIRLINE", &*name), ("HAIRLINE_BUFFER", "64K"), ("HAIRLINE_OVERFLOW", "block:60s")];
    let run = run(&[way], &variables);
    let (trace, moved) = (run.path(&name), run.path("moved"));
    fs::rename(&trace, &moved).expect("moved");
    (run, trace, moved)
}

/// The strings and tracks of what is left in the ring went with the file. The rest is no trace.
#[test]
fn recovery_writes_nothing_that_cannot_be_read() {
    for format in FORMATS {
        let (run, trace, moved) = aborted(format, "late-alone");
        let region = run.region().expect("a region");
        for options in [RecoverOptions::new(), RecoverOptions::new().to(run.path("to"))] {
            let error = recovery::recover(&region, &options).expect_err("nothing can be read");
            let is_unreadable = matches!(&error, RecoverError::Unreadable { output, records, .. }
                if output.as_deref() == Some(&*trace) && *records > 0);
            assert!(is_unreadable, "{error:?}");
            assert!(region.exists() && run.files() == [moved.clone()], "{error}");
        }
        fs::rename(&moved, &trace).expect("put back");
        recovery::recover(&region, &RecoverOptions::new()).expect("recovered");
        let verdict = judge::load(&trace, &["select count(*) from slice where name = 'step' and dur >= 0"]);
        assert_eq!(verdict.results[0].single_i64(), 20_000, "{:?}", verdict.complaints);
    }
}

/// What can be read is kept, and the rest is counted.
#[test]
fn recovery_without_the_trace_has_the_threads_that_can_be_read() {
    for format in FORMATS {
        let (run, ..) = aborted(format, "late");
        let region = run.region().expect("a region");
        let recovered = recovery::recover(&region, &RecoverOptions::new()).expect("recovered");
        assert!(recovered.lost.output > 0 && recovered.notes.len() == 2, "{recovered:?}");
        let sql = "select t.name, s.name, count(*) from slice s join thread_track tt on s.track_id = tt.id \
            join thread t using (utid) where s.name in ('step', 'work', 'late') group by 1, 2";
        let verdict = judge::load(recovered.path.expect("a trace"), &[sql]);
        assert_eq!(verdict.results[0].text(), "late\tlate\t10", "{:?}", verdict.complaints);
    }
}

#[test]
fn an_executed_program_keeps_the_trace_of_the_one_before() {
    for format in FORMATS {
        let template = format!("t-%p.{}", extension(format));
        let run = run(&["exec-self"], &[("HAIRLINE", &template)]);
        assert_eq!(run.output.status.code(), Some(0), "{:?}", run.output);
        let first = run.path(&format!("t-{}.{}", run.pid, extension(format)));
        has_the_work(&beside(&first, "-2"));
        let region = run.region().expect("of the first program");
        recovery::recover(&region, &RecoverOptions::new()).expect("recovered");
        has_the_work(&first);
    }
}

#[test]
fn windows_of_an_earlier_run_stay() {
    for format in FORMATS {
        let ending = extension(format);
        let of = |template: &str, trigger: &str, directory: TempDir, arguments: &[&str]| {
            let template = format!("{template}.{ending}");
            let variables =
                [("HAIRLINE", &*template), ("HAIRLINE_OVERFLOW", "overwrite"), ("HAIRLINE_TRIGGER", trigger)];
            run_in(directory, arguments, &variables)
        };
        let directory = || tempfile::tempdir().expect("a directory");
        // With a number: it goes on.
        let first = of("last-%n", "panic", directory(), &["panic"]);
        let window = |name: &str| format!("{name}.{ending}");
        let panicked = read(&first.path(&window("last-1")));
        let names = |run: &Run| -> Vec<String> {
            run.files()
                .iter()
                .map(|f| f.file_stem().expect("a name").to_string_lossy().into_owned())
                .collect()
        };
        let had = names(&first);
        let second = of("last-%n", "panic", first.into_directory(), &["return"]);
        assert!(panicked == read(&second.path(&window("last-1"))));
        assert_eq!(names(&second), [had, vec![format!("last-{}", names(&second).len())]].concat());
        has_the_work(&second.path(&window(&format!("last-{}", names(&second).len()))));
        // Without: the next free name.
        let first = of("last", "panic", directory(), &["panic"]);
        let panicked = read(&first.path(&window("last")));
        let second = of("last", "panic", first.into_directory(), &["return"]);
        assert!(panicked == read(&second.path(&window("last"))));
        has_the_work(&second.path(&window("last-2")));
        assert!(second.said().iter().any(|line| line.contains("last-2")), "{:?}", second.output);
        // Of slow slices.
        let rule = "slow:ending/work:1ns,every:0s";
        let first = of("t", rule, directory(), &["pause"]);
        let slow = |run: &Run| -> Vec<PathBuf> {
            run.files().into_iter().filter(|f| f.to_string_lossy().contains("ending-work")).collect()
        };
        let before: Vec<Vec<u8>> = slow(&first).iter().map(|path| read(path)).collect();
        assert!(!before.is_empty());
        let second = of("t", rule, first.into_directory(), &["pause"]);
        let after: Vec<Vec<u8>> = slow(&second).iter().map(|path| read(path)).collect();
        assert!(before.len() < after.len() && before.iter().all(|window| after.contains(window)));
    }
}

/// A session of the same program may replace its own earlier trace, as its path says.
#[test]
fn a_program_replaces_its_own_traces_but_not_the_windows_that_it_was_asked_for() {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.fxt");
    for overflow in [Overflow::Drop, Overflow::Overwrite] {
        for _ in 0..3 {
            let session = Session::builder().output(&path).overflow(overflow).start().expect("a session");
            trace_scope!("kept", "scope");
            let summary = session.stop().expect("stopped");
            assert_eq!((summary.path.as_deref(), summary.notes.len()), (Some(&*path), 0), "{summary:?}");
        }
    }
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
}

#[test]
fn a_file_that_cannot_be_locked_is_only_written_by_the_process_that_made_it() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        for errno in [libc::EPERM, libc::ENOSYS, libc::ENOLCK] {
            // A program that starts another five times.
            let variables = [("HAIRLINE", &*name)];
            let run = run_refused(&[libc::SYS_flock], errno, &["exec"], &variables);
            assert_eq!(run.output.status.code(), Some(0), "{:?}", run.output);
            let traces = run.files();
            assert_eq!((traces.len(), run.said().len()), (6, 5), "{:?}", run.output);
            traces.iter().for_each(|trace| has_the_work(trace));
        }
    }
}

#[test]
fn a_session_that_cannot_start_leaves_no_file_and_replaces_none() {
    // No thread, and no head of the trace.
    let refused =
        [(&[libc::SYS_clone3, libc::SYS_clone][..], libc::EAGAIN), (&[libc::SYS_writev], libc::EIO)];
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        for (calls, errno) in refused {
            let run = run_refused(calls, errno, &["alone"], &[("HAIRLINE", &name)]);
            assert_eq!((run.files().len(), run.said().len()), (0, 1), "{calls:?} {:?}", run.output);
        }
        let before = run(&["return"], &[("HAIRLINE", &name)]);
        let trace = before.path(&name);
        let (content, path) = (read(&trace), trace.to_str().expect("UTF-8"));
        for calls in [refused[0].0, &[libc::SYS_ftruncate]] {
            let after = run_refused(calls, libc::EAGAIN, &["alone"], &[("HAIRLINE", path)]);
            assert_eq!(after.said().len(), 1, "{:?}", after.output);
            assert!(content == read(&trace), "{:?}", after.output);
        }
    }
}

#[test]
fn a_path_may_have_the_host_the_time_and_a_random_number() {
    for format in FORMATS {
        let template = format!("%h.%t.%u.{}", extension(format));
        let names: Vec<String> = (0..2)
            .map(|_| {
                let run = run(&["fork"], &[("HAIRLINE", &template)]);
                assert_eq!(run.said().len(), 0, "{:?}", run.output);
                let files = run.files();
                assert!(files.len() > 5, "each child has a file: {files:?}");
                files[0].file_name().expect("a name").to_string_lossy().into_owned()
            })
            .collect();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let date = names[0].strip_prefix(&format!("{}.", host.trim())).expect("the host's name");
        assert!(
            date.starts_with("20") && date.as_bytes()[8] == b'-' && date.as_bytes()[15] == b'.',
            "{names:?}"
        );
        assert_ne!(names[0], names[1]);
    }
}
