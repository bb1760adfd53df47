//! The recorder thread of a flight recorder: a session whose ring overwrites its oldest chunks, and that
//! writes snapshots on request.
//!
//! ```text
//! threads ──> ring (the last N MiB, always) ──> Window ──> snapshot(path): head, pieces, tail: a whole trace
//!                                                 ^
//!             recorder thread: trigger!, slow slices, the session's end
//! ```
//!
//! No thread drains the ring, so the recorder thread sleeps nearly always.

#![allow(unsafe_code)] // closes the region

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hairline_shm::LossReason;

use crate::on::base::hooks;
use crate::on::base::hooks::Sampled;
use crate::on::session::current;
use crate::on::session::destination::Destination;
use crate::on::session::end::End;
use crate::on::session::flight_recorder::FlightRecorder;
use crate::on::session::recall::Recaller;
use crate::on::session::shared::Shared;
use crate::on::session::trigger;
use crate::on::session::upkeep::Upkeep;

/// The longest sleep of the recorder thread, and so the longest delay of a trigger from a signal handler.
const TICK: Duration = Duration::from_millis(200);

/// Runs the recorder thread until the session ends. Only the caller's own `Write` implementation can panic
/// here; the panic becomes an error of the output.
pub(crate) fn run(shared: &Arc<Shared>, destination: Destination, upkeep: Upkeep) {
    let life = std::panic::AssertUnwindSafe(|| match shared.recorder() {
        Some(recorder) => RecorderThread::new(shared, recorder, destination, upkeep).live(),
        None => Ok(End::default()),
    });
    let end = std::panic::catch_unwind(life).unwrap_or_else(|_| Err(io::Error::other("the output panicked")));
    shared.deactivate();
    drop(shared.scheduling.close());
    let stacks_note = shared.sampling.close().and_then(|sampling| sampling.note());
    stacks_note.into_iter().for_each(|note| _ = shared.stacks_note.set(note));
    let heap_note = shared.heap_profile.close().and_then(|profile| profile.note());
    heap_note.into_iter().for_each(|note| _ = shared.heap_note.set(note));
    drop(shared.hardware.close());
    match shared.recorder() {
        Some(recorder) => recorder.close(shared.region()),
        // SAFETY: this is the session's only thread, and it has no drain.
        None => unsafe { shared.region().close() },
    }
    drop((shared.sampling.close(), shared.heap_profile.close())); // a snapshot has put them back meanwhile
    let end = end.unwrap_or_else(|e| {
        shared.requests.set_error(&Arc::new(e));
        End::default()
    });
    shared.requests.set_end(end);
}

/// The state of the recorder thread.
struct RecorderThread<'s> {
    shared: &'s Arc<Shared>,
    recorder: &'s FlightRecorder,
    destination: Destination,
    upkeep: Upkeep,
    recaller: Recaller,
    /// Events that found no free chunk, at the last look.
    refused: u64,
}

impl<'s> RecorderThread<'s> {
    fn new(
        shared: &'s Arc<Shared>,
        recorder: &'s FlightRecorder,
        destination: Destination,
        upkeep: Upkeep,
    ) -> Self {
        let recaller = Recaller::default();
        Self { shared, recorder, destination, upkeep, recaller, refused: 0 }
    }

    fn live(mut self) -> io::Result<End> {
        self.shared.sampling.begin();
        self.shared.heap_profile.begin();
        loop {
            self.shared.drain.clear_wake();
            let stop = self.answer_requests();
            let sampled = if stop { Sampled::AtEnd } else { Sampled::Regularly };
            let next_sample = hooks::sample(self.shared.epoch().get(), sampled);
            if trigger::take() {
                self.destination.write_for_trigger(self.shared, self.recorder);
            }
            if let Some(callsite) = trigger::take_slow() {
                self.destination.write_for_slow(self.shared, self.recorder, callsite);
            }
            let next_read = self.shared.keep(stop).unwrap_or(TICK);
            self.recall_if_refused();
            current::free_retired();
            self.upkeep.refine_clock(self.shared);
            self.shared.region().note_time(self.shared.now());
            if stop {
                return self.destination.write_last(self.shared, self.recorder);
            }
            if !self.upkeep.allocate_ahead(self.shared) {
                let sleep = next_sample.unwrap_or(TICK).min(next_read).min(TICK);
                let upkeep = self.upkeep.longest_sleep().min(self.upkeep.growth_of_window_due_in());
                std::thread::park_timeout(sleep.min(upkeep));
            }
        }
    }

    /// Answers flushes and panics. Returns whether the session is to stop.
    fn answer_requests(&mut self) -> bool {
        let requests = self.shared.requests.pending();
        // The ring has all that was recorded before a flush: nothing remains to be done.
        self.shared.requests.set_flushes_done(requests.flushes_requested);
        if requests.panics_requested != requests.panics_done {
            self.destination.write_for_panic(self.shared, self.recorder);
            self.shared.requests.set_panics_done(requests.panics_requested);
        }
        requests.stop
    }

    /// Recalls chunks if events were dropped since the last call, because threads hold all chunks.
    fn recall_if_refused(&mut self) {
        let region = self.shared.region();
        let before = std::mem::replace(&mut self.refused, region.lost(LossReason::BufferFull));
        if self.refused != before {
            self.recaller.recall_any(self.shared, region.chunk_count() / 2);
        }
    }
}
