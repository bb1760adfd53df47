//! Costs that are paid once or rarely: the start of a session, a program that ends at once, the first event
//! of a thread and of a callsite, the next chunk, the first pass over the ring, an event without room.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use hairline::{Error, Format, Overflow, Session, trace_scope};

use crate::machine::{aside, page_faults, pin_to_last_core, tick_ns, ticks};
use crate::row::{Budget, Row, label};
use crate::timing::{Samples, batch, started};
use crate::{Outcome, lost, made};

/// The argument that makes a process record one scope and end.
pub const SHORT: &str = "--short";

const MIB: u64 = 1 << 20;

/// Bytes of a scope in the ring, in both formats.
const SCOPE: u64 = 32;

/// The ns that new chunks may add to each scope: a twentieth of two clock reads.
const SHARE: f64 = 1.0;

/// Measures all of them.
///
/// # Errors
/// If a session cannot be started or stopped, or a process not.
pub fn rows(rounds: usize) -> Outcome<Vec<Row>> {
    let mut rows = starts(rounds)?;
    rows.push(aside(|| right_after_start(rounds))?);
    for ring in [1, 16, 128, 512] {
        rows.push(short_program(ring, rounds * 4)?);
    }
    for format in [Format::Fxt, Format::TrackEvent] {
        rows.extend(first_hits(format, rounds)?);
        for overflow in [Overflow::Drop, Overflow::Overwrite] {
            rows.extend(aside(|| chunk_switch(format, overflow))?);
        }
        rows.extend(lost::rows(format, rounds)?);
    }
    for (ring, budget) in [(16 * MIB, 1.1), (256 * MIB, 1.5)] {
        rows.extend(aside(|| first_pass(ring, budget, rounds.min(5)))?);
    }
    Ok(rows)
}

/// Measures the start of a session, and the first event of a thread.
fn starts(rounds: usize) -> Result<Vec<Row>, Error> {
    let (mut start_ms, mut first_us) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        let before = Instant::now();
        let session = Session::builder().output_writer(std::io::sink()).start()?;
        start_ms.push(before.elapsed().as_secs_f64() * 1e3);
        for _ in 0..8 {
            first_us.push(aside(|| {
                let before = Instant::now();
                trace_scope!("bench", "first");
                before.elapsed().as_secs_f64() * 1e6
            }));
        }
        session.stop()?;
    }
    Ok(vec![
        Row::sampled("start of a session", "ms", &start_ms, Budget::AtMost, 1.0),
        Row::sampled("first event of a thread", "us", &first_us, Budget::AtMost, 20.0),
    ])
}

/// Measures a scope right after the start of a session, beside two reads of the system's clock.
fn right_after_start(rounds: usize) -> Result<Row, Error> {
    const SCOPES: u32 = 2000; // they take less than the 2 ms before the clock's first refinement
    let (mut floor, mut ns) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        let session = Session::builder().output_writer(std::io::sink()).start()?;
        {
            trace_scope!("bench", "first of the thread");
        }
        ns.push(batch(SCOPES, |_| {
            trace_scope!("bench", "scope");
        }));
        session.stop()?;
        floor.push(batch(SCOPES, |_| {
            black_box((Instant::now(), Instant::now()));
        }));
    }
    let name = "FXT: scope right after a session's start";
    Ok(Row::sampled(name, "ns", &ns, Budget::Ratio, 1.2).beside(&floor))
}

/// The whole of a short program.
pub fn short() {
    trace_scope!("bench", "all there is");
}

/// Measures the time that `HAIRLINE` adds to a program that ends after its first event, with a ring of so
/// many MiB.
fn short_program(ring: u64, rounds: usize) -> Outcome<Row> {
    let folder = tempfile::tempdir()?;
    let run = |trace: Option<&Path>| -> Outcome<f64> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(SHORT).stdin(Stdio::null()).env_remove("HAIRLINE");
        command.env("HAIRLINE_BUFFER", format!("{ring}M")).env("HAIRLINE_LOG", "error");
        if let Some(trace) = trace {
            command.env("HAIRLINE", trace);
        }
        let before = Instant::now();
        let status = command.status()?;
        let ms = before.elapsed().as_secs_f64() * 1e3;
        if status.success() { Ok(ms) } else { Err(format!("{command:?}: {status}").into()) }
    };
    let (mut without, mut with) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        without.push(run(None)?);
        with.push(run(Some(&folder.path().join("short.fxt")))?);
    }
    let name = format!("a program of one scope, ring of {ring} MiB");
    Ok(Row::sampled(&name, "ms", &with, Budget::Over, 1.0).beside(&without))
}

/// Measures the first event of a callsite in the process, and then on another thread, which emits the strings
/// again.
fn first_hits(format: Format, rounds: usize) -> Result<Vec<Row>, Error> {
    const BATCH: usize = 100;
    let builder = Session::builder().output_writer(std::io::sink()).format(format).buffer_size(64 * MIB);
    let session = started(builder)?;
    let callsites = made::callsites(&format!("first hit, {format:?}"), BATCH * rounds * 4);
    let first = || {
        trace_scope!("bench", "the thread's own first");
        let mut us = Samples::default();
        for batch in callsites.chunks(BATCH) {
            let before = Instant::now();
            batch.iter().for_each(|callsite| made::scope(black_box(callsite)));
            us.push(before.elapsed().as_secs_f64() * 1e6 / BATCH as f64);
        }
        us
    };
    let (of_process, of_thread) = (aside(first), aside(first));
    session.stop()?;
    let row = |what: &str, us: &Samples, budget: f64| {
        Row::sampled(&format!("{}: {what}", label(format)), "us", us, Budget::AtMost, budget)
    };
    Ok(vec![
        row("first hit of a callsite, a scope", &of_process, 3.0),
        row("first hit of a callsite on another thread", &of_thread, 1.0),
    ])
}

/// Measures the additional time of a scope that needs a new chunk, and the share of that in each scope. Each
/// scope is timed alone. In each run that is a little longer than a chunk, the slowest scope counts as the
/// one with a new chunk.
fn chunk_switch(format: Format, overflow: Overflow) -> Result<Vec<Row>, Error> {
    const RUNS: usize = 1000;
    let is_recorder = overflow == Overflow::Overwrite;
    let (kind, chunk) = if is_recorder { (", flight recorder", 64 << 10) } else { ("", 16 << 10) };
    let builder =
        Session::builder().format(format).buffer_size(64 * MIB).chunk_size(chunk).overflow(overflow);
    let builder = if is_recorder { builder } else { builder.output_writer(std::io::sink()) };
    let session = started(builder)?;
    pin_to_last_core(); // not the drain thread, which is there already
    let per_chunk = chunk as usize / SCOPE as usize;
    let mut times = vec![0; per_chunk + per_chunk / 8];
    let mut extra_ns = Samples::default();
    for run in 0..RUNS + RUNS / 10 {
        for time in &mut times {
            let before = ticks();
            {
                trace_scope!("bench", "scope");
            }
            *time = ticks() - before;
        }
        times.sort_unstable();
        let (hot, slowest) = (times[times.len() / 2], times[times.len() - 1]);
        if run >= RUNS / 10 {
            extra_ns.push((slowest - hot) as f64 * tick_ns());
        }
    }
    session.stop()?;
    let share = extra_ns.scaled(1.0 / per_chunk as f64);
    let name = |what: &str| format!("{}: {what}{kind}", label(format));
    Ok(vec![
        Row::sampled(&name("next chunk"), "ns", &extra_ns, Budget::AtMost, SHARE * per_chunk as f64),
        Row::sampled(&name("next chunk, a scope's share"), "ns", &share, Budget::AtMost, SHARE),
    ])
}

/// Measures the first pass over a new ring, soon after the start, beside later passes. In a flight recorder,
/// since that uses its whole ring in order. Its pages are made present as in other sessions.
fn first_pass(ring: u64, budget: f64, rounds: usize) -> Result<Vec<Row>, Error> {
    const LATER: usize = 3;
    let scopes = u32::try_from(ring / SCOPE).unwrap_or(u32::MAX);
    let (mut first_ns, mut later_ns, mut faults) =
        (Samples::default(), Samples::default(), Samples::default());
    let pass = || {
        batch(scopes, |_| {
            trace_scope!("bench", "scope");
        })
    };
    for _ in 0..rounds {
        aside(|| {
            let builder =
                Session::builder().overflow(Overflow::Overwrite).format(Format::Fxt).buffer_size(ring);
            let session = started(builder)?;
            pin_to_last_core();
            let before = page_faults();
            first_ns.push(pass());
            faults.push((page_faults() - before) as f64);
            (0..LATER).for_each(|_| later_ns.push(pass()));
            session.stop().map(drop)
        })?;
    }
    let name = |what: &str| format!("FXT: {what}first pass over {} MiB", ring / MIB);
    let few = (ring / 4096 / 100) as f64; // of its pages
    Ok(vec![
        Row::sampled(&name("scope, "), "ns", &first_ns, Budget::Ratio, budget).beside(&later_ns),
        Row::sampled(&name(""), "page faults", &faults, Budget::AtMost, few),
    ])
}
