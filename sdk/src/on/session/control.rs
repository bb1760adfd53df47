//! The calls of the program, and of the end of the process, to a session: flush, snapshot, stop.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hairline_shm::Uncancelled;

use crate::error::Error;
use crate::on::base::{files, stderr, this_thread};
use crate::on::session::current;
use crate::on::session::requests::Outcome;
use crate::on::session::shared::Shared;
use crate::on::session::snapshot::{Name, Occasion};
use crate::summary::Summary;

/// The end of the process waits while the output takes bytes. An output that takes none for this time is
/// stuck.
const STUCK_AFTER: Duration = Duration::from_secs(3);

/// The longest wait of a panic for its snapshot.
const PANIC_PATIENCE: Duration = Duration::from_secs(5);

/// The longest wait of a panic until the output has its instant.
const PANIC_FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// Stops the running session at the end of the process, if a session runs.
pub(crate) fn stop_current() {
    if let Some(shared) = current::running() {
        shared.stop_or_report();
    }
}

impl Shared {
    /// Waits until the output has all that was recorded before the call.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        if !self.may_wait() {
            return Ok(());
        }
        let (_busy, _uncancelled) = (this_thread::busy(), Uncancelled::new());
        let Some(number) = self.requests.request_flush() else { return Ok(()) };
        self.drain.unpark();
        match self.requests.wait_for_flush(number) {
            Some(outcome) if outcome.error.is_some() => self.result(outcome).map(drop),
            _ => Ok(()),
        }
    }

    /// Writes the ring's content to a file at `path`.
    pub(crate) fn snapshot(self: &Arc<Self>, path: &Path) -> Result<Summary, Error> {
        if !self.is_of_this_process() || this_thread::is_barred() {
            return Err(Error::Forked);
        }
        let recorder = self.recorder().ok_or(Error::NotRecording)?;
        let (_busy, _uncancelled) = (this_thread::busy(), Uncancelled::new());
        self.format().check_extension(path)?;
        let _blocked = files::WriteSignalsBlocked::new();
        match recorder.write_file(self, Occasion::Trigger, Name::Given(path)) {
            Ok(written) => Ok(self.summary(&written.end)),
            Err(source) => Err(Error::Create { path: path.to_owned(), source }),
        }
    }

    /// Requests a snapshot, and waits for it for [`PANIC_PATIENCE`] at most: the process may be about to
    /// abort.
    pub(crate) fn snapshot_for_panic(&self) {
        if !self.may_wait() || self.recorder().is_none() {
            return;
        }
        if let Some(number) = self.requests.request_panic() {
            self.drain.unpark();
            self.requests.wait_for_panic(number, PANIC_PATIENCE);
        }
    }

    /// Waits until the output has all that was recorded before the call, for [`PANIC_FLUSH_PATIENCE`] at
    /// most. Does not wait if an earlier panic has waited in vain, and the output is still stuck.
    pub(crate) fn flush_for_panic(&self) {
        // The ring of a flight recorder is not drained.
        if !self.may_wait() || self.recorder().is_some() {
            return;
        }
        if let Some(number) = self.requests.request_flush_unless_stuck() {
            self.drain.unpark();
            self.requests.wait_for_flush_for(number, PANIC_FLUSH_PATIENCE);
        }
    }

    /// Ends the session, and waits for the results.
    pub(crate) fn stop(&self) -> Result<Summary, Error> {
        if !self.may_wait() {
            return Ok(Summary::default());
        }
        let (_busy, _uncancelled) = (this_thread::busy(), Uncancelled::new());
        self.request_stop();
        let Some(result) = self.join() else { return Ok(Summary::default()) };
        if let (true, Ok(summary)) = (current::forget(self.epoch()), &result) {
            self.report(summary);
        }
        result
    }

    /// Ends the session like [`stop`](Self::stop), and gives it up if its output is stuck: `None`.
    pub(crate) fn stop_unless_stuck(&self) -> Option<Result<Summary, Error>> {
        if !self.may_wait() {
            return Some(Ok(Summary::default()));
        }
        let has_ended = {
            let _guards = (this_thread::busy(), Uncancelled::new());
            self.request_stop();
            self.ends_unless_stuck()
        };
        match has_ended {
            Some(false) => {
                current::forget(self.epoch());
                None
            }
            _ => Some(self.stop()),
        }
    }

    /// Ends the session, and reports the results to stderr: nobody else receives them.
    pub(crate) fn stop_or_report(&self) {
        if !self.may_wait() {
            return;
        }
        let (_busy, _uncancelled) = (this_thread::busy(), Uncancelled::new());
        self.request_stop();
        let Some(has_ended) = self.ends_unless_stuck() else { return };
        let result = if has_ended { self.join() } else { None };
        // Of several callers only the first reports the results, and none after `stop`.
        if !current::forget(self.epoch()) {
            return;
        }
        match result {
            None => stderr::report_stuck_output(self.settings.path.as_deref()),
            Some(Ok(summary)) => self.report(&summary),
            Some(Err(e)) => stderr::report_error(&e),
        }
    }

    /// Whether the session has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.requests.wait_for_end_for(Duration::ZERO) == Some(true)
    }

    fn request_stop(&self) {
        self.deactivate();
        self.region().end_waits();
        self.requests.request_stop();
        self.drain.unpark();
    }

    /// Waits for the end of the session's own thread. `None` in a child that a signal handler has forked
    /// meanwhile: the session is the parent's.
    fn join(&self) -> Option<Result<Summary, Error>> {
        let outcome = self.requests.wait_for_end()?;
        if !self.is_of_this_process() {
            return None;
        }
        self.drain.join(); // of two callers, one joins the thread
        Some(self.result(outcome))
    }

    fn result(&self, Outcome { error, end }: Outcome) -> Result<Summary, Error> {
        let summary = self.summary(&end.unwrap_or_default());
        match error {
            Some(e) => Err(Error::Write { source: copy_of(&e), summary: Box::new(summary) }),
            None => Ok(summary),
        }
    }

    /// Waits until the session has ended. Returns false when the output has taken no byte for
    /// [`STUCK_AFTER`]. `None` in a child that a signal handler has forked meanwhile.
    fn ends_unless_stuck(&self) -> Option<bool> {
        let mut taken = self.taken_by_output();
        while !self.requests.wait_for_end_for(STUCK_AFTER)? {
            let before = std::mem::replace(&mut taken, self.taken_by_output());
            if before == taken {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns numbers that change whenever the output takes bytes.
    fn taken_by_output(&self) -> (u64, u32) {
        self.recorder().map_or_else(|| self.region().taken_by_output(), |recorder| (recorder.written(), 0))
    }
}

/// Copies the error: the session keeps the first one.
fn copy_of(e: &io::Error) -> io::Error {
    e.raw_os_error().map_or_else(|| io::Error::new(e.kind(), e.to_string()), io::Error::from_raw_os_error)
}
