//! Each end that completes no trace, and what recovery then finds: files that were cut, replaced, or are
//! gone.

#![allow(unsafe_code)] // what a child does before its `exec`

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hairline::recovery::{self, ProcessState, RecoverError, RecoverOptions, Recovered};
use hairline::{Format, MemoryOutput, Session, trace_scope};
use hairline_tests::judge;
use hairline_tests::mortal::{Orders, Victim};
use hairline_tests::recording::{FORMATS, extension, turn};

/// A victim that was killed after each of its two threads had told of a thousand scopes.
struct Dead {
    victim: Victim,
    region: PathBuf,
    directory: tempfile::TempDir,
}

fn start(orders: Orders) -> (Victim, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut victim = Victim::start(env!("CARGO_BIN_EXE_mortal"), directory.path(), orders);
    victim.wait_until_committed(1000);
    (victim, directory)
}

fn dead(orders: Orders) -> Dead {
    let (mut victim, directory) = start(orders);
    victim.kill();
    let region = victim.region().expect("a region");
    Dead { victim, region, directory }
}

impl Dead {
    fn recover(&self, options: &RecoverOptions) -> Recovered {
        recovery::recover(&self.region, options).expect("recovered")
    }
}

/// All that was committed, in order, once; and the judge has no complaint.
fn complete(victim: &Victim, trace: &Path) {
    let steps = victim.check(trace).expect("all steps");
    let slices = "select count(*) from slice where name = 'step' and dur >= 0";
    let verdict = judge::load(trace, &[slices]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), steps.ended.values().sum::<u64>().to_string());
}

/// Two chunks a thread, so that the ring holds everything: the writer thread takes it in 50 ms at most, but
/// frees nothing.
fn all_in_the_ring(format: Format) -> Orders {
    Orders { chunk: 1 << 20, buffer: 8 << 20, end: "1000".to_owned(), ..Orders::new(format) }
}

#[test]
fn a_killed_process_leaves_a_region_and_recovery_makes_it_a_whole_trace() {
    for format in FORMATS {
        // One that was killed just after a pass of its writer thread has left nothing in its ring.
        let has_left_some = (0..20).any(|_| {
            let dead = dead(Orders::new(format));
            let recovered = dead.recover(&RecoverOptions::new());
            assert_eq!((recovered.pid, recovered.process_name.as_str()), (dead.victim.pid(), "mortal"));
            assert_eq!((recovered.path.as_deref(), recovered.notes.len()), (Some(&*dead.victim.trace), 0));
            assert_eq!(recovered.lost.total(), 0, "{recovered:?}");
            assert!(!dead.region.exists());
            complete(&dead.victim, &dead.victim.trace);
            recovered.bytes > 0
        });
        assert!(has_left_some);
    }
}

#[test]
fn abort_and_a_crash_lose_nothing_either() {
    for format in FORMATS {
        for end in ["abort", "segv"] {
            let (mut victim, _directory) = start(Orders { end: end.to_owned(), ..Orders::new(format) });
            victim.wait();
            let region = victim.region().expect("a region");
            recovery::recover(&region, &RecoverOptions::new()).expect("recovered");
            complete(&victim, &victim.trace);
        }
    }
}

#[test]
fn a_compressed_trace_goes_on_uncompressed() {
    let dead = dead(Orders { compress: true, ..Orders::new(Format::TrackEvent) });
    dead.recover(&RecoverOptions::new());
    complete(&dead.victim, &dead.victim.trace);
}

#[test]
fn what_was_half_written_is_cut_off() {
    for format in FORMATS {
        let dead = dead(Orders::new(format));
        let half = [0x0a, 0xff, 0xff, 0x7f, 1, 2, 3];
        let mut trace = File::options().append(true).open(&dead.victim.trace).expect("the trace");
        trace.write_all(&half).expect("written");
        let recovered = dead.recover(&RecoverOptions::new());
        assert!(recovered.cut >= half.len() as u64, "{recovered:?}");
        complete(&dead.victim, &dead.victim.trace);
    }
}

#[test]
fn recovering_twice_or_after_an_interruption_gives_the_same_trace() {
    for format in FORMATS {
        let dead = dead(Orders::new(format));
        let keep = RecoverOptions::new().keep_region(true);
        let first = dead.recover(&keep);
        let whole = fs::read(&dead.victim.trace).expect("a trace");
        let again = dead.recover(&keep);
        assert!(whole == fs::read(&dead.victim.trace).expect("a trace"));
        assert_eq!((again.records, again.bytes, again.cut), (first.records, first.bytes, first.bytes));
        // Killed on the way: some of what is appended is there.
        let trace = File::options().write(true).open(&dead.victim.trace).expect("the trace");
        trace.set_len(whole.len() as u64 - again.bytes / 2).expect("cut");
        dead.recover(&RecoverOptions::new());
        assert!(whole == fs::read(&dead.victim.trace).expect("a trace"));
        complete(&dead.victim, &dead.victim.trace);
    }
}

/// Between its fork and its `exec` such a program has all files open that this process has.
#[test]
fn a_program_that_is_just_being_started_keeps_no_region_locked() {
    use std::os::unix::process::CommandExt;
    let dead = dead(Orders::new(Format::Fxt));
    let done = AtomicBool::new(false);
    let outcomes: Vec<_> = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut slow = Command::new("true");
                let wait = || {
                    std::thread::sleep(Duration::from_millis(10));
                    Ok(())
                };
                // SAFETY: what the new process does until then is to sleep.
                unsafe { slow.pre_exec(wait) };
                slow.status().expect("it ran");
            }
        });
        let keep = RecoverOptions::new().keep_region(true);
        let outcomes = (0..20).map(|_| recovery::recover(&dead.region, &keep)).collect();
        done.store(true, Ordering::Relaxed);
        outcomes
    });
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

#[test]
fn the_original_stays_as_it_is_when_the_trace_is_to_go_elsewhere() {
    for format in FORMATS {
        let dead = dead(Orders::new(format));
        let before = fs::read(&dead.victim.trace).expect("a trace");
        let to = dead.directory.path().join("elsewhere");
        let recovered = dead.recover(&RecoverOptions::new().to(&to));
        assert_eq!(recovered.path.as_deref(), Some(&*to));
        assert!(before == fs::read(&dead.victim.trace).expect("a trace"));
        complete(&dead.victim, &to);
        let names = fs::read_dir(dead.directory.path()).expect("a directory").count();
        assert_eq!(names, 3, "the trace, the counters, the new trace, and no part of it");
    }
}

#[test]
fn another_trace_at_the_same_path_is_never_touched() {
    for format in FORMATS {
        let dead = dead(all_in_the_ring(format));
        fs::remove_file(&dead.victim.trace).expect("removed");
        {
            let _turn = turn();
            let session = Session::builder().output(&dead.victim.trace).start().expect("a session");
            (0..100_000).for_each(|_| drop(hairline::scope!("reliability", "of the new run")));
            session.stop().expect("stopped");
        }
        let new_run = fs::read(&dead.victim.trace).expect("a trace");
        let recovered = dead.recover(&RecoverOptions::new());
        assert!(new_run == fs::read(&dead.victim.trace).expect("a trace"));
        let beside = format!("trace.{}.recovered-{}", extension(format), dead.victim.pid());
        let beside = dead.directory.path().join(beside);
        assert_eq!(recovered.path.as_deref(), Some(&*beside));
        assert!(recovered.notes[0].ends_with("holds something else by now"), "{recovered:?}");
        complete(&dead.victim, &beside);
    }
}

#[test]
fn a_trace_that_is_gone_or_too_short_is_written_anew() {
    for format in FORMATS {
        let lost = dead(all_in_the_ring(format));
        fs::remove_file(&lost.victim.trace).expect("removed");
        let recovered = lost.recover(&RecoverOptions::new());
        assert!(recovered.notes[0].ends_with("is gone"), "{recovered:?}");
        complete(&lost.victim, &recovered.path.expect("a trace"));

        let short = dead(all_in_the_ring(format));
        File::options().write(true).open(&short.victim.trace).expect("a trace").set_len(100).expect("cut");
        let recovered = short.recover(&RecoverOptions::new());
        assert_eq!(fs::metadata(&short.victim.trace).expect("a trace").len(), 100);
        complete(&short.victim, &recovered.path.expect("a trace"));
    }
}

#[test]
fn a_living_process_is_left_alone() {
    let (mut victim, _directory) = start(Orders::new(Format::Fxt));
    let region = victim.region().expect("a region");
    let error = recovery::recover(&region, &RecoverOptions::new().assume_dead(true)).expect_err("it lives");
    assert!(matches!(error, RecoverError::Alive { pid, .. } if pid == victim.pid()), "{error}");
    let state = |pid| recovery::find().expect("a list").into_iter().find(|f| f.pid == pid).map(|f| f.process);
    assert_eq!(state(victim.pid()), Some(ProcessState::Alive));
    victim.kill();
    assert_eq!(state(victim.pid()), Some(ProcessState::Dead));
    recovery::recover(&region, &RecoverOptions::new()).expect("recovered");
    assert_eq!(state(victim.pid()), None);
    complete(&victim, &victim.trace);
}

#[test]
fn where_the_beginning_is_gone_with_the_file_it_is_told() {
    for format in FORMATS {
        // Its chunks are freed and used again long before the end.
        let dead = dead(Orders { chunk: 4096, buffer: 64 << 10, ..Orders::new(format) });
        fs::remove_file(&dead.victim.trace).expect("removed");
        let recovered = dead.recover(&RecoverOptions::new());
        assert!(recovered.notes.iter().any(|note| note.contains("begin in their middle")), "{recovered:?}");
        assert!(recovered.path.expect("a trace").exists());
    }
}

#[test]
fn a_process_that_became_another_program_is_recovered_when_that_has_ended() {
    let (mut victim, _directory) =
        start(Orders { end: "exec".to_owned(), ..Orders::new(Format::TrackEvent) });
    let name = || fs::read_to_string(format!("/proc/{}/comm", victim.pid())).expect("a name");
    while name() != "sleep\n" {
        std::thread::sleep(Duration::from_millis(1));
    }
    let region = victim.region().expect("a region");
    let error = recovery::recover(&region, &RecoverOptions::new())
        .expect_err("it cannot be told from the one before");
    assert!(matches!(error, RecoverError::Alive { .. }), "{error}");
    victim.kill();
    recovery::recover(&region, &RecoverOptions::new()).expect("recovered");
    complete(&victim, &victim.trace);
}

/// The region of this process's own session, as if it were that of a process which is no more: at another
/// name.
fn orphaned(patch: impl FnOnce(&File)) -> PathBuf {
    const PID: u64 = 48;
    let own = recovery::find().expect("a list").into_iter().find(|f| f.pid == std::process::id());
    let path = PathBuf::from(format!("/dev/shm/hairline-4294967295-{:016x}", std::process::id()));
    fs::copy(own.expect("its region").path, &path).expect("a copy");
    let file = File::options().write(true).open(&path).expect("the copy");
    file.write_all_at(&[0xff; 4], PID).expect("written");
    patch(&file);
    path
}

#[test]
fn a_session_without_a_file_is_recovered_to_where_one_says() {
    for format in FORMATS {
        let _turn = turn();
        let memory = MemoryOutput::new();
        let session = Session::builder().output_memory(&memory).format(format).start().expect("a session");
        for _ in 0..10 {
            trace_scope!("reliability", "in memory");
        }
        let region = orphaned(|_| {});
        session.stop().expect("stopped");
        let error = recovery::recover(&region, &RecoverOptions::new()).expect_err("no place");
        assert!(matches!(error, RecoverError::NoPlace { .. }), "{error}");
        let to = tempfile::NamedTempFile::new().expect("a place");
        recovery::recover(&region, &RecoverOptions::new().to(to.path())).expect("recovered");
        assert!(!region.exists());
        let verdict =
            judge::load(to.path(), &["select count(*) from slice where name = 'in memory' and dur >= 0"]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "10");
    }
}

#[test]
fn a_session_that_was_killed_while_it_started_leaves_nothing_to_recover() {
    const STATE: u64 = 52;
    type Patch = fn(&File);
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace.fxt");
    let session = Session::builder().output(&path).start().expect("a session");
    // Before it says that it is complete; before it has a header; before it has a length. Without a header
    // nothing says in which pid namespace its process was, so it is not known to be dead.
    let patches: [(Patch, bool); 3] = [
        (|file| file.write_all_at(&[0; 4], STATE).expect("written"), true),
        (|file| file.write_all_at(&[0; 4096], 0).expect("written"), false),
        (|file| file.set_len(0).expect("cut"), false),
    ];
    for (patch, is_known_to_be_dead) in patches {
        let region = orphaned(patch);
        let before = fs::read(&path).expect("a trace");
        if !is_known_to_be_dead {
            let refused =
                recovery::recover(&region, &RecoverOptions::new()).expect_err("not known to be dead");
            assert!(matches!(refused, RecoverError::MaybeAlive { pid: u32::MAX, .. }), "{refused}");
            assert!(region.exists());
        }
        let options = RecoverOptions::new().assume_dead(!is_known_to_be_dead);
        let recovered = recovery::recover(&region, &options).expect("cleaned up");
        assert_eq!((recovered.path, recovered.notes.len(), recovered.pid), (None, 1, u32::MAX));
        assert!(!region.exists() && before == fs::read(&path).expect("a trace"));
    }
    session.stop().expect("stopped");
}

#[test]
fn what_is_no_region_is_refused_and_stays() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    for bytes in [&b"HAIRLINE"[..], &[0; 5000], &[0xff; 5000], b""] {
        fs::write(file.path(), bytes).expect("written");
        let error = recovery::recover(file.path(), &RecoverOptions::new()).expect_err("no region");
        assert!(matches!(error, RecoverError::NotARegion(_)), "{error:?}");
        assert!(file.path().exists());
    }
    let error = recovery::recover(Path::new("/dev/null"), &RecoverOptions::new()).expect_err("no region");
    assert!(matches!(error, RecoverError::NotARegion(_)), "{error:?}");
    let error = recovery::recover(Path::new("/dev/shm/none"), &RecoverOptions::new()).expect_err("no file");
    assert!(matches!(error, RecoverError::Io { .. }), "{error:?}");
}
