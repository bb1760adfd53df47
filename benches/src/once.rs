//! What is paid once: starting, a thread's first event, bytes, memory, the writer thread.

use std::time::Instant;

use hairline::{Error, Format, MemoryOutput, Session, trace_scope};

use crate::machine::{resident, writer_thread_cpu_ns};
use crate::row::{Budget, Row};
use crate::timing::Samples;

const MIB: u64 = 1 << 20;

fn label(format: Format) -> &'static str {
    if format == Format::Fxt { "FXT" } else { "TrackEvent" }
}

/// Start of a session, and the first event of a thread.
///
/// # Errors
/// When a session cannot be started or stopped.
pub fn starts(rounds: usize) -> Result<Vec<Row>, Error> {
    let (mut start_ms, mut first_us) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        let before = Instant::now();
        let session = Session::builder().output_writer(std::io::sink()).start()?;
        start_ms.push(before.elapsed().as_secs_f64() * 1e3);
        for _ in 0..8 {
            let first = std::thread::spawn(|| {
                let before = Instant::now();
                trace_scope!("bench", "first");
                before.elapsed().as_secs_f64() * 1e6
            });
            first_us.push(first.join().unwrap_or(f64::NAN));
        }
        session.stop()?;
    }
    Ok(vec![
        Row::figure("start of a session", "ms", start_ms.min(), start_ms.median(), Budget::AtMost, 15.0),
        Row::figure("first event of a thread", "us", first_us.min(), first_us.median(), Budget::AtMost, 20.0),
    ])
}

/// Bytes of a scope in the trace.
///
/// # Errors
/// When a session cannot be started or stopped.
pub fn bytes_per_scope(format: Format) -> Result<Row, Error> {
    const SCOPES: u32 = 100_000;
    let memory = MemoryOutput::new();
    let session = Session::builder().output_memory(&memory).format(format).start()?;
    for _ in 0..SCOPES {
        trace_scope!("bench", "scope");
    }
    session.stop()?;
    let bytes = memory.len() as f64 / f64::from(SCOPES);
    let budget = if format == Format::Fxt { 32.2 } else { 40.0 }; // the stream's head included
    Ok(Row::figure(
        &format!("{}: a scope in the trace", label(format)),
        "B",
        bytes,
        bytes,
        Budget::AtMost,
        budget,
    ))
}

/// Bytes that the writer thread moves into memory in a second of its CPU time.
///
/// # Errors
/// When a session cannot be started or stopped.
pub fn writer_throughput(format: Format, rounds: usize) -> Result<Row, Error> {
    const SCOPES: u32 = 4_000_000;
    let mut slowness = Samples::default();
    for _ in 0..rounds {
        let memory = MemoryOutput::with_capacity(256 << 20);
        let session =
            Session::builder().output_memory(&memory).format(format).buffer_size(256 << 20).start()?;
        std::thread::sleep(std::time::Duration::from_millis(200)); // the ring's pages are there
        let before = writer_thread_cpu_ns().unwrap_or(0);
        for _ in 0..SCOPES {
            trace_scope!("bench", "scope");
        }
        session.flush()?;
        let cpu = writer_thread_cpu_ns().unwrap_or(0).saturating_sub(before);
        let bytes = memory.len();
        session.stop()?;
        slowness.push(cpu as f64 / bytes as f64); // ns a byte
    }
    let name = format!("{}: writer thread into memory", label(format));
    Ok(Row::figure(&name, "GB/s", 1.0 / slowness.median(), 1.0 / slowness.median(), Budget::AtLeast, 1.5))
}

/// Memory of a session beside the ring.
///
/// # Errors
/// When a session cannot be started or stopped.
pub fn memory_beside_the_ring() -> Result<Row, Error> {
    const RING: u64 = 16 * MIB;
    let (all_before, shared_before) = resident();
    let session = Session::builder().output_writer(std::io::sink()).buffer_size(RING).start()?;
    for _ in 0..1_000_000 {
        trace_scope!("bench", "scope");
    }
    session.flush()?;
    let (all, shared) = resident();
    session.stop()?;
    let private = (all - shared) as f64 - (all_before - shared_before) as f64;
    let beyond_ring = (shared - shared_before) as f64 - RING as f64;
    let mib = (private.max(0.0) + beyond_ring.max(0.0)) / MIB as f64;
    Ok(Row::figure("memory beside the ring", "MiB", mib, mib, Budget::AtMost, 2.0))
}
