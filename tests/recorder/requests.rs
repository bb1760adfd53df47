//! Who may ask for a snapshot, and how.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hairline::{Error, Format, Overflow, Session, trace_scope, trigger};
use hairline_tests::judge;
use hairline_tests::output::slow;
use hairline_tests::recording::{FORMATS, extension, record, turn};

fn wait_for(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        assert!(Instant::now() < deadline, "no {}", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_trigger_writes_a_numbered_snapshot_and_the_end_another() {
    for format in FORMATS {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let of = |n: u32| folder.path().join(format!("{n}.{}", extension(format)));
        let template = folder.path().join(format!("%n.{}", extension(format)));
        let builder = Session::builder()
            .output(template)
            .overflow(Overflow::Overwrite)
            .trigger_interval(Duration::ZERO);
        let session = builder.start().unwrap();
        for n in 1..=2 {
            trace_scope!("t", "work", n);
            trigger!("too slow");
            wait_for(&of(n));
        }
        let summary = session.stop().unwrap();
        assert_eq!(summary.path.as_deref(), Some(&*of(3)));
        for (n, work, triggers) in [(1, "1", "1"), (2, "2", "2"), (3, "2", "2")] {
            let rows = [
                "select count(*) from slice where name = 'work'",
                "select count(*) from slice where name = 'too slow'",
            ];
            let verdict = judge::load(of(n), &rows);
            verdict.require_clean();
            assert_eq!(
                (verdict.results[0].text().as_str(), verdict.results[1].text().as_str()),
                (work, triggers),
                "{format:?} {n}"
            );
        }
    }
}

#[test]
fn triggers_in_quick_succession_give_one_snapshot_which_the_end_leaves_alone() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.pftrace");
    let session = Session::builder().output(&path).overflow(Overflow::Overwrite).start().unwrap();
    trigger!("first");
    wait_for(&path);
    for _ in 0..3 {
        trace_scope!("t", "after");
        trigger!("second");
        std::thread::sleep(Duration::from_millis(250));
    }
    session.stop().unwrap();
    let verdict = judge::load(&path, &["select name from slice"]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "first");
}

#[test]
fn a_trigger_without_a_flight_recorder_is_an_instant() {
    trigger!("nobody listens");
    for format in FORMATS {
        let trace = record(format, |_| trigger!("recorded"));
        assert_eq!(trace.rows("select category || ' ' || name from slice"), "hairline recorded");
    }
}

#[test]
fn a_session_that_streams_has_no_snapshot() {
    let _turn = turn();
    let session = Session::builder().output_memory(&hairline::MemoryOutput::new()).start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.pftrace");
    assert!(matches!(session.snapshot(&path), Err(Error::NotRecording)));
    assert!(!path.exists());
    session.stop().unwrap();
}

#[test]
fn a_path_that_cannot_be_written_is_an_error_and_recording_goes_on() {
    let _turn = turn();
    let missing = Path::new("/no such folder/x.pftrace");
    let builder = Session::builder().overflow(Overflow::Overwrite);
    assert!(matches!(builder.output(missing).start(), Err(Error::Create { .. })));
    let session = Session::builder().overflow(Overflow::Overwrite).start().unwrap();
    trace_scope!("t", "work");
    assert!(matches!(session.snapshot(missing), Err(Error::Create { .. })));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("good.pftrace");
    assert_eq!(session.snapshot(&path).unwrap().records, 1);
    assert_eq!(session.stop().unwrap().records, 0, "no output was asked for");
}

#[test]
fn the_environment_asks_for_a_flight_recorder() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("env.{}", extension(format)));
        let status = Command::new(env!("CARGO_BIN_EXE_victim"))
            .arg("steps")
            .env("HAIRLINE", &path)
            .env("HAIRLINE_OVERFLOW", "overwrite")
            .env("HAIRLINE_BUFFER", "256K")
            .status()
            .unwrap();
        assert!(status.success());
        let verdict = judge::load(
            &path,
            &[
                "select count(*) > 1000, max(a.int_value) from slice s join args a using (arg_set_id) where s.name = 'step'",
            ],
        );
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "1\t49999", "{format:?}");
    }
}

/// Each of them writes the whole file, and whoever looks at it meanwhile sees one of them.
#[test]
fn snapshots_to_the_same_path_from_several_threads_at_once_are_whole() {
    for format in FORMATS {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join(format!("same.{}", extension(format)));
        let builder = Session::builder().overflow(Overflow::Overwrite).buffer_size(128 << 10);
        let session = &builder.format(format).start().unwrap();
        for n in 0..20_000 {
            trace_scope!("t", "work", n);
        }
        let seen = std::thread::scope(|threads| {
            let asks = || {
                let take = |_| {
                    session.snapshot(path).unwrap();
                    std::fs::read(path).unwrap()
                };
                (0..10).map(take).collect::<Vec<_>>()
            };
            let all: Vec<_> = (0..4).map(|_| threads.spawn(asks)).collect();
            all.into_iter().flat_map(|asked| asked.join().unwrap()).collect::<Vec<_>>()
        });
        for bytes in seen.iter().step_by(3) {
            let verdict = judge::load_bytes(bytes, &["select count(*) > 500, max(dur < 0) from slice"]);
            verdict.require_clean();
            assert_eq!(verdict.results[0].text(), "1\t0", "{format:?}");
        }
    }
}

/// A thread that wakes another one pays for it.
#[test]
fn nobody_is_woken_while_threads_go_round_the_ring() {
    let _turn = turn();
    let builder = Session::builder().overflow(Overflow::Overwrite).buffer_size(1 << 20).chunk_size(4096);
    let session = builder.start().expect("a session");
    let looks = || -> u64 {
        let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
        let status =
            tasks.map(|task| std::fs::read_to_string(task.path().join("status")).unwrap_or_default());
        let of_writer = status.filter(|status| status.starts_with("Name:\thairline-writer"));
        let switches = of_writer.filter_map(|status| {
            status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok())
        });
        switches.sum()
    };
    let (before, began) = (looks(), Instant::now());
    for _ in 0..1_000_000 {
        trace_scope!("recorder", "step");
    }
    let ticks = began.elapsed().as_millis() as u64 / 50;
    let woken = looks() - before;
    assert!(woken <= 20 + ticks, "{woken} times, of some 8,000 chunks");
    session.stop().expect("stopped");
}

#[test]
fn the_last_snapshot_may_take_long_while_its_output_moves() {
    let _turn = turn();
    let (output, bytes) = slow(Duration::from_millis(80));
    let builder = Session::builder().overflow(Overflow::Overwrite).buffer_size(4 << 20);
    let session = builder.output_writer(output).format(Format::Fxt).start().expect("a session");
    for n in 0..200_000 {
        trace_scope!("t", "fills the ring", n);
    }
    drop(session); // takes 5 s
    assert!(bytes.try_recv().is_ok(), "the end has waited for the whole snapshot");
}
