//! The samples of a process that was killed: recovery has them up to that moment, with their functions.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hairline::Format;
use hairline::recovery::{self, RecoverOptions};
use hairline_tests::judge::{self, Verdict};
use hairline_tests::recording::{FORMATS, extension};
use hairline_tests::regions::region_of;
use hairline_tests::seccomp;

use crate::record::{STACKS, numbers};

/// The slices of a program: each has 20 ms of CPU time.
const SLICES: u32 = 60;

/// A program that samples itself.
struct Burning<'a> {
    format: Format,
    settings: &'a [(&'a str, &'a str)],
    has_perf: bool,
}

impl Burning<'_> {
    /// Starts the program, lets it run until `until` and some slices more, calls `before` and kills it.
    /// Returns the time after its last slice.
    fn run(&self, output: &Path, until: impl Fn() -> bool, before: impl FnOnce()) -> i64 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_burning"));
        command.env("HAIRLINE", output).env("HAIRLINE_SAMPLE", "499").envs(self.settings.iter().copied());
        if !self.has_perf {
            seccomp::refuse(&mut command, &[libc::SYS_perf_event_open], libc::EPERM);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let mut times = lines.filter_map(|line| line.split_once(' ')?.1.parse::<i64>().ok());
        let (begin, mut more, mut last) = (Instant::now(), None, 0);
        while more != Some(0) {
            last = times.next().expect("it goes on");
            assert!(begin.elapsed() < Duration::from_secs(60), "{output:?}: it never happens");
            more = more.map(|more: u32| more - 1).or_else(|| until().then_some(SLICES));
        }
        before();
        child.kill().expect("it runs");
        child.wait().expect("it ended");
        times.last().unwrap_or(last)
    }

    fn each(settings: &[(&str, &str)], mut check: impl FnMut(&Burning<'_>)) {
        for format in FORMATS {
            for has_perf in [true, false] {
                check(&Burning { format, settings, has_perf });
            }
        }
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("t.{}", extension(self.format)))
    }
}

/// All samples, those in the slices of the main thread, and those of the two functions; the time of the last.
const ALL: [&str; 3] = [
    STACKS,
    "select count(*), coalesce(sum(stack glob '*seventy:*' or stack glob '*thirty:*'), 0) from stacks",
    "select count(*), coalesce(max(p.ts), 0), (select count(*) from perf_sample p join thread using (utid) \
        where name = 'a name of more than fifteen bytes') from perf_sample p \
        join thread_track t using (utid) join slice s on s.track_id = t.id \
        where s.name = 'work' and p.ts between s.ts and iif(s.dur = -1, p.ts, s.ts + s.dur)",
];

/// Requires samples with functions in both threads, the last one near the time. Returns the number of all.
fn require(verdict: &Verdict, until: i64, at_least: i64, what: &str) -> i64 {
    let [all, named] = numbers(verdict, 1)[..] else { panic!() };
    let [in_slices, last, beside] = numbers(verdict, 2)[..] else { panic!() };
    verdict.require_few_lost_samples(all);
    assert!(in_slices >= at_least && beside >= 20, "{what}: {in_slices} and {beside} of {all}");
    assert!(named * 20 >= all * 19, "{what}: {named} of {all} are in the functions");
    // A sample is read within 50 ms, and settles with the next reading; the machine may be busy.
    let missing = until - last;
    assert!(missing < 300_000_000, "{what}: the last sample is {missing} ns before the end");
    all
}

#[test]
fn recovery_has_the_samples_of_a_killed_flight_recorder_and_so_has_a_copy_of_a_running_one() {
    let _one = crate::ONE.lock();
    Burning::each(&[("HAIRLINE_OVERFLOW", "overwrite"), ("HAIRLINE_BUFFER", "1M")], |burning| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = burning.path(folder.path());
        let copy = folder.path().join(format!("copy.{}", extension(burning.format)));
        let what = format!("{:?}, perf: {}", burning.format, burning.has_perf);
        let mut copied_at = 0;
        let until = burning.run(
            &path,
            || true,
            || {
                copied_at = hairline_tests::clock::boottime();
                recovery::snapshot(&region_of(&path), &copy).expect("a copy");
            },
        );
        let recovered = recovery::recover(&region_of(&path), &RecoverOptions::new()).expect("a trace");
        let verdict = judge::load(recovered.path.expect("a path"), &ALL);
        let all = require(&verdict, until, 60, &what);
        let verdict = judge::load(&copy, &ALL);
        assert!(require(&verdict, copied_at, 60, &what) <= all);
    });
}

#[test]
fn recovery_finds_the_functions_of_a_killed_process_whose_samples_are_in_its_file() {
    let _one = crate::ONE.lock();
    Burning::each(&[], |burning| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = burning.path(folder.path());
        let until = burning.run(&path, || true, || ());
        recovery::recover(&region_of(&path), &RecoverOptions::new()).expect("a trace");
        let verdict = judge::load(&path, &ALL);
        require(&verdict, until, 100, &format!("{:?}, perf: {}", burning.format, burning.has_perf));
    });
}

#[test]
fn recovery_has_the_samples_of_a_rotations_last_file_and_none_twice() {
    let _one = crate::ONE.lock();
    Burning::each(&[("HAIRLINE_ROTATE", "64K")], |burning| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = burning.path(folder.path());
        let what = format!("{:?}, perf: {}", burning.format, burning.has_perf);
        let file = |n: usize| folder.path().join(format!("t.{n}.{}", extension(burning.format)));
        let until = burning.run(&path, || file(5).exists(), || ());
        recovery::recover(&region_of(&path), &RecoverOptions::new()).expect("a trace");
        let files: Vec<PathBuf> = (1..).map(file).take_while(|path| path.exists()).chain([path]).collect();
        let (mut seen, mut last) = (HashSet::new(), 0);
        let [mut all, mut named, mut last_all, mut last_named] = [0; 4];
        for file in &files {
            let sql = [ALL[0], ALL[1], "select p.ts, tid from perf_sample p join thread using (utid)"];
            let verdict = judge::load(file, &sql);
            let [of_file, in_functions] = numbers(&verdict, 1)[..] else { panic!() };
            // Beside a thread that looks functions up, a busy machine may lose samples, which are counted.
            verdict.require_few_lost_samples(i64::MAX / 10);
            (all, named, last_all, last_named) = (all + of_file, named + in_functions, of_file, in_functions);
            for sample in verdict.results[2].text().lines() {
                let time = sample.split('\t').next().and_then(|time| time.parse().ok()).expect("a time");
                last = last.max(time);
                assert!(seen.insert(sample.to_owned()), "{what}: {sample} is in {file:?} too");
            }
        }
        assert!(until - last < 300_000_000, "{what}: no sample in the last {} ns", until - last);
        // Others are those of the threads that look up the functions of finished files.
        assert!(all > 100 && named * 2 >= all, "{what}: {named} of {all} in {} files", files.len());
        assert!(
            last_named * 2 >= last_all && last_all > 20,
            "{what}: {last_named} of {last_all} in the last"
        );
    });
}
