//! A real-time thread on the core of the drain thread.

#![allow(unsafe_code)] // scheduling

use std::time::{Duration, Instant};

use hairline::{Overflow, trace_instant, trace_scope};

use crate::common::{StopOnDrop, builder, stopped};

/// For how long the real-time thread records.
const LONG: Duration = Duration::from_secs(1);

/// The kernel's id of the drain thread, as soon as it has its name.
fn drain_thread() -> libc::pid_t {
    let is_it = |task: &std::path::Path| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "hairline-writer")
    };
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten().map(|task| task.path());
        let mut found = tasks.filter(|task| is_it(task));
        if let Some(id) = found.find_map(|task| task.file_name()?.to_str()?.parse().ok()) {
            return id;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The core on which the calling thread runs.
fn core() -> usize {
    // SAFETY: takes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).expect("a core")
}

/// Lets this thread (0 is the calling one) run on one core only.
fn pin(thread: libc::pid_t, core: usize) {
    // SAFETY: an all-zero set is a valid one, and the call reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        assert_eq!(libc::sched_setaffinity(thread, size_of_val(&set), &raw const set), 0, "pinned");
    }
}

/// Gives the calling thread a real-time priority. Returns whether it may have one.
fn become_real_time() -> bool {
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: the call reads the parameters.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

/// A thread that the drain thread cannot interrupt records, and leaves the core for moments only: so the
/// drain thread is interrupted wherever it is. Another thread records beside it. Prints whether the first was
/// real-time, the scopes that were begun, and the events that were lost.
pub(crate) fn record_in_real_time(output: &str) {
    let session = builder(output).overflow(Overflow::Drop).start().expect("a session");
    let core = core();
    pin(drain_thread(), core);
    let (is_real_time, scopes) = std::thread::scope(|threads| {
        let beside = threads.spawn(|| {
            let mut scopes = 0_u64;
            while !stopped() {
                trace_scope!("moments", "beside", n = scopes);
                scopes += 1;
                std::thread::sleep(Duration::from_micros(50));
            }
            scopes
        });
        let real_time = threads.spawn(move || {
            let _stop = StopOnDrop;
            pin(0, core);
            let is_real_time = become_real_time();
            let (began, mut scopes) = (Instant::now(), 0_u64);
            while began.elapsed() < LONG {
                for _ in 0..20 {
                    trace_scope!("moments", "real time", n = scopes);
                    scopes += 1;
                }
                trace_instant!("moments", "pause");
                // From 1 to 64 us.
                std::thread::sleep(Duration::from_micros(1 << (scopes / 20 % 7)));
            }
            (is_real_time, scopes)
        });
        let (is_real_time, of_real_time) = real_time.join().expect("joined");
        (is_real_time, of_real_time + beside.join().expect("joined"))
    });
    let summary = session.stop().expect("no error");
    println!("{} {scopes} {}", u8::from(is_real_time), summary.lost.total());
}
