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

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairline_formats::fxt;
use hairline_shm::{LossReason, Region, Window};

use super::open_slices::{Copied, OpenSlices};
use super::output::{absolute, expand, has_serial};
use super::recall::Recaller;
use super::shared::Shared;
use super::upkeep::Upkeep;
use super::writer::End;
use super::{stream, tail};
use crate::builder::OutputConfig;
use crate::on::clock::Clock;
use crate::on::flow::Flow;
use crate::on::lock::{Condvar, Mutex};
use crate::on::unfinished::Unfinished;
use crate::on::{env, process, registry};
use crate::options::Format;

/// The longest sleep of the recorder's thread, and so how late a trigger from a signal handler may be heard.
const TICK: Duration = Duration::from_millis(200);

/// Set by whoever triggers, cleared by the recorder's thread.
static TRIGGERED: AtomicBool = AtomicBool::new(false);

/// What a session has that overwrites.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// `None` while a snapshot is being written: one at a time.
    window: Mutex<Option<Window>>,
    is_back: Condvar,
    open: OpenSlices,
    /// Bytes that all snapshots have written so far.
    written: AtomicU64,
}

/// The window, for one snapshot. No lock is held meanwhile: the snapshot is written to a disk.
struct TakenWindow<'r> {
    recorder: &'r Recorder,
    window: Option<Window>,
}

impl Drop for TakenWindow<'_> {
    fn drop(&mut self) {
        *self.recorder.window.lock() = self.window.take(); // in the place of `None`
        self.recorder.is_back.notify_all();
    }
}

/// Asks the running flight recorder for a snapshot. Safe in a signal handler: it takes no lock.
pub fn trigger() {
    TRIGGERED.store(true, Ordering::Release);
}

/// From now on a panic asks the running flight recorder for a snapshot, after the hooks that are there have run.
pub(super) fn trigger_on_panic() {
    static IS_HOOKED: AtomicBool = AtomicBool::new(false);
    PANICS.store(true, Ordering::Release);
    // The first event of a process may come while it panics, when the hook cannot be changed.
    if !std::thread::panicking() && !IS_HOOKED.swap(true, Ordering::Relaxed) {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            if PANICS.load(Ordering::Acquire) {
                super::snapshot_for_panic();
            }
        }));
    }
}

/// Whether the running session wants a snapshot of panics.
static PANICS: AtomicBool = AtomicBool::new(false);

impl Recorder {
    pub(super) fn new(region: &Arc<Region>) -> Self {
        let window = Mutex::new(Some(Window::new(Arc::clone(region))));
        Self { window, is_back: Condvar::new(), open: OpenSlices::default(), written: AtomicU64::new(0) }
    }

    /// The slices on tracks that are open.
    pub(crate) fn open(&self) -> &OpenSlices {
        &self.open
    }

    /// Bytes that all snapshots have written so far. Whoever waits for the last one sees by it that the output
    /// moves.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn add_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Waits until no other snapshot is being written.
    fn take_window(&self) -> TakenWindow<'_> {
        let mut window = self.is_back.wait_while(self.window.lock(), |window| window.is_none());
        TakenWindow { recorder: self, window: window.take() }
    }

    /// Writes what the ring holds now as a trace of its own. Other snapshots wait meanwhile, so `out` runs no
    /// code of the program.
    fn write(&self, shared: &Shared, out: &mut dyn Write) -> io::Result<End> {
        let mut taken = self.take_window();
        let Some(window) = &mut taken.window else { return Ok(End::default()) };
        let mut open = Copied::default();
        // Who ends a slice waits for the chunks that are being written, some 10 us each.
        let hold = || {
            let mut copy = Copied::default();
            (self.open.hold(&mut copy), copy)
        };
        window.take_and(hold, |(held, mut copy)| {
            held.copy_to(&mut copy);
            drop(held);
            open = copy;
        })?;
        let written = write_pieces(shared, window, &open, |records| {
            self.add_written(records.len());
            out.write_all(records)
        });
        window.clear();
        written
    }

    /// The session ends: its memory is given back once no snapshot is being written.
    fn close(&self, region: &Region) {
        let _taken = self.take_window();
        // SAFETY: a region that overwrites has no drain.
        unsafe { region.close() };
    }

    /// The same into a file, which is there when it is complete.
    pub(super) fn write_file(&self, shared: &Shared, path: &Path) -> io::Result<End> {
        let unfinished = Unfinished::beside(path)?;
        let mut out = BufWriter::with_capacity(PIECE, unfinished.file());
        let end = self.write(shared, &mut out)?;
        out.flush()?;
        drop(out);
        unfinished.replace(path)?;
        Ok(End { path: Some(path.to_owned()), ..end })
    }
}

/// Finds out now whether a snapshot can be written to `path`.
pub(super) fn probe(path: &Path) -> io::Result<()> {
    Unfinished::beside(path).map(drop)
}

fn write_pieces(
    shared: &Shared,
    window: &Window,
    Copied { bytes: open, count }: &Copied,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<End> {
    let head = stream::head(shared.format(), u128::from_le_bytes(process::random()));
    write(&head)?;
    let mut bytes = (head.len() + open.len()) as u64;
    let mut records_by_sequence = HashMap::new();
    let mut chunks = 0;
    let mut flows = (shared.format() == Format::Fxt).then(fxt::FlowStarts::default);
    if let Some(flows) = &mut flows {
        flows.look(open);
        window.pieces().for_each(|piece| flows.look(piece.bytes));
    }
    let mut put = |records: &[u8]| match &mut flows {
        Some(flows) => flows.mend(records, Flow::is_of_this_process, &mut write),
        None => write(records),
    };
    put(open)?;
    for piece in window.pieces() {
        put(piece.bytes)?;
        bytes += piece.bytes.len() as u64;
        *records_by_sequence.entry(piece.info.sequence).or_insert(0) += u64::from(piece.records);
        chunks += 1;
    }
    let tail = tail::Tail {
        format: shared.format(),
        pid: process::id(),
        process_track: process::track_uuid(),
        thread: process::Thread::current(),
        now: shared.clock.load().now(),
        lost: shared.lost(),
        ring: u64::from(shared.region.chunk_count()) * u64::from(shared.region.chunk_size()),
        written: bytes,
        chunks,
        flushes: 0,
    };
    let tail = tail.bytes();
    write(&tail)?;
    Ok(End {
        records: records_by_sequence.values().sum::<u64>() + count,
        bytes: bytes + tail.len() as u64,
        duration: shared.started.elapsed(),
        records_by_sequence,
        path: None,
        notes: Vec::new(),
    })
}

/// Writes a snapshot to the program's own output.
fn hand_over(recorder: &Recorder, snapshot: &[u8], out: &mut dyn Write) -> io::Result<()> {
    for piece in snapshot.chunks(PIECE) {
        out.write_all(piece)?;
        recorder.add_written(piece.len());
    }
    out.flush()
}

/// The most bytes that are written to a file or to the program's output at once.
const PIECE: usize = 1 << 16;

/// Where snapshots go that nobody gave a path for.
pub(super) struct Destination {
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
    pub(super) fn new(output: OutputConfig, interval: Duration) -> Self {
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
                env::complain_of(&e);
            }
        }
    }
}

/// The whole life of the recorder's thread. A panic can only come from an output that the user gave.
pub(super) fn run(shared: &Arc<Shared>, destination: Destination, clock: Clock) {
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
