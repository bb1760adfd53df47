//! A program of very many spans of `tracing`, all of them there at once; for the tests of the memory they
//! take.
//!
//! ```text
//! burst none|subscriber|layer SPANS
//! ```
//!
//! Prints `LIVE AFTER`: the bytes of memory that a span takes while all of them are there, and those that are
//! left for each when all are closed. `none` is tracing-subscriber's registry alone.

#![allow(unsafe_code)] // asks the allocator

use hairline::{MemoryOutput, Session};
use tracing_subscriber::prelude::*;

/// The anonymous memory of the process that is there, in bytes, without what the allocator has for later use.
fn resident() -> u64 {
    // SAFETY: the C library's own memory.
    unsafe { libc::malloc_trim(0) };
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let kib = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    kib.and_then(|kib| kib.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).expect("KiB") << 10
}

fn spans(count: u64) -> [u64; 2] {
    let make = |count| -> Vec<_> {
        (0..count).map(|id| tracing::info_span!("request", id, route = "/orders")).collect()
    };
    drop(make(1000)); // what the first spans of a thread need
    let before = resident();
    let all = make(count);
    let own = (count as usize * size_of::<tracing::Span>()) as u64;
    let live = resident().saturating_sub(before + own);
    drop(all);
    let after = resident().saturating_sub(before);
    [live, after].map(|bytes| bytes / count)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count = arguments[2].parse().expect("a number");
    let start = || Session::builder().output_memory(&MemoryOutput::new()).start().expect("a session");
    let (session, [live, after]) = match arguments[1].as_str() {
        "none" => {
            tracing_subscriber::registry().init();
            (None, spans(count))
        }
        "subscriber" => {
            let session = start();
            tracing::subscriber::set_global_default(hairline::Subscriber::new()).expect("the first one");
            (Some(session), spans(count))
        }
        "layer" => {
            let session = start();
            tracing_subscriber::registry().with(hairline::layer()).init();
            (Some(session), spans(count))
        }
        other => panic!("what is {other}?"),
    };
    println!("{live} {after}");
    if let Some(session) = session {
        assert!(session.stop().expect("no error").lost.total() == 0);
    }
}
