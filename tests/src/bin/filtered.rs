//! Records on a thread that may make no system call, but to wake another thread and to wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hairline::{Format, Overflow, Session, trace_async, trace_counter, trace_instant, trace_scope};
use hairline_tests::seccomp;

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let path = std::env::args().nth(1).expect("a path");
    let format = if path.ends_with(".fxt") { Format::Fxt } else { Format::TrackEvent };
    let builder = Session::builder().output(&path).format(format).buffer_size(4 << 20);
    let session = builder.overflow(Overflow::Overwrite).start().expect("a session");
    thread::spawn(|| {
        events(40_000); // callsites and this thread are known, and the whole ring was used
        seccomp::only_wakes_here();
        events(20_000);
        IS_OVER.store(true, Ordering::Release);
        loop {
            thread::park(); // its end would need system calls
        }
    });
    while !IS_OVER.load(Ordering::Acquire) {
        thread::sleep(Duration::from_millis(1));
    }
    session.stop().expect("a trace");
}

fn events(rounds: u32) {
    for n in 0..rounds {
        trace_scope!("t", "scope");
        trace_scope!("t", "arguments", number = n, text = "some text");
        trace_instant!("t", "instant", n);
        trace_counter!("t", "counter", n);
        let _interval = trace_async!("t", "interval");
    }
}
