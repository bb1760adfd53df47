//! A program that records until it is killed, or ends itself in a way that completes no trace.
//!
//! ```text
//! mortal output=FILE counters=FILE threads=4 pace=full|moderate buffer=BYTES chunk=BYTES compress=0|1 rotate=BYTES slow=0|1 end=never|abort|segv|exec|LIMIT
//!        [first=THREAD] [recorder=1]
//! ```
//!
//! `first`: the number of its first thread, so that several runs can be told from each other. `recorder=1`: it is a
//! flight recorder.
//!
//! Each thread records scopes `step` with its number of scopes so far, `n`, and its own number, `thread`.
//! After each scope it stores that number plus one into its slot of the file of counters, which it has
//! mapped: what it had committed when it was killed. `hidden=1`: a `/proc` with `hidepid=2` shows the process
//! to root only. Slow: the writer thread runs at the lowest priority, so that it is hardly ever done with a
//! write. A scope for which the ring has no room is not counted; it comes again.

#![allow(unsafe_code)] // mmap

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hairline::{Flow, Session, trace_instant, trace_scope};
use hairline_tests::mortal::{COUNTERS_LEN, SLOT};

/// The counters, mapped.
fn counters(path: &str) -> &'static [AtomicU64] {
    let file = File::options().read(true).write(true).open(path).expect("the counters");
    // SAFETY: a new shared mapping of a file that is `COUNTERS_LEN` long and that nobody makes shorter; never
    // unmapped.
    unsafe {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let p = libc::mmap(std::ptr::null_mut(), COUNTERS_LEN, prot, flags, file.as_raw_fd(), 0);
        assert_ne!(p, libc::MAP_FAILED);
        std::slice::from_raw_parts(p.cast::<AtomicU64>(), COUNTERS_LEN / 8)
    }
}

/// Leaves the writer thread what the recording ones leave of the processors.
fn slow_down_the_writer() {
    for task in std::fs::read_dir("/proc/self/task").expect("threads").flatten() {
        let is_writer =
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|c| c.trim() == "hairline-writer");
        if let (true, Ok(tid)) = (is_writer, task.file_name().to_string_lossy().parse::<libc::id_t>()) {
            // SAFETY: takes numbers.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, tid, 19) };
        }
    }
}

/// Records without end.
fn record(thread: u64, counter: &AtomicU64, flow: &Flow, moderate: bool, limit: u64) {
    trace_scope!("mortal", "life");
    let mut n = 0_u64;
    while n < limit {
        let scope = hairline::scope!("mortal", "step", n = n, thread = thread);
        let recorded = scope.is_recorded();
        drop(scope);
        if !recorded {
            std::thread::yield_now();
            continue;
        }
        n += 1;
        counter.store(n, Ordering::Release);
        if n.is_multiple_of(1000) {
            trace_instant!("mortal", "mark", flow: flow, text = format!("mark {n}"));
        }
        if moderate && n.is_multiple_of(16) {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    // All that it has to say. Whoever asked for so many waits for the last slot.
    loop {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn main() {
    let arguments: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
        .collect();
    let number = |name: &str| arguments[name].parse::<u64>().expect("a number");
    if arguments.contains_key("hidden") {
        // SAFETY: takes numbers.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
    }
    let counters = counters(&arguments["counters"]);
    let rotate = number("rotate");
    let first = arguments.get("first").map_or(0, |first| first.parse().expect("a number"));
    let builder = Session::builder();
    let builder = match arguments.contains_key("recorder") {
        true => builder.overflow(hairline::Overflow::Overwrite),
        false => builder,
    };
    let builder = if rotate > 0 { builder.rotate(rotate, 0) } else { builder };
    let session = builder
        .output(&arguments["output"])
        .buffer_size(number("buffer"))
        .chunk_size(u32::try_from(number("chunk")).expect("a chunk's size"))
        .heartbeat(Duration::from_millis(10))
        .compress(number("compress") == 1)
        .start()
        .expect("a session");
    if number("slow") == 1 {
        slow_down_the_writer();
    }
    let moderate = arguments["pace"] == "moderate";
    let end = arguments["end"].clone();
    let limit = end.parse().unwrap_or(u64::MAX);
    let flow = Arc::new(Flow::new());
    // The flow begins here: two threads that were the first at the same moment would both begin it.
    trace_instant!("mortal", "begin", flow: &flow);
    for thread in 0..number("threads") {
        let counter = &counters[usize::try_from(thread).expect("small") * SLOT];
        let flow = Arc::clone(&flow);
        std::thread::spawn(move || record(first + thread, counter, &flow, moderate, limit));
    }
    if end == "never" || limit != u64::MAX {
        std::thread::sleep(Duration::from_secs(600));
    }
    // Whoever looks at what is left wants to find something of each thread, however late it came to run.
    let threads = counters.chunks_exact(SLOT).take(usize::try_from(number("threads")).expect("small"));
    for of_thread in threads {
        while of_thread[0].load(Ordering::Acquire) < 1000 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    match end.as_str() {
        "abort" => std::process::abort(),
        // SAFETY: nothing is ever mapped there, so this ends the process, as it is meant to.
        "segv" => unsafe { std::ptr::without_provenance_mut::<u8>(1).write_volatile(1) },
        "exec" => panic!("{}", std::process::Command::new("sleep").arg("600").exec()),
        _ => {}
    }
    drop(session);
}
