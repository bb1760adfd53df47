//! The costs of scheduling and samples for the program itself: a context switch, and a sample of the stack.
//!
//! Both are the kernel's work in the program's threads, so the threads' CPU time is measured. The session's
//! own thread, which reads the kernel's ring, is not a part of it.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::thread;

use hairline::{Session, SessionBuilder};

use crate::Outcome;
use crate::machine::{aside, pin_to_last_core, thread_cpu_ns};
use crate::row::{Budget, Row};
use crate::timing::{Samples, started};

/// The round trips of a batch. Each is two switches.
const TRIPS: u32 = 20_000;
/// The steps of a batch of samples: some 0.2 s.
const STEPS: u64 = 200_000_000;
/// The usual frequency of samples.
const USUAL: u32 = 997;
/// A frequency at which the samples of a short batch cost more than the batches differ.
const OFTEN: u32 = 4999;

/// Measures all of them. Without a row for what the kernel does not permit.
///
/// # Errors
/// If a session cannot be started or stopped, or a pipe or a thread fails.
pub fn rows(rounds: usize) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    let scheduling = || Session::builder().scheduling(true);
    if let Some((alone, recorded)) = in_turn(rounds, scheduling, switches)? {
        let row = Row::sampled("a context switch, with scheduling", "us", &recorded, Budget::Over, 2.0);
        rows.push(row.beside(&alone));
    }
    if let Some((alone, recorded)) = in_turn(rounds, || Session::builder().sampling(USUAL), spin)? {
        let name = format!("CPU time of a loop, with samples at {USUAL} Hz");
        rows.push(Row::sampled(&name, "ms", &recorded, Budget::Ratio, 1.03).beside(&alone));
    }
    if let Some((alone, recorded)) = in_turn(rounds, || Session::builder().sampling(OFTEN), spin)? {
        let samples = recorded.median() / 1e3 * f64::from(OFTEN);
        let us = |recorded: f64, alone: f64| (recorded - alone) * 1e3 / samples;
        let (min, median) = (us(recorded.min(), alone.min()), us(recorded.median(), alone.median()));
        rows.push(Row::figure("a sample of a stack", "us", min, median, Budget::AtMost, 30.0));
    }
    Ok(rows)
}

/// Runs `work` alone and in a session, in turn, each time on a thread of its own. `None` if the session says
/// that the kernel does not permit what it should record.
fn in_turn(
    rounds: usize,
    builder: impl Fn() -> SessionBuilder,
    work: fn() -> io::Result<f64>,
) -> Outcome<Option<(Samples, Samples)>> {
    let (mut alone, mut recorded) = (Samples::new(), Samples::new());
    for _ in 0..rounds {
        alone.push(aside(work)?);
        let session = started(builder().output_writer(io::sink()).buffer_size(64 << 20))?;
        recorded.push(aside(work)?);
        let summary = session.stop()?;
        if let Some(note) = summary.notes.first() {
            // Where the kernel takes no samples, the threads do: that is measured then.
            let is_measured = note.contains("samples are taken by signals");
            eprintln!("{}{note}", if is_measured { "" } else { "not measured: " });
            if !is_measured {
                return Ok(None);
            }
        }
        if summary.lost.total() > 0 {
            eprintln!("{} records lost while measuring", summary.lost.total());
        }
    }
    Ok(Some((alone, recorded)))
}

/// Lets two threads wake each other by pipes, on one core. Returns the us of a switch.
fn switches() -> io::Result<f64> {
    let (mut here, mut to_here) = io::pipe()?;
    let (mut there, mut to_there) = io::pipe()?;
    pin_to_last_core(); // and so is the thread that this one starts
    let mut byte = [0];
    thread::scope(|threads| {
        let other = threads.spawn(move || -> io::Result<u64> {
            let mut byte = [0];
            for _ in 0..TRIPS {
                there.read_exact(&mut byte)?;
                to_here.write_all(&byte)?;
            }
            Ok(thread_cpu_ns())
        });
        let before = thread_cpu_ns();
        for _ in 0..TRIPS {
            to_there.write_all(&byte)?;
            here.read_exact(&mut byte)?;
        }
        drop(to_there); // if the other thread still waits, it ends with an error
        let mine = thread_cpu_ns() - before;
        let others = other.join().map_err(|_| io::Error::other("a thread panicked"))??;
        Ok((mine + others) as f64 / 1e3 / f64::from(2 * TRIPS))
    })
}

/// Computes as much as each other time, in 20 frames. Returns the ms of CPU time.
fn spin() -> io::Result<f64> {
    pin_to_last_core();
    let before = thread_cpu_ns();
    black_box(deep(20));
    Ok((thread_cpu_ns() - before) as f64 / 1e6)
}

#[inline(never)]
fn deep(frames: u32) -> u64 {
    if frames > 1 {
        return black_box(deep(frames - 1)) + 1; // not a loop
    }
    (0..STEPS).fold(1, |word, step| black_box(word ^ step).wrapping_mul(6_364_136_223_846_793_005))
}
