//! Programs that are killed at random moments and started again with the same path. All that each of them had
//! committed is in some file, and no run changes a file of an earlier one.
//!
//! `TORTURE_RESTARTS=2000` (`ci/torture.sh restarts`) is the long form.

#![allow(unsafe_code)] // kill

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairline::Format;
use hairline::recovery::{self, RecoverError, RecoverOptions};
use hairline_tests::judge;
use hairline_tests::mortal::{Orders, Steps, Victim, files, read_all_steps};
use hairline_tests::recording::{FORMATS, extension};
use tempfile::TempDir;

use crate::torture::random;

/// How a program is started again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    SamePath,
    OwnPid,
    /// As in a container: each run is process 1 of its own pid namespace.
    FirstProcess,
    FlightRecorder,
    Rotated,
}

const WAYS: [Way; 5] = [Way::SamePath, Way::OwnPid, Way::FirstProcess, Way::FlightRecorder, Way::Rotated];

/// The runs at one path.
const LIVES: u64 = 8;

/// The threads of one run have numbers from `life * THREADS`.
const THREADS: u64 = 100;

/// A directory in which one program is killed again and again.
struct Place {
    directory: TempDir,
    format: Format,
    way: Way,
    /// Their ends remove what they have left in the machine's memory.
    victims: Vec<Victim>,
    /// What each thread of all runs had committed.
    committed: BTreeMap<u64, u64>,
}

impl Place {
    /// One run: started, killed, and looked at.
    fn live(&mut self, life: u64, random: &mut dyn FnMut(u64) -> u64) -> Result<(), String> {
        let orders = Orders {
            threads: 1 + random(4) as usize,
            moderate: random(2) == 0,
            buffer: if self.way == Way::FlightRecorder {
                16 << 20
            } else {
                [64 << 10, 1 << 20][random(2) as usize]
            },
            chunk: 4096,
            compress: random(4) == 0,
            slow: random(3) == 0,
            rotate: if self.way == Way::Rotated { 64 << 10 } else { 0 },
            recorder: self.way == Way::FlightRecorder,
            first: life * THREADS,
            ..Orders::new(self.format)
        };
        let threads = orders.threads as u64;
        let before = self.content();
        let mut victim = self.start(life, orders);
        if random(8) > 0 {
            victim.wait_until_committed(1);
        }
        // A flight recorder keeps all that it records in this time.
        std::thread::sleep(Duration::from_micros(random(20_000)));
        self.kill(&mut victim);
        let committed = victim.committed();
        self.committed.extend((0..threads).map(|n| (life * THREADS + n, committed[n as usize])));
        self.victims.push(victim);
        let after = self.content();
        match before.iter().find(|(path, bytes)| !bytes.is_empty() && after.get(*path) != Some(bytes)) {
            Some((path, _)) => Err(format!("run {life} has changed {}", path.display())),
            None => Ok(()),
        }
    }

    fn start(&self, life: u64, orders: Orders) -> Victim {
        let program = env!("CARGO_BIN_EXE_mortal");
        let name = if matches!(self.way, Way::OwnPid | Way::FirstProcess) { "trace-%p" } else { "trace" };
        let trace = self.directory.path().join(format!("{name}.{}", extension(self.format)));
        let counters = self.directory.path().join(format!("counters-{life}"));
        let mut command = Command::new(program);
        if self.way == Way::FirstProcess {
            command = Command::new("unshare");
            command.args(["--pid", "--fork", "--kill-child", program]);
        }
        Victim::start_at(command, trace, counters, orders)
    }

    fn kill(&self, victim: &mut Victim) {
        if self.way == Way::FirstProcess {
            let children = format!("/proc/{0}/task/{0}/children", victim.pid());
            let child = std::fs::read_to_string(children).ok().and_then(|pids| pids.trim().parse().ok());
            if let Some(child) = child {
                // SAFETY: takes numbers; the process is the child of one that this test has not waited for.
                unsafe { libc::kill(child, libc::SIGKILL) };
                return victim.wait();
            }
        }
        victim.kill();
    }

    /// Its files but those of counters and unfinished ones.
    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory.path()).expect("a directory").flatten();
        let is_trace = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !name.starts_with('.') && !name.starts_with("counters")
        };
        entries.map(|entry| entry.path()).filter(is_trace).collect()
    }

    fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.files().into_iter().map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect()
    }

    /// Completes all traces.
    fn recover(&self) -> Result<(), String> {
        for region in recovery::find().map_err(|e| e.to_string())? {
            let is_own = |output: &Path| output.starts_with(self.directory.path());
            // A region without a header does not say whose it is.
            if !region.output.as_deref().is_some_and(is_own) {
                continue;
            }
            match recovery::recover(&region.path, &RecoverOptions::new().assume_dead(true)) {
                Ok(_) | Err(RecoverError::Busy { .. }) => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }

    /// What is missing of what the runs had committed.
    fn check(&self, is_judged: bool) -> Result<u64, String> {
        let is_recorder = self.way == Way::FlightRecorder;
        let is_numbered = |path: &PathBuf| {
            let stem = Path::new(path.file_stem().unwrap_or_default());
            stem.extension().is_some_and(|number| number.to_string_lossy().parse::<u64>().is_ok())
        };
        let outputs = self.files().into_iter().filter(|path| !is_numbered(path));
        let all: Vec<Steps> = outputs
            .clone()
            .map(|output| read_all_steps(&files(&output), self.format, is_recorder))
            .collect::<Result<_, _>>()?;
        let mut scopes = 0;
        for (thread, committed) in &self.committed {
            let of = |steps: &Steps| match is_recorder {
                // The last scope is there, and those before it as far as the ring holds them.
                true => steps.begun(*thread),
                false => steps.ended.get(thread).copied().unwrap_or(0),
            };
            let found = all.iter().map(of).max().unwrap_or(0);
            if found < *committed {
                return Err(format!("thread {thread} had committed {committed} scopes, {found} are there"));
            }
            scopes += found;
        }
        if is_judged {
            for file in outputs.flat_map(|output| files(&output)) {
                let slices = &["select count(*) from slice where name = 'step'"];
                judge::load(file, slices).results[0].single_i64();
            }
        }
        Ok(scopes)
    }
}

impl Drop for Place {
    /// The machine's memory keeps nothing of a test that failed.
    fn drop(&mut self) {
        for region in recovery::find().unwrap_or_default() {
            if region.output.is_some_and(|output| output.starts_with(self.directory.path())) {
                let _ = std::fs::remove_file(region.path);
            }
        }
    }
}

/// All lives at one path. They follow from the number. Returns the number of scopes that were found.
fn place(number: u64, is_judged: bool) -> Result<u64, String> {
    let (format, way) = (FORMATS[(number % 2) as usize], WAYS[(number / 2 % WAYS.len() as u64) as usize]);
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut place = Place { directory, format, way, victims: Vec::new(), committed: BTreeMap::new() };
    let mut random = random(number ^ 0x7265_7374);
    let failed = |what: String| format!("{way:?}, {format:?}: {what}");
    for life in 0..LIVES {
        place.live(life, &mut random).map_err(failed)?;
        if random(4) == 0 {
            place.recover().map_err(failed)?;
        }
    }
    place.recover().map_err(failed)?;
    place.check(is_judged).map_err(failed)
}

#[test]
fn what_was_committed_before_a_kill_survives_each_new_start_at_the_same_path() {
    let variable = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let kills = variable("TORTURE_RESTARTS").unwrap_or(LIVES * 10);
    let from = variable("TORTURE_FROM").unwrap_or(0);
    let has_namespaces = Command::new("unshare").args(["--pid", "--fork", "true"]).output();
    let has_namespaces = has_namespaces.is_ok_and(|output| output.status.success());
    if !has_namespaces {
        eprintln!("no pid namespaces here: not tested as process 1");
    }
    let (next, scopes, began) = (AtomicU64::new(from), AtomicU64::new(0), Instant::now());
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= from + kills.div_ceil(LIVES) || failure.lock().expect("a failure").is_some()
                    {
                        break;
                    }
                    if WAYS[(number / 2 % 5) as usize] == Way::FirstProcess && !has_namespaces {
                        continue;
                    }
                    match place(number, number % 5 == 0) {
                        Ok(found) => {
                            scopes.fetch_add(found, Ordering::Relaxed);
                        }
                        Err(what) => {
                            let again = format!("again: TORTURE_FROM={number} TORTURE_RESTARTS=1");
                            *failure.lock().expect("a failure") =
                                Some(format!("place {number}: {what}\n{again}"));
                        }
                    }
                }
            });
        }
    });
    println!("{kills} kills, {} scopes, {:.1?}", scopes.load(Ordering::Relaxed), began.elapsed());
    if let Some(what) = failure.into_inner().expect("a failure") {
        panic!("{what}");
    }
    assert!(scopes.load(Ordering::Relaxed) > 0);
}
