//! A program that panics and records its panics, for the tests of `record_panics`.
//!
//! ```text
//! panics hook FILE       a panic that is caught; before the session the program has set a hook of its own
//! panics replaced FILE   the same, with a hook that is set after the start and calls the one before
//! panics lost FILE       the same, with a hook that is set after the session's start and calls no other
//! panics thread FILE     a panic that ends a thread, with a message made at run time
//! panics argument FILE   a panic in the code of an argument, and one after it
//! panics inside FILE     the same in an event with options, which runs that code while it is recorded
//! panics abort FILE      a panic that aborts the process
//! panics exit FILE       a panic whose hook, which is the program's own, ends the process
//! panics stuck FILE      panics while the output, a pipe, takes no bytes
//! ```
//!
//! Without `HAIRLINE` in the environment the program starts a session with `record_panics`. It prints what
//! its own hook is called with.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::time::Instant;

use hairline::{Argument, Session, trace_instant, trace_scope};

/// An argument whose code panics once it is written.
struct Panics;

impl Argument for Panics {
    type Held<'a> = u64;
    fn hold(&self) -> u64 {
        panic!("in an argument")
    }
}

fn print(panic: &PanicHookInfo<'_>) {
    println!("hook: {}", panic.payload().downcast_ref::<&str>().copied().unwrap_or("?"));
}

fn caught(f: impl FnOnce()) {
    assert!(panic::catch_unwind(AssertUnwindSafe(f)).is_err());
}

extern "C" fn cannot_unwind() {
    trace_scope!("app", "fatal");
    panic!("on purpose");
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [way, file] = arguments.as_slice() else { panic!("panics WAY FILE") };
    match way.as_str() {
        "exit" => panic::set_hook(Box::new(|_| std::process::exit(3))),
        _ => panic::set_hook(Box::new(print)),
    }
    let session = match std::env::var_os("HAIRLINE") {
        Some(_) => None,
        None => Some(Session::builder().output(file).categories("app").record_panics(true).start().unwrap()),
    };
    trace_instant!("app", "begin");
    match way.as_str() {
        "replaced" => {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                println!("later hook");
                before(panic);
            }));
        }
        "lost" => panic::set_hook(Box::new(|_| println!("later hook"))),
        _ => {}
    }
    match way.as_str() {
        "thread" => {
            let worker = std::thread::Builder::new().name("worker".to_owned());
            let number = arguments.len();
            assert!(worker.spawn(move || panic!("number {number}")).unwrap().join().is_err());
        }
        "argument" => {
            caught(|| trace_instant!("app", "never", list = [Panics]));
            caught(|| panic!("on purpose"));
        }
        "inside" => {
            caught(|| trace_instant!("app", "never", list = [Panics], correlation: 7));
            caught(|| panic!("on purpose"));
        }
        "abort" => cannot_unwind(),
        "stuck" => {
            (0..20_000).for_each(|n| trace_instant!("app", "fill", n));
            let from = Instant::now();
            (0..5).for_each(|_| caught(|| panic!("on purpose")));
            println!("{} s", from.elapsed().as_secs());
            hairline_tests::children::exit_at_once(0);
        }
        _ => caught(|| {
            trace_scope!("app", "work");
            panic!("on purpose");
        }),
    }
    if let Some(session) = session {
        println!("{} lost", session.stop().unwrap().lost.reentrant);
    }
}
