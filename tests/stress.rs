//! All at once, for as long as there is time: signals that record, sessions that come and go, guards that
//! live across them, arguments that panic, threads that come and go, more threads than chunks, so that idle
//! ones lose theirs, and snapshots of flight recorders.
//!
//! ```text
//! cargo test -p hairline-tests --test stress                      some seconds
//! STRESS_SECONDS=30 STRESS_SEED=7 cargo test ...                  longer; and as a failure says it was
//! ci/san.sh                                                       under AddressSanitizer and ThreadSanitizer
//! ```
//!
//! Each session's trace has each thread's steps in order, without a gap. Their number is what the thread
//! counted while the session was surely there, and at most that and what it did at the session's start and
//! end. What was not recorded then is in the losses.

#![allow(unsafe_code)] // a signal handler, errno

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use hairline::{Overflow, Session, Summary, trace_counter, trace_instant, trace_scope};
use hairline_tests::forked::{Content, MAGIC, read};
use hairline_tests::judge;
use hairline_tests::marking::{MarkingAlloc, is_allocating};
use hairline_tests::outside::Alarm;
use hairline_tests::recording::{FORMATS, extension};
use hairline_tests::torture::Random;

#[global_allocator]
static MARKING: MarkingAlloc = MarkingAlloc;

/// Threads that record all the time, and threads that record a little and then sleep. Together more than
/// there are chunks.
const BUSY: u64 = 3;
const IDLE: u64 = 24;
/// A session in this state of [`PHASE`] records, and no other: phases go up by one before and after each
/// start and stop.
const RECORDING: u64 = 2;
const PHASES: u64 = 4;
/// The importer's count of what `TraceStats` says was lost.
const LOSS: &str = "traced_buf_trace_writer_packet_loss";

static STOP: AtomicBool = AtomicBool::new(false);
static PHASE: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static NEXT_THREAD: AtomicU64 = AtomicU64::new(1000);

thread_local! {
    /// This thread may be interrupted by a handler that records.
    static IS_READY: Cell<bool> = const { Cell::new(false) };
    /// A panic of this thread is meant, and nothing to report.
    static IS_MEANT: Cell<bool> = const { Cell::new(false) };
}

/// Steps of a thread in a session.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Recorded while the session was surely there.
    recorded: u64,
    /// Not recorded while it was surely there.
    lost: u64,
    /// Recorded, perhaps by this session, perhaps by the next one.
    perhaps: u64,
}

/// By session and thread.
type Counts = HashMap<(u64, u64), Count>;

static COUNTS: Mutex<Option<Counts>> = Mutex::new(None);

/// A thread that records.
struct Worker {
    number: u64,
    next: u64,
    random: Random,
    counts: Counts,
}

impl Worker {
    fn new(number: u64, seed: u64) -> Self {
        IS_READY.set(true);
        Self { number, next: 0, random: Random::new(seed), counts: Counts::new() }
    }

    /// A scope that is counted.
    fn step(&mut self) {
        let before = PHASE.load(SeqCst);
        let scope = hairline::scope!("stress", "step", n = self.next, thread = self.number, magic = MAGIC);
        let is_recorded = scope.is_recorded();
        drop(scope);
        self.next += u64::from(is_recorded);
        let after = PHASE.load(SeqCst);
        if before == after && before % PHASES == RECORDING {
            let count = self.counts.entry((before / PHASES, self.number)).or_default();
            count.recorded += u64::from(is_recorded);
            count.lost += u64::from(!is_recorded);
        } else if is_recorded {
            for session in before / PHASES..=after / PHASES {
                self.counts.entry((session, self.number)).or_default().perhaps += 1;
            }
        }
    }

    fn anything(&mut self) {
        self.step();
        match self.random.below(12) {
            0 => trace_instant!("stress", "instant", text = "some text", half = 0.5),
            1 => trace_instant!("stress", "formatted", value = ?Some(self.random.below(9))),
            2 => trace_counter!("stress", "count", self.random.below(1000)),
            3 => {
                let mut interval = hairline::trace_async!("stress", "interval");
                interval.arg("by", self.number);
                self.step();
            }
            4 => {
                let track = hairline::Track::process().child("a track");
                hairline::trace_begin!("stress", "on a track", track: &track);
                self.step();
                hairline::trace_end!(&track);
            }
            5 => tracing::info_span!("span", text = "of a field").in_scope(|| {
                tracing::info!("in the span");
                self.step();
            }),
            6 => log::info!("logged by {}", self.number),
            7 => {
                let name = format!("dynamic {}", self.random.below(50));
                trace_instant!("stress", "named", name: &name);
            }
            8 => panic_in_an_argument(self.random.below(4)),
            _ => {
                trace_scope!("stress", "outer");
                self.step();
            }
        }
    }

    /// Records until it is told to stop, some of it in guards that may live longer than a session.
    fn work(&mut self, is_idle: bool) {
        while !STOP.load(SeqCst) {
            let _held = self.random.one_in(3).then(|| hairline::scope!("stress", "held", by = self.number));
            let _interval = self.random.one_in(3).then(|| hairline::trace_async!("stress", "held interval"));
            for _ in 0..if is_idle { 3 } else { self.random.below(400) } {
                self.anything();
            }
            if is_idle {
                std::thread::sleep(Duration::from_millis(2 + self.random.below(5)));
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        IS_READY.set(false);
        // ThreadSanitizer does not see into the part of the standard library that waits for a lock.
        let mut counts = loop {
            match COUNTS.try_lock() {
                Ok(counts) => break counts,
                Err(_) => std::thread::yield_now(),
            }
        };
        counts.get_or_insert_default().extend(self.counts.drain());
    }
}

/// Panics whenever somebody wants to know what it is.
struct Panics;

impl fmt::Debug for Panics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        trace_instant!("stress", "before the panic");
        f.write_str("half of it")?;
        panic!("in Debug")
    }
}

impl fmt::Display for Panics {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("in Display")
    }
}

impl serde::Serialize for Panics {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("in Serialize")
    }
}

fn panic_in_an_argument(which: u64) {
    IS_MEANT.set(true);
    let _ = catch_unwind(AssertUnwindSafe(|| match which {
        0 => trace_instant!("stress", "of a panic", value = ?Panics),
        1 => drop(hairline::scope!("stress", "of a panic", first = 1, value = %Panics)),
        2 => trace_instant!("stress", "of a panic", value = hairline::serialize(&Panics)),
        _ => tracing::info_span!("of a panic", value = ?Panics).in_scope(|| ()),
    }));
    IS_MEANT.set(false);
}

fn handle() {
    // A thread's first event in a session may allocate.
    if IS_READY.get() && !is_allocating() {
        // SAFETY: this thread's own, at any time.
        let errno = unsafe { *libc::__errno_location() };
        trace_scope!("stress", "handler");
        trace_instant!("stress", "in the handler");
        HANDLED.fetch_add(1, SeqCst);
        // An event that takes the cold path may call the system, which changes it.
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
    }
}

/// What is left of a session.
struct Ended {
    number: u64,
    summary: Summary,
    /// Whether it was a flight recorder, whose trace is the end of all.
    is_window: bool,
    content: Content,
}

/// A session's whole life.
fn session(number: u64, random: &Random, folder: &Path) -> (Ended, PathBuf) {
    let format = FORMATS[random.below(2) as usize];
    let path = folder.join(format!("{number}.{}", extension(format)));
    let overflow = match random.below(3) {
        0 => Overflow::Drop,
        1 => Overflow::Block(Duration::from_millis(20)),
        _ => Overflow::Overwrite,
    };
    let is_window = matches!(overflow, Overflow::Overwrite);
    let buffer = [64 << 10, 256 << 10, 4 << 20][random.below(3) as usize];
    let builder = Session::builder().output(&path).overflow(overflow).buffer_size(buffer).chunk_size(4096);
    let builder = builder.trigger_interval(Duration::ZERO).thread_time(random.one_in(8));
    assert_eq!(PHASE.fetch_add(1, SeqCst) % PHASES, 0);
    let session = builder.start().expect("a session");
    PHASE.fetch_add(1, SeqCst);
    for n in 0..1 + random.below(4) {
        std::thread::sleep(Duration::from_millis(random.below(15)));
        if is_window {
            let path = folder.join(format!("snapshot.{}", extension(format)));
            session.snapshot(&path).expect("a snapshot");
            let read =
                read(&path).unwrap_or_else(|e| panic!("session {number}, snapshot {n}, {format:?}: {e}"));
            drop(read);
        } else if random.one_in(2) {
            session.flush().expect("flushed");
        } else {
            session
                .set_categories(["*", "stress", "*,-nothing"][random.below(3) as usize])
                .expect("a filter");
        }
    }
    PHASE.fetch_add(1, SeqCst);
    let summary = session.stop().expect("stopped");
    PHASE.fetch_add(1, SeqCst);
    let path = summary.path.clone().expect("a path");
    let content = read(&path).unwrap_or_else(|e| panic!("session {number}, {}: {e}", path.display()));
    std::thread::sleep(Duration::from_millis(random.below(3)));
    (Ended { number, summary, is_window, content }, path)
}

/// Threads that record a little and end, a few at a time.
fn come_and_go(seed: u64) {
    let random = Random::new(seed);
    while !STOP.load(SeqCst) {
        std::thread::scope(|threads| {
            for _ in 0..1 + random.below(4) {
                let seed = random.next();
                threads.spawn(move || {
                    let mut worker = Worker::new(NEXT_THREAD.fetch_add(1, SeqCst), seed);
                    (0..worker.random.below(40)).for_each(|_| worker.anything());
                    // Its thread ends before this does.
                    std::mem::forget(hairline::scope!("stress", "open at the thread's end"));
                });
            }
        });
        std::thread::sleep(Duration::from_micros(random.below(2000)));
    }
}

fn check(sessions: &[Ended], counts: &Counts) -> Result<u64, String> {
    let mut steps = 0;
    for Ended { number, summary, is_window, content } in sessions {
        let mut lost = 0;
        for ((_, thread), count) in counts.iter().filter(|((session, _), _)| session == number) {
            let found = content.steps.get(thread).map_or(0, |steps| steps.begun);
            let most = count.recorded + count.perhaps;
            let least = if *is_window { 0 } else { count.recorded };
            if !(least..=most).contains(&found) {
                let of = format!(
                    "session {number}, {}",
                    summary.path.as_deref().unwrap_or(Path::new("")).display()
                );
                return Err(format!(
                    "{of}, thread {thread}: {count:?}, the trace has {found}; {summary:?} {:?}",
                    content.steps
                ));
            }
            lost += count.lost;
        }
        if let Some(thread) = content.steps.keys().find(|thread| !counts.contains_key(&(*number, **thread))) {
            return Err(format!("session {number}: thread {thread} recorded nothing there"));
        }
        if summary.lost.total() < lost {
            return Err(format!("session {number}: {lost} steps were lost, of {:?}", summary.lost));
        }
        steps += content.steps.values().map(|steps| steps.begun).sum::<u64>();
    }
    Ok(steps)
}

#[test]
fn all_at_once_no_trace_is_damaged_and_what_was_recorded_and_lost_adds_up() {
    let variable = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let time = Duration::from_secs(variable("STRESS_SECONDS").unwrap_or(4));
    let seed = variable("STRESS_SEED").unwrap_or(1);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !IS_MEANT.get() {
            before(info);
        }
    }));
    hairline::Logger::new().install().expect("the logger");
    tracing::subscriber::set_global_default(hairline::Subscriber::new()).expect("the subscriber");
    let random = Random::new(seed);
    let folder = tempfile::tempdir().expect("a directory");
    let began = Instant::now();
    let mut sessions = Vec::new();
    std::thread::scope(|threads| {
        for number in 0..BUSY + IDLE {
            let seed = random.next();
            threads.spawn(move || Worker::new(number, seed).work(number >= BUSY));
        }
        let of_those = random.next();
        threads.spawn(move || come_and_go(of_those));
        // SAFETY: it touches an atomic and this library, which says that a signal handler may.
        let alarm = unsafe { Alarm::every(300, handle) };
        let all = catch_unwind(AssertUnwindSafe(|| {
            for number in 0.. {
                let (ended, path) = session(number, &random, folder.path());
                if number.is_multiple_of(40) {
                    let verdict = judge::load(&path, &[]);
                    // What the ring had no room for the importer reports, as it should.
                    let complaints = verdict.complaints.iter().filter(|stat| stat.name != LOSS);
                    assert_eq!(complaints.count(), 0, "session {number}: {:?}", verdict.complaints);
                }
                std::fs::remove_file(path).expect("removed");
                sessions.push(ended);
                if began.elapsed() > time {
                    break;
                }
            }
        }));
        drop(alarm);
        STOP.store(true, SeqCst);
        if let Err(panic) = all {
            eprintln!("again: STRESS_SEED={seed}; the traces are in {}", folder.path().display());
            std::mem::forget(folder);
            std::panic::resume_unwind(panic);
        }
    });
    let counts = COUNTS.lock().expect("no panic").take().unwrap_or_default();
    let steps = check(&sessions, &counts).unwrap_or_else(|e| panic!("STRESS_SEED={seed}: {e}"));
    let lost: u64 = sessions.iter().map(|session| session.summary.lost.total()).sum();
    let threads = NEXT_THREAD.load(SeqCst) - 1000 + BUSY + IDLE;
    let handled = HANDLED.load(SeqCst);
    println!(
        "{} sessions, {threads} threads, {handled} signals, {steps} steps, {lost} losses",
        sessions.len()
    );
    assert!(!sessions.is_empty() && steps > 0 && handled > 0);
}
