//! A program instrumented with the `tracing` crate alone, or with `log`, for the tests of what the environment switches on.
//!
//! ```text
//! spans_victim subscriber | layer  global | scoped | after-another
//! spans_victim log
//! ```
//!
//! Its first span is entered by eight threads at once. `scoped`: on one thread, which is all that has the subscriber.
//! `after-another`: likewise, and the span's callsite was known to another subscriber before. `log`: a message, and 20,000 with
//! a target of its own each.

use std::sync::Barrier;

use tracing::Dispatch;
use tracing_subscriber::prelude::*;

const THREADS: u64 = 8;

fn first(n: u64) {
    tracing::info_span!(target: "victim", "first", n)
        .in_scope(|| tracing::info!(target: "victim", n, "event"));
}

fn all_at_once() {
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|threads| {
        for n in 0..THREADS {
            let barrier = &barrier;
            threads.spawn(move || {
                barrier.wait();
                first(n);
            });
        }
    });
}

fn messages() {
    hairline::Logger::new().install().expect("the first one");
    log::trace!(target: "victim", "first");
    (0..20_000).for_each(|n| log::info!(target: &format!("made.up.{n}"), "m"));
    println!("done");
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments == ["log"] {
        return messages();
    }
    let [listener, way] = arguments.as_slice() else { panic!("spans_victim LISTENER WAY") };
    let dispatch = || match listener.as_str() {
        "subscriber" => Dispatch::new(hairline::Subscriber::new()),
        _ => Dispatch::new(tracing_subscriber::registry().with(hairline::layer())),
    };
    let on_one_thread = || tracing::dispatcher::with_default(&dispatch(), || (0..THREADS).for_each(first));
    match way.as_str() {
        "global" => {
            tracing::dispatcher::set_global_default(dispatch()).expect("the first one");
            all_at_once();
        }
        "scoped" => on_one_thread(),
        _ => {
            let another = Dispatch::new(tracing_subscriber::registry());
            tracing::dispatcher::with_default(&another, || first(0));
            on_one_thread();
        }
    }
    println!("done");
}
