//! Samples by the clock: they show what threads wait in, of the chosen threads alone.

use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hairline::{Error, Format, Overflow, Session};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::burn::burn;
use crate::record::{STACKS, numbers};

/// Waits for the lock in a slice. Returns for how long.
#[inline(never)]
fn waits_for_the_lock(lock: &Mutex<()>) -> Duration {
    let begin = Instant::now();
    hairline::trace_scope!("clock", "request");
    drop(lock.lock());
    begin.elapsed()
}

/// Records a thread that waits for half a second, and one beside it.
fn record(format: Format, overflow: Overflow, folder: &std::path::Path) -> std::path::PathBuf {
    let path = folder.join(format!("{overflow:?}.{}", extension(format)));
    let builder = Session::builder().output(&path).overflow(overflow).scheduling(true);
    let session = builder.wall_sampling(199, "worker*").expect("a filter").start().expect("it starts");
    let lock = Mutex::new(());
    std::thread::scope(|scope| {
        let held = lock.lock();
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let worker = named("worker 1").spawn_scoped(scope, || waits_for_the_lock(&lock)).expect("a thread");
        named("beside").spawn_scoped(scope, || burn(20)).expect("a thread");
        std::thread::sleep(Duration::from_millis(800));
        drop(held);
        assert!(worker.join().expect("it ends") >= Duration::from_millis(500), "no signal ended its wait");
    });
    let summary = session.stop().expect("it stops");
    assert!(!summary.notes.iter().any(|note| note.contains("samples")), "{:?}", summary.notes);
    path
}

#[test]
fn samples_by_the_clock_show_what_a_sleeping_thread_waits_in() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    let sql = [
        STACKS,
        "select count(*), coalesce(sum(stack glob '*waits_for_the_lock:*'), 0), count(distinct utid), \
            coalesce(sum(name = 'worker 1'), 0) from perf_sample p join thread using (utid) join stacks on sample = p.id",
        "select (select count(*) from perf_sample p join thread_track t using (utid) join slice s on s.track_id = t.id \
            where s.name = 'request' and p.ts between s.ts and s.ts + s.dur) * 100 / (199 * max(dur) / 1000000000) \
            from slice where name = 'request'",
    ];
    for format in FORMATS {
        for overflow in [Overflow::Drop, Overflow::Overwrite] {
            let path = record(format, overflow, folder.path());
            let verdict = judge::load(&path, &sql);
            verdict.require_clean();
            let [all, in_function, threads, of_worker] = numbers(&verdict, 1)[..] else { panic!() };
            let share = verdict.results[2].single_i64();
            assert_eq!((threads, of_worker), (1, all), "{format:?} {overflow:?}: of the chosen thread alone");
            assert!(in_function * 10 >= all * 9, "{format:?} {overflow:?}: {in_function} of {all}");
            // The first 20 ms may have none: the thread is new.
            assert!(
                (70..=105).contains(&share),
                "{format:?} {overflow:?}: {share} % of the samples of its time"
            );
            let hairline = |arguments: &[&str]| {
                let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
                let output =
                    command.arg(arguments[0]).arg(&path).args(&arguments[1..]).output().expect("it runs");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8_lossy(&output.stdout).into_owned()
            };
            let flame = hairline(&["flame", "--at", "request"]);
            assert!(flame.lines().all(|line| line.contains("waits_for_the_lock")), "{flame}");
            let told = hairline(&["explain", "request"]);
            assert!(told.contains("by the clock") && told.contains("waits_for_the_lock"), "{told}");
            // Without states of threads there is no such list.
            let slept = told.split("\n\n").find(|part| part.starts_with("stacks in which"));
            let has_states = !told.contains("records it.");
            assert!(slept.map_or(!has_states, |slept| slept.contains("waits_for_the_lock")), "{told}");
        }
    }
    // The other format, and back.
    let (from, to) = (folder.path().join("Drop.fxt"), folder.path().join("converted.pftrace"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    assert!(command.arg("convert").args([&from, &to]).output().expect("it runs").status.success());
    let verdicts = [from, to].map(|path| judge::load(path, &sql[..2]));
    assert_eq!(numbers(&verdicts[0], 1), numbers(&verdicts[1], 1));
}

#[test]
fn the_environment_asks_for_samples_by_the_clock_and_a_wrong_number_is_said() {
    let too_often = Session::builder().wall_sampling(1001, "").expect("a filter").start();
    assert!(matches!(too_often, Err(Error::Value { what: "wall_sampling", .. })), "{too_often:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pftrace");
    let run = |samples: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_together"));
        let output =
            command.env("HAIRLINE", &path).env("HAIRLINE_SAMPLE", samples).output().expect("it runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for wrong in ["wall:", "wall:1001", "wall:x", "wall:9:a,,b", "clock:9"] {
        assert!(run(wrong).contains("HAIRLINE_SAMPLE"), "{wrong}");
    }
    assert_eq!(run("wall:199:alpha,beta"), "");
    let sql = "select group_concat(distinct thread.name) from perf_sample join thread using (utid)";
    let verdict = judge::load(&path, &[sql]);
    verdict.require_clean();
    let text = verdict.results[0].text();
    assert!(text.contains("alpha") && text.contains("beta") && !text.contains("together"), "{text}");
}
