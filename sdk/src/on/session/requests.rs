//! What is asked of a session, by whoever has its handle and by the end of the process: how it is asked, and how long the answer is
//! waited for.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::on::base::{files, stderr, this_thread};
use crate::on::callsite::registry;
use crate::on::session::current::running_until;
use crate::on::session::end::{End, Requests};
use crate::on::session::shared::Shared;
use crate::on::session::{current, report};
use crate::summary::Summary;

/// The longest wait for the lock of the running session, which is held for some instructions: only a thread that does not exist any more
/// can make it as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// Stops the running session, if there is one: the end of the process.
pub(crate) fn stop_current() {
    if let Some(shared) = running_until(Instant::now() + PATIENCE) {
        shared.stop_or_report();
    }
}

/// An output that takes nothing for so long does not keep the process from ending.
const STUCK_AFTER: Duration = Duration::from_secs(3);

/// The longest that a panic waits for its snapshot.
const PANIC_WAITS: Duration = Duration::from_secs(5);

impl Shared {
    pub(crate) fn flush(&self) -> Result<(), Error> {
        if !self.may_wait() {
            return Ok(());
        }
        let _busy = this_thread::busy();
        let mut requests = self.requests.lock();
        requests.flushes_asked += 1;
        let mine = requests.flushes_asked;
        self.unpark();
        let requests = self.answered.wait_while(requests, |r| r.flushes_done < mine && r.end.is_none());
        let (error, end) = (requests.error.clone(), requests.end.clone());
        drop(requests);
        match error {
            Some(e) => Err(Error::Write {
                source: copy_of(&e),
                summary: Box::new(self.summary(&end.unwrap_or_default())),
            }),
            None => Ok(()),
        }
    }

    /// The output has failed. Returns whether it is the first time.
    pub(crate) fn set_error(&self, e: &Arc<std::io::Error>) -> bool {
        let mut e = Some(Arc::clone(e));
        let mut requests = self.requests.lock();
        let is_first = requests.error.is_none();
        if is_first {
            requests.error = e.take();
        }
        drop(requests);
        is_first
    }

    /// The session's own thread is done.
    pub(crate) fn set_end(&self, end: End) {
        let mut end = Some(Arc::new(end));
        let mut requests = self.requests.lock();
        if requests.end.is_none() {
            requests.end = end.take();
        }
        requests.flushes_done = requests.flushes_asked;
        drop(requests);
        self.answered.notify_all();
    }

    /// Writes what the ring holds to a file of its own.
    pub(crate) fn snapshot(&self, path: &Path) -> Result<Summary, Error> {
        if !self.is_of_this_process() || this_thread::is_barred() {
            return Err(Error::Forked);
        }
        let recorder = self.recorder.as_ref().ok_or(Error::NotRecording)?;
        let _busy = this_thread::busy();
        let _unharmed = files::WriteSignalsBlocked::new();
        match recorder.write_file(self, path) {
            Ok(end) => Ok(self.summary(&end)),
            Err(source) => Err(Error::Create { path: path.to_owned(), source }),
        }
    }

    /// Asks for a snapshot and waits for it, not for ever: the process may be about to abort.
    pub(crate) fn snapshot_for_panic(&self) {
        if !self.may_wait() || self.recorder.is_none() {
            return;
        }
        let mut requests = self.requests.lock();
        requests.panics_asked += 1;
        let mine = requests.panics_asked;
        self.unpark();
        let unanswered = |r: &mut Requests| r.panics_done < mine && r.end.is_none();
        drop(self.answered.wait_while_for(requests, PANIC_WAITS, unanswered));
    }

    pub(crate) fn stop(&self) -> Result<Summary, Error> {
        if !self.may_wait() {
            return Ok(Summary::default());
        }
        let _busy = this_thread::busy();
        self.ask_to_stop();
        let outcome = self.join();
        current::forget(self.epoch);
        outcome
    }

    fn ask_to_stop(&self) {
        registry::deactivate(self.epoch);
        self.region.end_waits();
        self.requests.lock().stop = true;
        self.unpark();
    }

    /// Waits for the end that was asked for.
    fn join(&self) -> Result<Summary, Error> {
        let writer = self.writer.lock().take();
        if let Some(writer) = writer {
            writer.join();
        }
        // Where two stop at once, one has joined the thread and the other waits here.
        let requests = self.answered.wait_while(self.requests.lock(), |r| r.end.is_none());
        let (error, end) = (requests.error.clone(), requests.end.clone());
        drop(requests);
        let summary = self.summary(&end.unwrap_or_default());
        match error {
            Some(e) => Err(Error::Write { source: copy_of(&e), summary: Box::new(summary) }),
            None => Ok(summary),
        }
    }

    /// For those ends of a session at which nobody asks for the outcome.
    pub(crate) fn stop_or_report(&self) {
        if !self.may_wait() {
            return;
        }
        let _busy = this_thread::busy();
        self.ask_to_stop();
        let outcome = self.ends_while_the_output_moves().then(|| self.join());
        // Of several callers, and after `stop`, only the first one reports the outcome.
        if !current::forget(self.epoch) {
            return;
        }
        match outcome {
            None => stderr::report_stuck_output(self.path.as_deref()),
            Some(Ok(summary)) => report::report(&summary),
            Some(Err(e)) => stderr::report_error(&e),
        }
    }

    /// Grows while the output takes something.
    fn taken_by_output(&self) -> (u64, u32) {
        let recorder = self.recorder.as_ref();
        recorder.map_or_else(|| self.region.taken_by_output(), |recorder| (recorder.written(), 0))
    }

    /// Waits until the session has ended. False: the output has not taken anything for [`STUCK_AFTER`].
    fn ends_while_the_output_moves(&self) -> bool {
        let mut taken = self.taken_by_output();
        loop {
            let requests = self.requests.lock();
            let requests = self.answered.wait_while_for(requests, STUCK_AFTER, |r| r.end.is_none());
            if requests.end.is_some() {
                return true;
            }
            drop(requests);
            let before = std::mem::replace(&mut taken, self.taken_by_output());
            if before == taken {
                return false;
            }
        }
    }
}

/// An error to hand out while the first one is kept.
fn copy_of(e: &std::io::Error) -> std::io::Error {
    e.raw_os_error()
        .map_or_else(|| std::io::Error::new(e.kind(), e.to_string()), std::io::Error::from_raw_os_error)
}
