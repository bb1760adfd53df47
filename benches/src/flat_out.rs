//! Scopes flat out: two threads that do nothing but record, into a file, while the drain thread writes it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use hairline::{Format, Overflow, Session, trace_scope};

use crate::Outcome;
use crate::machine::clock_read;
use crate::row::{Budget, Row, label};
use crate::timing::{Samples, started};

/// The time of a run, and its threads.
const TIME: Duration = Duration::from_secs(2);
const THREADS: usize = 2;

/// The longest wait of [`Overflow::Block`].
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of a scope, and of a buffer of the floor: as many as a chunk has.
const SCOPE: usize = 32;
const BUFFER: usize = 16 << 10;

/// Calls `work` on each thread until the time is over.
fn on_threads(threads: usize, work: impl Fn(&dyn Fn() -> bool) + Sync) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&|| over.load(Ordering::Relaxed)));
        }
        std::thread::sleep(TIME);
        over.store(true, Ordering::Relaxed);
    });
}

/// Millions of scopes a second in the trace, until the file is complete.
fn recorded(threads: usize, overflow: Overflow) -> Outcome<f64> {
    let folder = tempfile::tempdir()?;
    let builder = Session::builder().format(Format::Fxt).output(folder.path().join("trace.fxt"));
    let session = started(builder.buffer_size(64 << 20).overflow(overflow))?;
    let start = Instant::now();
    on_threads(threads, |is_over| {
        while !is_over() {
            for _ in 0..1000 {
                trace_scope!("bench", "flat out");
            }
        }
    });
    let summary = session.stop()?;
    Ok(summary.records as f64 / 2.0 / start.elapsed().as_secs_f64() / 1e6)
}

/// The same of loops that read the clock twice for each scope's bytes and hand full buffers to a thread that
/// writes them.
fn floor() -> Outcome<f64> {
    let mut file = File::create(tempfile::tempdir()?.path().join("floor"))?;
    let start = Instant::now();
    let (full, to_write) = sync_channel::<(Vec<u8>, SyncSender<Vec<u8>>)>(1 << 12);
    let writer = std::thread::spawn(move || -> io::Result<u64> { write_all(&mut file, &to_write) });
    on_threads(THREADS, move_each(full));
    let bytes = writer.join().map_err(|_| "the writer panicked")??;
    Ok(bytes as f64 / SCOPE as f64 / start.elapsed().as_secs_f64() / 1e6)
}

/// Writes the buffers and gives each back.
fn write_all(file: &mut File, full: &Receiver<(Vec<u8>, SyncSender<Vec<u8>>)>) -> io::Result<u64> {
    let mut bytes = 0;
    for (buffer, back) in full {
        file.write_all(&buffer)?;
        bytes += buffer.len() as u64;
        let _ = back.send(buffer); // its thread may be done
    }
    Ok(bytes)
}

/// The work of a thread of the floor. It has as many buffers as half of the ring has chunks.
fn move_each(full: SyncSender<(Vec<u8>, SyncSender<Vec<u8>>)>) -> impl Fn(&dyn Fn() -> bool) + Sync {
    const BUFFERS: usize = (64 << 20) / THREADS / BUFFER;
    move |is_over| {
        let (back, empty) = sync_channel(BUFFERS);
        (0..BUFFERS).for_each(|_| drop(back.send(vec![0; BUFFER])));
        while !is_over() {
            let Ok(mut buffer) = empty.recv() else { return };
            for (n, scope) in buffer.chunks_exact_mut(SCOPE).enumerate() {
                clock_read();
                clock_read();
                scope.fill(n as u8);
            }
            if full.send((buffer, back.clone())).is_err() {
                return;
            }
        }
    }
}

/// Measures what gets into the trace, for both policies of a full ring.
///
/// # Errors
/// If a session cannot be started or stopped, or a file cannot be written.
pub fn rows(rounds: usize) -> Outcome<Vec<Row>> {
    let [mut floors, mut alone] = [const { Samples::new() }; 2];
    let policies = [("Drop", Overflow::Drop), ("Block", Overflow::Block(PATIENCE))];
    let mut of_policies = [const { Samples::new() }; 2];
    for _ in 0..rounds.min(3) {
        floors.push(floor()?);
        alone.push(recorded(1, Overflow::Drop)?);
        for ((_, policy), samples) in policies.iter().zip(&mut of_policies) {
            samples.push(recorded(THREADS, *policy)?);
        }
    }
    let name = |what: String| format!("{}: scopes flat out into a file, {what}", label(Format::Fxt));
    let mut rows = Vec::new();
    for ((policy, _), samples) in policies.iter().zip(&of_policies) {
        let row =
            |what: String, budget| Row::sampled(&name(what), "M/s", samples, Budget::AtLeastRatio, budget);
        rows.push(row(format!("{THREADS} threads, {policy}"), 0.8).beside(&floors));
        rows.push(row(format!("{THREADS} threads beside one, {policy}"), 1.0).beside(&alone));
    }
    Ok(rows)
}
