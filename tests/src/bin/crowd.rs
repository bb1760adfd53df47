//! A program of very many threads, all of them there at once; for the tests of what that costs.
//!
//! ```text
//! crowd THREADS [OUTPUT]
//! ```
//!
//! Prints `THREADS RECORDS LOST KIB`: threads that could be started, the summary's counts, and the anonymous
//! memory of the process beside the threads' own stacks while all of them live and have recorded.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::{Condvar, Mutex, RwLock};
use std::time::Duration;

use hairline::{Overflow, Session, trace_counter, trace_scope};
use hairline_tests::crowd::{STEPS_AFTER, STEPS_BEFORE};

/// KiB of memory in mappings that hold none of these addresses.
fn anonymous_beside(stacks: &[usize]) -> u64 {
    let mut sum = 0;
    let mut is_stack = false;
    let smaps = BufReader::new(File::open("/proc/self/smaps").expect("procfs"));
    // Line by line: its text in one piece would be among what it counts, and is larger than what a session takes.
    for line in smaps.lines().map_while(Result::ok) {
        let first = line.split(' ').next().unwrap_or("");
        if let Some((from, to)) = first.split_once('-') {
            let at = |hex| usize::from_str_radix(hex, 16).expect("an address");
            let next = stacks.partition_point(|stack| *stack < at(from));
            is_stack = stacks.get(next).is_some_and(|stack| *stack < at(to));
        } else if first == "Anonymous:" && !is_stack {
            let size = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
            sum += size.expect("KiB");
        }
    }
    sum
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let wanted: usize = arguments[1].parse().expect("a number");
    let session = arguments.get(2).map(|output| {
        let patient = Overflow::Block(Duration::from_secs(60));
        Session::builder().output(output).overflow(patient).start().expect("a session")
    });
    let (stacks, all_recorded, go_on) = (Mutex::new(Vec::new()), Condvar::new(), RwLock::new(()));
    let hold = go_on.write().expect("no panic");
    let (threads, memory) = std::thread::scope(|scope| {
        let thread = || {
            trace_scope!("crowd", "life");
            for n in 0..STEPS_BEFORE {
                trace_scope!("crowd", "step", n, text = "some text");
                trace_counter!("crowd", "count", n);
            }
            let here = 0_u8;
            stacks.lock().expect("no panic").push(std::ptr::from_ref(&here).addr());
            all_recorded.notify_one();
            drop(go_on.read().expect("no panic"));
            (0..STEPS_AFTER).for_each(|n| drop(hairline::scope!("crowd", "step", n)));
        };
        let spawn = || std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, thread);
        let threads = (0..wanted).map_while(|_| spawn().ok()).count();
        let mut stacks = all_recorded
            .wait_while(stacks.lock().expect("no panic"), |stacks| stacks.len() < threads)
            .expect("no panic");
        stacks.sort_unstable();
        let memory = anonymous_beside(&stacks);
        drop(stacks);
        drop(hold);
        (threads, memory)
    });
    let (records, lost) = session.map_or((0, 0), |session| {
        let summary = session.stop().expect("no error");
        (summary.records, summary.lost.total())
    });
    println!("{threads} {records} {lost} {memory}");
}
