//! A program with the macros in it and no session code, for the tests of what the environment switches on.
//!
//! ```text
//! victim return | steps | for-ever | exit | panic | thread-panic | fork | hold
//! ```
//!
//! Each way of ending comes after ten scopes on the main thread and ten on another; it prints `done` whatever
//! happens to the tracing.

#![allow(unsafe_code)] // fork

use std::time::Duration;

use hairline::sync::Mutex;
use hairline::trace_scope;
use hairline_tests::children;
use hairline_tests::clock::boottime;

fn work() {
    for n in 0..10 {
        trace_scope!("victim", "work", n);
    }
}

fn work_on_two_threads() {
    work();
    let other = std::thread::Builder::new().name("other".to_owned()).spawn(work);
    other.expect("a thread").join().expect("joined");
}

/// Steps on two threads until somebody kills the process, in scopes that never end. Says how far the first
/// one is, and when it was there, once the other has come to its first.
fn record_for_ever() {
    let both = std::sync::Barrier::new(2);
    let steps = |tell: bool| {
        trace_scope!("victim", "life", text = "of the life");
        both.wait();
        for n in 0_u64.. {
            trace_scope!("victim", "step", n);
            if tell && n % 10_000 == 0 {
                println!("{n} {}", boottime());
            }
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| steps(false));
        steps(true);
    });
}

/// A child that records while its parent does.
fn fork_while_recording() {
    std::thread::scope(|threads| {
        threads.spawn(|| (0..200_000).for_each(|_| drop(hairline::scope!("victim", "busy"))));
        for _ in 0..20 {
            // SAFETY: the child calls nothing but this crate's macros, which say that a forked child may, and
            // `_exit`.
            let child = unsafe { children::fork() };
            if child == 0 {
                (0..1000).for_each(|_| drop(hairline::scope!("victim", "of the child")));
                children::exit_at_once(0);
            }
            children::expect_success(child, Duration::from_secs(20));
        }
    });
}

/// Holds a lock for 20 ms. So does a child that has the lock from its parent, and releases it first.
fn hold_and_fork() {
    let mutex = Mutex::named("victim", ());
    let held = mutex.lock();
    std::thread::sleep(Duration::from_millis(20));
    // SAFETY: as above, but for an allocation of this thread alone.
    let child = unsafe { children::fork() };
    drop(held);
    if child == 0 {
        let held = mutex.lock();
        std::thread::sleep(Duration::from_millis(20));
        drop(held);
        std::process::exit(0);
    }
    children::expect_success(child, Duration::from_secs(20));
}

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    work_on_two_threads();
    if way == "steps" {
        for n in 0..50_000 {
            trace_scope!("victim", "step", n);
        }
    }
    if way == "for-ever" {
        record_for_ever();
    }
    if way == "fork" {
        fork_while_recording();
    }
    if way == "hold" {
        hold_and_fork();
    }
    println!("done");
    match way.as_str() {
        "exit" => std::process::exit(7),
        "panic" => panic!("on purpose"),
        "thread-panic" => drop(std::thread::spawn(|| panic!("on purpose")).join()),
        _ => {}
    }
}
