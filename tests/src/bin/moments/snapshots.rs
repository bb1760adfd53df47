//! Snapshots of a flight recorder at unusual moments.

#![allow(unsafe_code)] // signals

use std::os::unix::thread::JoinHandleExt;
use std::time::{Duration, Instant};

use hairline::{Overflow, trace_scope};
use hairline_tests::children;

use crate::common::{StopOnDrop, builder, fork, handle, stopped, wait_for, work};

/// A flight recorder's child asks the handle that it has from its parent for a snapshot.
pub(crate) fn snapshot_in_child(output: &str) {
    let extension = output.rsplit('.').next().expect("an extension");
    let session = builder(output).overflow(Overflow::Overwrite).start().expect("a session");
    work(10);
    // A snapshot of the parent's is always under way.
    std::thread::scope(|threads| {
        let _stop = StopOnDrop;
        threads.spawn(|| {
            while !stopped() {
                session.snapshot(format!("of-the-parent.{extension}")).expect("a snapshot");
            }
        });
        for n in 0..20 {
            std::thread::sleep(Duration::from_micros(500 + 137 * n));
            match fork() {
                0 => {
                    trace_scope!("moments", "of the child");
                    work(1);
                    let taken = session.snapshot(format!("of-child-{n}.{extension}"));
                    children::exit_at_once(i32::from(taken.is_err()));
                }
                pid => wait_for(pid),
            }
        }
    });
}

/// Children whose first contact with this crate is a call of `snapshot` on the handle that they have from
/// their parent. `is_busy`: a snapshot of the parent's is always under way on another thread. Prints, for
/// each child, the milliseconds that the call took.
pub(crate) fn snapshot_before_the_first_event(output: &str, is_busy: bool) {
    let extension = output.rsplit('.').next().expect("an extension");
    let session = builder(output).overflow(Overflow::Overwrite).start().expect("a session");
    work(50_000); // so that a snapshot takes some time
    std::thread::scope(|threads| {
        let _stop = StopOnDrop;
        if is_busy {
            threads.spawn(|| {
                while !stopped() {
                    session.snapshot(format!("of-the-parent.{extension}")).expect("a snapshot");
                }
            });
        }
        for n in 0..8 {
            std::thread::sleep(Duration::from_micros(500 + 331 * n));
            match fork() {
                0 => {
                    let began = Instant::now();
                    let _ = session.snapshot(format!("of-child-{n}.{extension}"));
                    println!("{}", began.elapsed().as_millis());
                    drop(hairline::scope!("moments", "of the child"));
                    let taken = session.snapshot(format!("later-{n}.{extension}"));
                    children::exit_at_once(i32::from(taken.is_err()));
                }
                pid => wait_for(pid),
            }
        }
    });
}

extern "C" fn trigger_in_handler(_: libc::c_int) {
    hairline::trigger!();
}

/// Signals that trigger a snapshot, on threads that do nothing but allocate, and have never recorded.
pub(crate) fn trigger_in_signal_handlers(output: &str) {
    let session = builder(output)
        .overflow(Overflow::Overwrite)
        .trigger_interval(Duration::from_millis(1))
        .start()
        .expect("a session");
    work(10);
    handle(libc::SIGUSR1, trigger_in_handler);
    for _ in 0..50 {
        let allocating = std::thread::spawn(|| {
            let mut kept = Vec::new();
            for n in 0..20_000_usize {
                kept.push(vec![0_u8; n % 5000]);
                if kept.len() > 50 {
                    kept.clear();
                }
            }
        });
        while !allocating.is_finished() {
            // SAFETY: the thread is not joined yet.
            unsafe { libc::pthread_kill(allocating.as_pthread_t(), libc::SIGUSR1) };
            std::thread::sleep(Duration::from_micros(100));
        }
        allocating.join().expect("joined");
    }
    drop(session);
}
