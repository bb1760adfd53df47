//! The flight recorder: a session whose ring overwrites its oldest chunks, and what of it is written when somebody asks.
//!
//! ```text
//! threads ──> ring (the last N MiB, always) ──> Window ──> snapshot(path): head, pieces, tail, as one whole trace
//!                                                 ^
//!             recorder thread: trigger!, the session's end
//! ```
//!
//! Nobody drains the ring, so the recorder's thread sleeps nearly always.

#![allow(unsafe_code)] // closes the region

use std::io;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hairline_shm::LossReason;

use crate::builder::OutputConfig;
use crate::on::base::clock::Clock;
use crate::on::base::stderr;
use crate::on::callsite::registry;
use crate::on::session::end::End;
use crate::on::session::output::{absolute, expand, has_serial};
use crate::on::session::recall::Recaller;
use crate::on::session::shared::Shared;
use crate::on::session::snapshot::PIECE;
use crate::on::session::trigger::{PANICS, TRIGGERED};
use crate::on::session::upkeep::Upkeep;
use crate::on::session::window::Recorder;

/// The longest sleep of the recorder's thread, and so how late a trigger from a signal handler may be heard.
const TICK: Duration = Duration::from_millis(200);

/// Writes a snapshot to the program's own output.
fn hand_over(recorder: &Recorder, snapshot: &[u8], out: &mut dyn Write) -> io::Result<()> {
    for piece in snapshot.chunks(PIECE) {
        out.write_all(piece)?;
        recorder.add_written(piece.len());
    }
    out.flush()
}

/// Where snapshots go that nobody gave a path for.
pub(crate) struct Destination {
    output: OutputConfig,
    /// The directory in which the session began: where its path is a relative one, from there.
    directory: PathBuf,
    /// How many were written, and the last of them.
    serial: u64,
    path: Option<PathBuf>,
    /// The shortest time between two that were triggered, and when the last one was.
    interval: Duration,
    last: Option<Instant>,
    /// When a panic has triggered one.
    last_panic: Option<Instant>,
}

impl Destination {
    pub(crate) fn new(output: OutputConfig, interval: Duration) -> Self {
        // Of a session before this one.
        TRIGGERED.store(false, Ordering::Relaxed);
        PANICS.store(false, Ordering::Relaxed);
        let directory = absolute(PathBuf::from("."));
        Self { output, directory, serial: 0, path: None, interval, last: None, last_panic: None }
    }

    fn write(&mut self, shared: &Shared, recorder: &Recorder) -> io::Result<End> {
        let written = match &mut self.output {
            OutputConfig::None => return Ok(self.nothing(shared)),
            OutputConfig::Path(template) => {
                let path = self.directory.join(expand(template, self.serial + 1));
                recorder.write_file(shared, &path)
            }
            OutputConfig::Memory(memory) => {
                let mut bytes = Vec::new();
                let written = recorder.write(shared, &mut bytes);
                memory.append(&[io::IoSlice::new(&bytes)]);
                written
            }
            // Into memory first: no other snapshot waits for the code of the program.
            OutputConfig::Writer(writer) => {
                let mut bytes = Vec::new();
                let written = recorder.write(shared, &mut bytes);
                written.and_then(|end| hand_over(recorder, &bytes, writer.as_mut()).map(|()| end))
            }
        };
        if let Ok(end) = &written {
            self.serial += 1;
            self.path.clone_from(&end.path);
        }
        written
    }

    /// The end of a session at which nothing is written.
    fn nothing(&self, shared: &Shared) -> End {
        End { duration: shared.started.elapsed(), path: self.path.clone(), ..End::default() }
    }

    /// Whether a snapshot at the session's end would take the place of one that was triggered.
    fn is_taken(&self) -> bool {
        self.serial > 0 && !matches!(&self.output, OutputConfig::Path(template) if has_serial(template))
    }

    /// What a trigger asks for. Into a file only: anything else holds one trace.
    fn heed_trigger(&mut self, shared: &Shared, recorder: &Recorder) {
        if self.last.is_none_or(|last| last.elapsed() >= self.interval) {
            self.last = Some(Instant::now());
            self.write_triggered(shared, recorder);
        }
    }

    /// What a panic asks for, whatever else was triggered just before.
    fn heed_panic(&mut self, shared: &Shared, recorder: &Recorder) {
        if self.last_panic.is_none_or(|last| last.elapsed() >= self.interval) {
            self.last_panic = Some(Instant::now());
            self.write_triggered(shared, recorder);
        }
    }

    fn write_triggered(&mut self, shared: &Shared, recorder: &Recorder) {
        if !matches!(self.output, OutputConfig::Path(_)) {
            return;
        }
        if let Err(e) = self.write(shared, recorder) {
            let e = Arc::new(e);
            if shared.set_error(&e) {
                stderr::report_failed_snapshot(&e);
            }
        }
    }
}

/// The whole life of the recorder's thread. A panic can only come from an output that the user gave.
pub(crate) fn run(shared: &Arc<Shared>, destination: Destination, clock: Clock) {
    let life = std::panic::AssertUnwindSafe(|| live(shared, destination, Upkeep::new(clock)));
    let end = std::panic::catch_unwind(life).unwrap_or_else(|_| Err(io::Error::other("the output panicked")));
    registry::deactivate(shared.epoch);
    match shared.recorder() {
        Some(recorder) => recorder.close(&shared.region),
        // SAFETY: this is the session's only thread, and it has no drain.
        None => unsafe { shared.region.close() },
    }
    let end = end.unwrap_or_else(|e| {
        shared.set_error(&Arc::new(e));
        End::default()
    });
    shared.set_end(end);
}

fn live(shared: &Arc<Shared>, mut destination: Destination, mut upkeep: Upkeep) -> io::Result<End> {
    let Some(recorder) = shared.recorder() else { return Ok(End::default()) };
    let (mut refused, mut recaller) = (0, Recaller::default());
    loop {
        shared.heed_wake();
        let (stop, panics, panics_before) = {
            let mut requests = shared.requests.lock();
            requests.flushes_done = requests.flushes_asked; // what was recorded is in the ring
            (requests.stop, requests.panics_asked, requests.panics_done)
        };
        shared.answered.notify_all();
        if panics != panics_before {
            destination.heed_panic(shared, recorder);
            shared.requests.lock().panics_done = panics;
            shared.answered.notify_all();
        }
        if TRIGGERED.swap(false, Ordering::Acquire) {
            destination.heed_trigger(shared, recorder);
        }
        // An event found all chunks in the hands of other threads.
        let refused_before = std::mem::replace(&mut refused, shared.region.lost(LossReason::BufferFull));
        if refused != refused_before {
            recaller.recall(shared, shared.region.chunk_count() / 2, true);
        }
        upkeep.refine_clock(shared);
        shared.region.note_time(shared.clock.load().now());
        if stop {
            break;
        }
        if !upkeep.populate(shared) {
            std::thread::park_timeout(TICK);
        }
    }
    if destination.is_taken() {
        return Ok(destination.nothing(shared));
    }
    destination.write(shared, recorder)
}
