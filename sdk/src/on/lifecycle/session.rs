//! The handle that a program has of its session.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::builder::SessionBuilder;
use crate::error::Error;
use crate::filter::Filter;
use crate::on::base::this_thread;
use crate::on::callsite::registry;
use crate::on::lifecycle::{entry, inherited, start};
use crate::on::session::current::running_until;
use crate::on::session::requests::PATIENCE;
use crate::on::session::shared::Shared;
use crate::summary::Summary;

/// Recording into one trace, until [`stop`](Session::stop) or drop. A process has one session at a time.
#[derive(Debug)]
#[must_use = "dropping the session stops it"]
pub struct Session {
    shared: Arc<Shared>,
}

impl Session {
    /// A session to be configured.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::new()
    }

    /// The session that this handle stands for: in a forked child with a session of its own that one, not the
    /// parent's.
    fn shared(&self) -> Arc<Shared> {
        let is_parents = !self.shared.is_of_this_process();
        let own = is_parents.then(|| running_until(Instant::now() + PATIENCE)).flatten();
        own.unwrap_or_else(|| Arc::clone(&self.shared))
    }

    /// The same. A forked child that has recorded nothing yet starts its own session first.
    fn started(&self) -> Arc<Shared> {
        if !self.shared.is_of_this_process() && !this_thread::is_barred() {
            let _busy = this_thread::busy(); // finds out whether this is a child that no handler announced
            if inherited::is_pending() {
                entry::start_once();
            }
        }
        self.shared()
    }

    /// Records other categories from now on; see [`SessionBuilder::categories`].
    ///
    /// # Errors
    /// When the filter makes no sense; then nothing changes.
    pub fn set_categories(&self, filter: &str) -> Result<(), Error> {
        let filter = Filter::parse(filter)?;
        let shared = self.started();
        if shared.may_wait() {
            registry::set_filter(shared.epoch(), filter);
        }
        Ok(())
    }

    /// Waits until everything recorded before the call is in the output.
    ///
    /// # Errors
    /// When the output has failed.
    pub fn flush(&self) -> Result<(), Error> {
        self.shared().flush()
    }

    /// Writes the last of what was recorded, as much as the ring holds, to a file of its own, while threads go on recording.
    /// For sessions with [`Overflow::Overwrite`]. Slices that were begun before are there with their begin. Takes some
    /// milliseconds and as much memory as the ring.
    ///
    /// # Errors
    /// When the session does not overwrite, the file cannot be written, or this process is a forked child that does not
    /// trace. A file that was there is replaced when the new one is complete, and otherwise stays.
    pub fn snapshot(&self, path: impl AsRef<Path>) -> Result<Summary, Error> {
        self.started().snapshot(path.as_ref())
    }

    /// Stops recording and waits until the trace is complete.
    ///
    /// # Errors
    /// When the output has failed; the summary is in the error.
    pub fn stop(self) -> Result<Summary, Error> {
        self.shared().stop()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared().stop_or_report();
    }
}

impl SessionBuilder {
    /// Starts recording. Takes some 10 ms, for the clock's calibration.
    ///
    /// # Errors
    /// When a session is running, the output cannot be created, or a setting makes no sense. Nothing has
    /// changed then.
    pub fn start(self) -> Result<Session, Error> {
        Ok(Session { shared: start::start(self.into_config()?)? })
    }
}
