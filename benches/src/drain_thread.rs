//! The costs of the drain thread: CPU time for each kind of output, bytes in a write, wake-ups of an idle
//! session.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use hairline::{Format, MemoryOutput, Overflow, Session, SessionBuilder, trace_scope};

use crate::Outcome;
use crate::machine::{Thread, aside};
use crate::row::{Budget, Row, label};
use crate::timing::Samples;

const SCOPES: u32 = 2_000_000;
/// The bytes of the scopes in the ring: 32 each in both formats.
const BYTES: usize = SCOPES as usize * 32;
/// The ring has room for all scopes, so none is lost if the drain thread starts late.
const RING: u64 = 256 << 20;

/// Measures all of them.
///
/// # Errors
/// If a session cannot be started or stopped, or a file cannot be written.
pub fn rows(rounds: usize) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for format in [Format::Fxt, Format::TrackEvent] {
        rows.extend(drained(format, rounds.min(5))?);
    }
    rows.push(compressed(rounds.min(3))?);
    rows.extend(idle("a session without events", Session::builder().output_writer(io::sink()), 2.0)?);
    let recorder = Session::builder().overflow(Overflow::Overwrite);
    rows.extend(idle("a flight recorder without events", recorder, 10.0)?);
    Ok(rows)
}

/// The work of the drain thread.
struct Drained {
    cpu_ns: u64,
    /// The bytes of the output.
    bytes: u64,
}

impl Drained {
    /// The us of CPU time for each MB from the ring.
    fn us_per_mb(&self, bytes: u64) -> f64 {
        us_per_mb(self.cpu_ns, bytes)
    }
}

fn us_per_mb(cpu_ns: u64, bytes: u64) -> f64 {
    cpu_ns as f64 / 1e3 / (bytes as f64 / 1e6)
}

/// Lets the drain thread drain the records of `event`.
fn drain(builder: SessionBuilder, event: impl Fn(u32)) -> Outcome<Drained> {
    let session = builder.buffer_size(RING).start()?;
    sleep(Duration::from_millis(200)); // the ring's pages are there
    let writer = Thread::drain_thread().ok_or("no drain thread")?;
    let before = writer.cpu_ns();
    (0..SCOPES).for_each(event);
    session.flush()?;
    let cpu_ns = writer.cpu_ns() - before;
    let summary = session.stop()?;
    if summary.lost.total() > 0 {
        eprintln!("drain thread: {} events lost while measuring", summary.lost.total());
    }
    Ok(Drained { cpu_ns, bytes: summary.bytes })
}

fn plain(_: u32) {
    trace_scope!("bench", "scope");
}

/// Records a scope with varying arguments, which a compressor cannot reduce to one repeated pattern.
fn varied(n: u32) {
    let number = i64::from(n.wrapping_mul(0x9e37_79b9) >> 12);
    if n.is_multiple_of(2) {
        trace_scope!("bench", "request", number, text = "sixteen bytes ..");
    } else {
        trace_scope!("bench", "parse", number);
    }
}

/// The us of CPU time for each MB of a thread that does `work` on as many bytes as the scopes have.
fn floor_cpu_per_mb(work: impl FnOnce() -> io::Result<()> + Send) -> Outcome<f64> {
    let cpu = aside(|| -> io::Result<u64> {
        let before = Thread::current().cpu_ns();
        work()?;
        Ok(Thread::current().cpu_ns() - before)
    })?;
    Ok(us_per_mb(cpu, BYTES as u64))
}

/// Measures three outputs: none, memory and a file. The last two stand beside a plain copy and plain writes.
fn drained(format: Format, rounds: usize) -> Outcome<Vec<Row>> {
    let [mut nothing, mut memory, mut file] = [const { Samples::new() }; 3];
    let [mut copies, mut writes, mut sizes] = [const { Samples::new() }; 3];
    let source = vec![1u8; BYTES];
    let builder = || Session::builder().format(format);
    let into = |builder| drain(builder, plain);
    for _ in 0..rounds {
        let calls = Arc::new(AtomicU64::new(0));
        let drained = into(builder().output_writer(Counting(Arc::clone(&calls))))?;
        nothing.push(drained.us_per_mb(drained.bytes));
        sizes.push(drained.bytes as f64 / 1024.0 / calls.load(Ordering::Relaxed) as f64);

        copies.push(floor_cpu_per_mb(|| {
            let mut target = Vec::with_capacity(BYTES);
            source.chunks(1 << 20).for_each(|piece| target.extend_from_slice(piece));
            std::hint::black_box(target);
            Ok(())
        })?);
        let output = MemoryOutput::with_capacity(BYTES + (1 << 20));
        let drained = into(builder().output_memory(&output))?;
        memory.push(drained.us_per_mb(drained.bytes));

        let directory = tempfile::tempdir()?;
        writes.push(floor_cpu_per_mb(|| {
            let mut target = File::create(directory.path().join("floor"))?;
            source.chunks(1 << 20).try_for_each(|piece| target.write_all(piece))
        })?);
        let drained = into(builder().output(directory.path().join("trace")))?;
        file.push(drained.us_per_mb(drained.bytes));
    }
    let row = |what: &str, unit, samples: &Samples, kind, budget| {
        Row::sampled(&format!("{}: drain thread, {what}", label(format)), unit, samples, kind, budget)
    };
    Ok(vec![
        row("into nothing", "us/MB", &nothing, Budget::AtMost, 50.0),
        row("bytes in a write", "KiB", &sizes, Budget::AtLeast, 64.0),
        row("into memory", "us/MB", &memory, Budget::AtMost, 667.0).beside(&copies), // 1.5 GB/s
        row("into a file", "us/MB", &file, Budget::Ratio, 1.5).beside(&writes),
    ])
}

/// Measures a compressed file, with scopes whose arguments vary.
fn compressed(rounds: usize) -> Outcome<Row> {
    let mut file = Samples::new();
    let bytes = drain(Session::builder().output_writer(io::sink()), varied)?.bytes;
    for _ in 0..rounds {
        let directory = tempfile::tempdir()?;
        let builder = Session::builder().output(directory.path().join("trace.pftrace"));
        file.push(drain(builder.compress(true), varied)?.us_per_mb(bytes));
    }
    let name = format!("{}: drain thread, compressed into a file", label(Format::TrackEvent));
    Ok(Row::sampled(&name, "us/MB", &file, Budget::AtMost, 10_000.0)) // 100 MB/s
}

/// An output that counts its writes.
struct Counting(Arc<AtomicU64>);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(parts.iter().map(|part| part.len()).sum())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Measures the wake-ups of the drain thread in a second, and their CPU time.
fn idle(what: &str, builder: SessionBuilder, budget: f64) -> Outcome<Vec<Row>> {
    const SETTLED: Duration = Duration::from_secs(2); // its sleep has grown to the longest
    const WATCHED: Duration = Duration::from_secs(3);
    let session = builder.start()?;
    sleep(SETTLED);
    let writer = Thread::drain_thread().ok_or("no drain thread")?;
    let (sleeps, cpu) = (writer.sleeps(), writer.cpu_ns());
    sleep(WATCHED);
    let per_second = |n: u64| n as f64 / WATCHED.as_secs_f64();
    let (wakes, us) = (per_second(writer.sleeps() - sleeps), per_second(writer.cpu_ns() - cpu) / 1e3);
    session.stop()?;
    Ok(vec![
        Row::figure(&format!("{what}: wake-ups"), "/s", wakes, wakes, Budget::AtMost, budget),
        Row::figure(&format!("{what}: CPU time"), "us/s", us, us, Budget::AtMost, 500.0),
    ])
}
