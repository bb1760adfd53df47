//! A program with the macros in it and a session of its own, for the tests of what the environment changes.
//!
//! ```text
//! both before | after | two | again | dropped | fork  FILE
//! ```
//!
//! `before`: its session starts before its first event. `after`: after ten events. `two`: it starts a second
//! session while the first one runs. `again`: it starts a second one after the first, with `second-` in front
//! of the name of the file. `dropped`: it drops its session. `fork`: a forked child starts a session too.
//! Each way prints the outcomes.

#![allow(unsafe_code)] // fork

use std::time::Duration;

use hairline::{Session, Summary, trace_scope};
use hairline_tests::children;

fn work(name: &'static str) {
    for n in 0..10 {
        trace_scope!("both", "work", n, part = name);
    }
}

fn show(what: &str, outcome: Result<Summary, hairline::Error>) {
    match outcome {
        Ok(summary) => {
            let name = summary.path.as_deref().and_then(|path| path.file_name()).unwrap_or_default();
            println!("{what}: {} records in {}", summary.records, name.display());
        }
        Err(e) => println!("{what}: {e}"),
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [way, file] = arguments.as_slice() else { panic!("both WAY FILE") };
    let start = |file: &str| Session::builder().output(file).categories("both").buffer_size(1 << 20).start();
    if way == "after" {
        work("early");
    }
    let session = start(file).expect("a session");
    work("within");
    session.flush().expect("flushed");
    session.set_categories("*").expect("changed");
    match way.as_str() {
        "two" => match start(&format!("second-{file}")) {
            Ok(second) => {
                show("first", session.stop());
                show("second", second.stop());
            }
            Err(e) => {
                println!("{e}");
                show("first", session.stop());
            }
        },
        "again" => {
            show("first", session.stop());
            let second = start(&format!("second-{file}")).expect("a session");
            work("second");
            show("second", second.stop());
        }
        "fork" => {
            // SAFETY: the child records and prints, which a forked child may, and ends by `_exit`.
            let child = unsafe { children::fork() };
            if child == 0 {
                let own = start(file).expect("a session");
                work("child");
                show("child", own.stop());
                children::exit_at_once(0);
            }
            children::expect_success(child, Duration::from_secs(20));
            show("first", session.stop());
        }
        "dropped" => drop(session),
        _ => show("first", session.stop()),
    }
    println!("done");
}
