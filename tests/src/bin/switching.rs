//! A program with known waits, for the tests of context switches.
//!
//! ```text
//! switching known FILE [ring]    threads that spin, sleep and wait; their own measurements on stdout
//! switching killed FILE          waits for its end, and switches meanwhile
//! switching fork FILE            forks a child that lives on, and ends
//! switching files FILE           with a limit of open files that is too low for events
//! switching environment FILE     the same, without a session of its own
//! switching exec -            a thread that is not the first executes `sleep`
//! switching half FILE         with a limit that is low for switches and samples together
//! switching environment-files FILE   as many threads, and no such limit
//! switching overflow FILE        more switches than the kernel's rings hold, while nobody reads them
//! switching often -              as many switches, without a session
//! ```
//!
//! A line of `known`: name, thread, begin and end (ns of `CLOCK_BOOTTIME`), ns in waiting calls in between
//! (`-`: the work is not made of them), ns of processor time, ns runnable without a processor (`-`: the
//! kernel does not tell), and the voluntary and involuntary switches from the thread's start to the last
//! number, another time.

#![allow(unsafe_code)] // getrusage, sched_setaffinity, fork, setrlimit

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use hairline::{Format, Overflow, Session, trace_scope};
use hairline_tests::clock::clock;

/// The voluntary and the involuntary switches of this thread.
fn switches() -> (i64, i64) {
    // SAFETY: a struct of integers, for which 0 is a value; the call writes one.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        usage
    };
    (usage.ru_nvcsw, usage.ru_nivcsw)
}

/// The kernel's own account of a thread's delays. What a hypervisor takes from a processor is not in it.
struct Account(Option<File>);

impl Account {
    /// Of the calling thread. Opened before it is read: the less time is between it and the clock, the
    /// better.
    fn open() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Nanoseconds for which the thread was runnable and had no processor.
    fn delay(&self) -> Option<u64> {
        let mut text = [0; 64];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..length]).ok()?.split_whitespace().nth(1)?.parse().ok()
    }
}

/// Binds this thread to the first processor that it may use.
fn bind() {
    // SAFETY: sets of bits, for which 0 is a value.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        assert_eq!(libc::sched_getaffinity(0, size, &raw mut all), 0);
        let first = (0..libc::CPU_SETSIZE as usize).find(|cpu| libc::CPU_ISSET(*cpu, &all)).expect("one");
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(first, &mut one);
        assert_eq!(libc::sched_setaffinity(0, size, &raw const one), 0);
    }
}

/// Does something on a thread of its own, and prints what the thread measures.
fn measured(
    name: &'static str,
    before: impl FnOnce() + Send,
    work: impl FnOnce() -> Option<Duration> + Send,
) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        let body = move || {
            before();
            let account = Account::open();
            let used = clock(libc::CLOCK_THREAD_CPUTIME_ID);
            let delayed = account.delay();
            let begin = clock(libc::CLOCK_BOOTTIME);
            let (waited, end);
            {
                trace_scope!("sched", "work");
                waited = work();
                end = clock(libc::CLOCK_BOOTTIME);
            }
            let delayed = delayed.and_then(|before| Some(account.delay()? - before));
            let used = clock(libc::CLOCK_THREAD_CPUTIME_ID) - used;
            let (waits, preemptions) = switches();
            let counted = clock(libc::CLOCK_BOOTTIME);
            // SAFETY: takes nothing.
            let tid = unsafe { libc::syscall(libc::SYS_gettid) };
            let text = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
            let (waited, delayed) = (text(waited.map(|waited| waited.as_nanos() as u64)), text(delayed));
            println!("{name} {tid} {begin} {end} {waited} {used} {delayed} {waits} {preemptions} {counted}");
        };
        thread.spawn_scoped(scope, body).expect("a thread").join().expect("its end");
    });
}

/// Spins.
fn spin(time: Duration) -> Option<Duration> {
    let began = Instant::now();
    while began.elapsed() < time {}
    None
}

/// Waits in a call. Returns the time that it has taken.
fn wait(call: impl FnOnce()) -> Option<Duration> {
    let began = Instant::now();
    call();
    Some(began.elapsed())
}

/// Waits in a call that ends some time after `is_ready`, so that it does not end before it began.
fn wait_when_ready(is_ready: &AtomicBool, call: impl FnOnce()) -> Option<Duration> {
    is_ready.store(true, Ordering::Relaxed);
    wait(call)
}

/// Sleeps for this time after another thread is ready.
fn sleep_from(is_ready: &AtomicBool, time: Duration) {
    while !is_ready.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(time);
}

fn known(directory: &std::path::Path) {
    const WAIT: Duration = Duration::from_millis(20);
    measured("spins", || {}, || spin(Duration::from_millis(100)));
    measured("sleeps", || {}, || wait(|| std::thread::sleep(WAIT)));
    let over = Arc::new(AtomicBool::new(false));
    let rival = {
        let over = Arc::clone(&over);
        std::thread::spawn(move || {
            bind();
            while !over.load(Ordering::Relaxed) {
                std::hint::black_box(&over);
            }
        })
    };
    measured("preempted", bind, || spin(Duration::from_millis(100)));
    over.store(true, Ordering::Relaxed);
    rival.join().expect("its end");
    let (mutex, is_ready) = (Mutex::new(()), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let held = mutex.lock().expect("free");
        scope.spawn(|| measured("mutex", || {}, || wait_when_ready(is_ready, || drop(mutex.lock()))));
        sleep_from(is_ready, WAIT);
        drop(held);
    });
    let (sender, receiver) = mpsc::channel();
    let is_ready = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receive = move || receiver.recv().expect("a message");
        scope.spawn(|| measured("channel", || {}, || wait_when_ready(is_ready, receive)));
        sleep_from(is_ready, WAIT);
        sender.send(()).expect("a receiver");
    });
    let mut file = File::create(directory.join("disk")).expect("a file");
    measured(
        "disk",
        || {},
        || {
            for _ in 0..50 {
                file.write_all(&[7; 4096]).expect("written");
                file.sync_all().expect("on the disk");
            }
            None
        },
    );
    measured(
        "often",
        || {},
        || Some((0..200).filter_map(|_| wait(|| std::thread::sleep(Duration::from_millis(1)))).sum()),
    );
}

/// The turns of two threads on one processor. Each turn makes four records, of which a ring holds some
/// 13,000.
const TURNS: u32 = 20_000;

/// Two threads of one processor wait for each other, turn by turn.
fn often() {
    let ((to, from), (back_to, back_from)) = (mpsc::sync_channel(0), mpsc::sync_channel(0));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            bind();
            for _ in 0..TURNS {
                back_to.send(from.recv().expect("a turn")).expect("a receiver");
            }
        });
        scope.spawn(move || {
            bind();
            for turn in 0..TURNS {
                to.send(turn).expect("a receiver");
                back_from.recv().expect("a turn");
            }
        });
    });
}

/// A file that takes nothing while it is held.
struct Held {
    file: File,
    is_held: Arc<AtomicBool>,
    waits: Arc<AtomicBool>,
}

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        while self.is_held.load(Ordering::Relaxed) {
            self.waits.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn overflow(path: &str) {
    let (is_held, waits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let file = File::create(path).expect("a file");
    let held = Held { file, is_held: Arc::clone(&is_held), waits: Arc::clone(&waits) };
    let format = if path.ends_with("fxt") { Format::Fxt } else { Format::TrackEvent };
    let session = Session::builder().output_writer(held).format(format).scheduling(true).start();
    let session = session.expect("a session");
    is_held.store(true, Ordering::Relaxed);
    let began = Instant::now();
    while !waits.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(5) {
        trace_scope!("sched", "work");
        std::thread::sleep(Duration::from_millis(1));
    }
    often();
    is_held.store(false, Ordering::Relaxed);
    let summary = session.stop().expect("a stopped session");
    println!("lost {}", summary.lost.kernel_ring);
    summary.notes.iter().for_each(|note| println!("note: {note}"));
}

/// Prints how many files the program can still open in a session with switches and samples, and the limit.
fn half(path: &str) {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    for _ in 0..12 {
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(60)));
    }
    limit_files(32 * cpus);
    let session = Session::builder().output(path).scheduling(true).sampling(97).start().expect("a session");
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let left = files.len();
    drop(files);
    println!("left {left} of {}", 32 * cpus);
    let summary = session.stop().expect("a stopped session");
    summary.notes.iter().for_each(|note| println!("note: {note}"));
}

/// Executes a program on a thread that is not the first, while another one runs.
fn exec() {
    let name = |name: &str| std::thread::Builder::new().name(name.to_owned());
    let rival = || while std::hint::black_box(true) {};
    name("rival").spawn(rival).expect("a thread");
    let executes = || {
        std::thread::sleep(Duration::from_millis(20));
        panic!("{}", std::process::Command::new("sleep").arg("0.2").exec());
    };
    let _ = name("executes").spawn(executes).expect("a thread").join();
}

fn limit_files(most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: reads one `rlimit`.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [way, file, rest @ ..] = arguments.as_slice() else { panic!("switching WAY FILE [ring]") };
    let directory = std::path::Path::new(file).parent().expect("a directory");
    if way == "environment-files" || way == "environment" || way == "files" {
        for _ in 0..4 {
            std::thread::spawn(|| std::thread::sleep(Duration::from_secs(60)));
        }
    }
    if way == "environment" || way == "files" {
        limit_files(8);
    }
    if way.starts_with("environment") {
        trace_scope!("sched", "work");
        return std::thread::sleep(Duration::from_millis(20));
    }
    match way.as_str() {
        "often" => return often(),
        "plain" => return known(directory),
        "overflow" => return overflow(file),
        "exec" => return exec(),
        "half" => return half(file),
        _ => {}
    }
    let overflow = if rest.is_empty() { Overflow::Drop } else { Overflow::Overwrite };
    let builder = Session::builder().output(file).scheduling(true).overflow(overflow);
    let session = builder.start().expect("a session");
    match way.as_str() {
        "known" => known(directory),
        "killed" => {
            println!("recording");
            measured(
                "endless",
                || {},
                || loop {
                    std::thread::sleep(Duration::from_millis(1));
                },
            );
        }
        "fork" => {
            // SAFETY: the child only sleeps and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let open = std::fs::read_dir("/proc/self/fd").expect("files").flatten();
                let of_perf = open.filter(|file| {
                    std::fs::read_link(file.path()).is_ok_and(|to| to.ends_with("anon_inode:[perf_event]"))
                });
                println!("{} events in the child", of_perf.count());
                (0..100).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
                hairline_tests::children::exit_at_once(0);
            }
            hairline_tests::children::expect_success(child, Duration::from_secs(10));
            println!("child {child}");
        }
        _ => {}
    }
    let summary = session.stop().expect("a stopped session");
    println!("lost {}", summary.lost.kernel_ring);
    summary.notes.iter().for_each(|note| println!("note: {note}"));
}
