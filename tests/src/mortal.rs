//! A victim that is killed while it records (`bin/mortal.rs`), and what must be in its trace after recovery.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use hairline::Format;

use crate::children;
use crate::recording::extension;
use crate::walk::{Mark, walk};

/// Threads that a victim may have; each has a counter on a cache line of its own.
pub const MAX_THREADS: usize = 24;
/// Counters from one thread's to the next.
pub const SLOT: usize = 8;
/// Bytes of the file of counters.
pub const COUNTERS_LEN: usize = MAX_THREADS * SLOT * 8;

/// What the victim is to do.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The trace's format.
    pub format: Format,
    /// Threads that record.
    pub threads: usize,
    /// With pauses, or flat out.
    pub moderate: bool,
    /// Bytes of the ring.
    pub buffer: u64,
    /// Bytes of a chunk.
    pub chunk: u32,
    /// Whether the trace is compressed.
    pub compress: bool,
    /// Bytes of a file of the output; 0: it is one.
    pub rotate: u64,
    /// Whether the output is written slowly.
    pub slow: bool,
    /// The number of the first thread.
    pub first: u64,
    /// Whether it is a flight recorder.
    pub recorder: bool,
    /// `never`, `abort`, `segv`, `exec`, or the number of scopes after which each thread waits to be killed.
    pub end: String,
}

impl Orders {
    /// Two threads, with pauses, that never end.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let end = "never".to_owned();
        Self {
            format,
            threads: 2,
            moderate: true,
            buffer: 16 << 20, // none is lost where the writer thread comes to run late
            chunk: 16 << 10,
            compress: false,
            rotate: 0,
            slow: false,
            first: 0,
            recorder: false,
            end,
        }
    }
}

/// A running victim.
#[derive(Debug)]
pub struct Victim {
    child: Child,
    orders: Orders,
    /// Its trace.
    pub trace: PathBuf,
    counters: PathBuf,
    started: SystemTime,
}

impl Victim {
    /// Starts the program at `executable`, with its files in `directory`.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(executable: &str, directory: &Path, orders: Orders) -> Self {
        let trace = directory.join(format!("trace.{}", extension(orders.format)));
        Self::start_at(Command::new(executable), trace, directory.join("counters"), orders)
    }

    /// Starts a program that records to `trace` and has its counters in a file. The command has no arguments of
    /// the victim's yet.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start_at(mut command: Command, trace: PathBuf, counters: PathBuf, orders: Orders) -> Self {
        let file = File::create(&counters).expect("the counters");
        file.set_len(COUNTERS_LEN as u64).expect("their length");
        let started = SystemTime::now();
        if orders.recorder {
            command.arg("recorder=1");
        }
        let child = command
            .arg(format!("output={}", trace.display()))
            .arg(format!("counters={}", counters.display()))
            .arg(format!("threads={}", orders.threads))
            .arg(format!("pace={}", if orders.moderate { "moderate" } else { "full" }))
            .arg(format!("buffer={}", orders.buffer))
            .arg(format!("chunk={}", orders.chunk))
            .arg(format!("compress={}", u8::from(orders.compress)))
            .arg(format!("rotate={}", orders.rotate))
            .arg(format!("slow={}", u8::from(orders.slow)))
            .arg(format!("end={}", orders.end))
            .arg(format!("first={}", orders.first))
            .env_remove("HAIRLINE")
            .stderr(Stdio::null())
            .spawn()
            .expect("a victim");
        Self { child, orders, trace, counters, started }
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The scopes that each thread has told of.
    ///
    /// # Panics
    /// When the counters cannot be read.
    #[must_use]
    pub fn committed(&self) -> Vec<u64> {
        let counters = std::fs::read(&self.counters).expect("the counters");
        let slots = counters.chunks_exact(SLOT * 8).take(self.orders.threads);
        slots.map(|slot| slot.iter().take(8).rev().fold(0, |n, byte| n << 8 | u64::from(*byte))).collect()
    }

    /// Waits until each thread has told of so many scopes, or the victim has ended.
    ///
    /// # Panics
    /// When that takes longer than 20 s.
    pub fn wait_until_committed(&mut self, scopes: u64) {
        self.wait_until(|committed| committed.iter().all(|n| *n >= scopes));
    }

    /// Waits until one of its threads has told of a scope, or the victim has ended. Where there are more threads
    /// than chunks, the others may wait for long.
    ///
    /// # Panics
    /// When that takes longer than 20 s.
    pub fn wait_until_one_records(&mut self) {
        self.wait_until(|committed| committed.iter().any(|n| *n > 0));
    }

    fn wait_until(&mut self, is_enough: impl Fn(&[u64]) -> bool) {
        let began = Instant::now();
        while !is_enough(&self.committed()) && matches!(self.child.try_wait(), Ok(None)) {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "the victim does not record: {:?}",
                self.orders
            );
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Stops it where it is. Returns when all of its threads stand still.
    ///
    /// # Panics
    /// When that takes longer than 20 s.
    pub fn stop(&self) {
        let began = Instant::now();
        children::signal(self.pid(), libc::SIGSTOP);
        while !children::is_over(self.pid().cast_signed()) {
            assert!(began.elapsed() < Duration::from_secs(20), "the victim does not stop");
            std::thread::yield_now();
        }
    }

    /// Lets it go on after [`stop`](Self::stop).
    pub fn go_on(&self) {
        children::signal(self.pid(), libc::SIGCONT);
    }

    /// SIGKILL, and waits for it.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.wait();
    }

    /// Waits for its own end.
    ///
    /// # Panics
    /// When there is nothing to wait for.
    pub fn wait(&mut self) {
        self.child.wait().expect("it ended");
    }

    /// What it left in `/dev/shm`.
    #[must_use]
    pub fn region(&self) -> Option<PathBuf> {
        region_of(self.pid(), self.started)
    }

    /// What is wrong with the trace at `path`, by what it told.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check(&self, path: &Path) -> Result<Steps, String> {
        let steps = read_steps(&files(path), self.orders.format)?;
        for (thread, committed) in self.committed().iter().enumerate() {
            let found = steps.ended.get(&(thread as u64)).copied().unwrap_or(0);
            if found < *committed {
                return Err(format!(
                    "thread {thread} had committed {committed} scopes, the trace has {found}"
                ));
            }
        }
        Ok(steps)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(region) = self.region() {
            let _ = std::fs::remove_file(region); // of a test that failed
        }
    }
}

/// The region of a process that was started then. Numbers of processes come again, and the regions of those
/// that died stay.
#[must_use]
pub fn region_of(pid: u32, started: SystemTime) -> Option<PathBuf> {
    /// More than the clock of the file system's times is behind.
    const BEHIND: Duration = Duration::from_secs(1);
    let prefix = format!("hairline-{pid}-");
    let is_its_own = |path: &PathBuf| {
        let changed = std::fs::metadata(path).and_then(|metadata| metadata.modified());
        path.to_string_lossy().contains(&prefix) && changed.is_ok_and(|changed| changed + BEHIND >= started)
    };
    let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.map(|e| e.path()).find(is_its_own)
}

/// What is in a victim's trace.
#[derive(Debug, Default)]
pub struct Steps {
    /// Scopes with both ends, by thread.
    pub ended: HashMap<u64, u64>,
    begun: HashMap<u64, u64>,
    /// By what the format tells threads apart: the victim's own number of the thread, and its open slices.
    open: HashMap<u64, (Option<u64>, Vec<bool>)>,
    /// Threads whose first step in this file may be the last of the one before.
    again: HashSet<u64>,
    tails: u32,
    /// Whether the first steps may be missing.
    are_windows: bool,
}

impl Steps {
    /// The number of the step after the last one that a thread has begun.
    #[must_use]
    pub fn begun(&self, thread: u64) -> u64 {
        self.begun.get(&thread).copied().unwrap_or(0)
    }

    fn take(&mut self, mark: Mark<'_>) -> Result<(), String> {
        match mark {
            Mark::Begin(place, numbers) => self.begin(place.track, numbers),
            Mark::End(place) => self.end(place.track),
            Mark::Tail => {
                self.tails += 1;
                Ok(())
            }
        }
    }

    /// A slice begins, a step if it has arguments: they are `n` and `thread`.
    fn begin(&mut self, key: u64, arguments: &[u64]) -> Result<(), String> {
        let (thread, open) = self.open.entry(key).or_default();
        open.push(!arguments.is_empty());
        if let [n, number] = *arguments {
            if *thread.get_or_insert(number) != number {
                return Err(format!("two threads are one: {thread:?} and {number}"));
            }
            let first = if self.are_windows { n } else { 0 };
            let begun = self.begun.entry(number).or_insert(first);
            if self.again.remove(&number) && n + 1 == *begun {
                return Ok(());
            }
            if *begun != n {
                return Err(format!("thread {number}: scope {n} comes where {begun} should"));
            }
            *begun += 1;
        }
        Ok(())
    }

    fn end(&mut self, key: u64) -> Result<(), String> {
        let (thread, open) = self.open.entry(key).or_default();
        match (open.pop(), *thread) {
            (Some(true), Some(number)) => *self.ended.entry(number).or_default() += 1,
            (Some(false), _) => {}
            _ => return Err("an end without a begin".to_owned()),
        }
        Ok(())
    }
}

/// The files of the output at `path`, the oldest first.
///
/// # Panics
/// When its directory cannot be read.
#[must_use]
pub fn files(path: &Path) -> Vec<PathBuf> {
    let stem = format!("{}.", path.file_stem().unwrap_or_default().to_string_lossy());
    let number = |file: &PathBuf| -> Option<u64> {
        (file.extension() == path.extension()).then_some(())?;
        file.file_stem()?.to_str()?.strip_prefix(&stem)?.parse().ok()
    };
    let entries = std::fs::read_dir(path.parent().unwrap_or(path)).expect("a directory").flatten();
    let mut numbered: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|file| number(file).is_some()).collect();
    numbered.sort_by_key(number);
    numbered.push(path.to_owned());
    numbered
}

/// Reads the files of several victims' traces, with as many tails as they may have. `are_windows`: the first
/// steps of a thread may be missing.
///
/// # Errors
/// As those of [`read_steps`].
pub fn read_all_steps(files: &[PathBuf], format: Format, are_windows: bool) -> Result<Steps, String> {
    let mut steps = Steps { are_windows, ..Steps::default() };
    for path in files {
        // What is open is told again.
        steps.open.clear();
        steps.again = steps.begun.keys().copied().collect();
        walk(path, format, &mut |mark| steps.take(mark)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(steps)
}

/// Reads the files of a victim's trace with this project's own reader.
///
/// # Errors
/// When one cannot be read, or a thread's scopes are not there once each, in order.
pub fn read_steps(files: &[PathBuf], format: Format) -> Result<Steps, String> {
    let steps = read_all_steps(files, format, false)?;
    if format == Format::TrackEvent && steps.tails != 1 {
        return Err(format!("{} tails", steps.tails));
    }
    Ok(steps)
}
