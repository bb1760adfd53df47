//! A program instrumented with the `tracing` crate alone, or with `log`, for the tests of what the
//! environment switches on.
//!
//! ```text
//! spans_victim subscriber | layer  global | scoped | after-another
//! spans_victim subscriber | layer | log  levels
//! spans_victim subscriber | layer  hang
//! spans_victim log
//! ```
//!
//! Its first span is entered by eight threads at once. `scoped`: on one thread, which is all that has the
//! subscriber. `after-another`: likewise, and the span's callsite was known to another subscriber before.
//! `log`: a message, and 20,000 with a target of its own each. `levels`: a span and an event of each level,
//! on threads; or a message of each level. `hang`: ten futures with two polls each, and one that never
//! returns from its second poll.

use std::sync::Barrier;
use std::task::{Context, Poll, Waker};

use tracing::{Dispatch, Instrument};
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

/// A span and an event of each level.
fn spans_of_each_level() {
    macro_rules! of {
        ($level:ident, $target:literal) => {
            tracing::span!(target: $target, tracing::Level::$level, "span").in_scope(
                || tracing::event!(target: $target, tracing::Level::$level, "event"),
            );
        };
    }
    of!(TRACE, "level is trace");
    of!(DEBUG, "level is debug");
    of!(INFO, "level is info");
    of!(WARN, "level is warn");
    of!(ERROR, "level is error");
}

fn messages_of_each_level() {
    hairline::Logger::new().install().expect("the first one");
    for level in log::Level::iter() {
        log::log!(target: "victim", level, "level is {}", level.as_str().to_lowercase());
    }
    println!("done");
}

/// Polls a future twice. The second poll calls `second`.
fn poll_twice(name: u64, second: impl Fn()) {
    let mut polls = 0;
    let future = std::future::poll_fn(|_| {
        polls += 1;
        if polls == 1 {
            return Poll::Pending;
        }
        second();
        Poll::Ready(())
    });
    let mut future = std::pin::pin!(future.instrument(tracing::info_span!("polled", n = name)));
    while future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}

fn hang() {
    (0..10).for_each(|n| poll_twice(n, || ()));
    poll_twice(10, || {
        println!("hangs");
        loop {
            std::thread::park();
        }
    });
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments == ["log"] {
        return messages();
    }
    if arguments == ["log", "levels"] {
        return messages_of_each_level();
    }
    let [listener, way] = arguments.as_slice() else { panic!("spans_victim LISTENER WAY") };
    let mode = if way == "levels" { hairline::Mode::Threads } else { hairline::Mode::Auto };
    let dispatch = || match listener.as_str() {
        "subscriber" => Dispatch::new(hairline::Subscriber::new().mode(mode)),
        _ => Dispatch::new(tracing_subscriber::registry().with(hairline::layer().mode(mode))),
    };
    let on_one_thread = || tracing::dispatcher::with_default(&dispatch(), || (0..THREADS).for_each(first));
    match way.as_str() {
        "global" => {
            tracing::dispatcher::set_global_default(dispatch()).expect("the first one");
            all_at_once();
        }
        "levels" => tracing::dispatcher::with_default(&dispatch(), spans_of_each_level),
        "hang" => tracing::dispatcher::with_default(&dispatch(), hang),
        "scoped" => on_one_thread(),
        _ => {
            let another = Dispatch::new(tracing_subscriber::registry());
            tracing::dispatcher::with_default(&another, || first(0));
            on_one_thread();
        }
    }
    println!("done");
}
