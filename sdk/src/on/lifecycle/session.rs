//! The program's handle of its session.

use std::path::Path;
use std::sync::Arc;

use crate::builder::SessionBuilder;
use crate::error::Error;
use crate::filter::Filter;
use crate::on::base::this_thread;
use crate::on::callsite::registry;
use crate::on::lifecycle::{entry, inherited, join, listen, start, traced};
use crate::on::session::current;
use crate::on::session::shared::Shared;
use crate::summary::Summary;

/// A session, which records into one trace until [`stop`](Session::stop) or drop. A process has one session
/// at a time.
///
/// ```
/// use hairline::{MemoryOutput, Session, trace_instant, trace_scope};
///
/// let session = Session::builder().output_memory(&MemoryOutput::new()).categories("net").start()?;
/// {
///     trace_scope!("net", "request");
///     trace_instant!("db", "query"); // its category is off
/// }
/// assert_eq!(session.stop()?.records, 2); // the begin and the end of the scope
/// # Ok::<(), hairline::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping the session stops it"]
pub struct Session {
    shared: Arc<Shared>,
}

impl Session {
    /// Returns a builder, with which the program sets the session's options and starts it.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::new()
    }

    /// Returns the session of this handle. In a forked child with a session of its own that is the child's
    /// session, not the parent's.
    fn shared(&self) -> Arc<Shared> {
        let is_parents = !self.shared.is_of_this_process();
        let own = is_parents.then(current::running).flatten();
        own.unwrap_or_else(|| Arc::clone(&self.shared))
    }

    /// Like [`shared`](Self::shared), and starts the own session of a forked child that has recorded nothing
    /// yet.
    fn started(&self) -> Arc<Shared> {
        if !self.shared.is_of_this_process() && !this_thread::is_barred() {
            let _busy = this_thread::busy(); // a forked child that no handler announced detects the fork here
            if inherited::is_pending() {
                entry::start_once();
            }
        }
        self.shared()
    }

    /// Changes the categories that the session records; see [`SessionBuilder::categories`].
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// let session = Session::builder().output_memory(&MemoryOutput::new()).categories("net").start()?;
    /// session.set_categories("net,db")?; // from now on
    /// # session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the filter cannot be parsed. The session's categories stay as they are.
    pub fn set_categories(&self, filter: &str) -> Result<(), Error> {
        let filter = Filter::parse(filter)?;
        let shared = self.started();
        if shared.may_wait() {
            registry::set_filter(shared.epoch(), Some(filter), None);
        }
        Ok(())
    }

    /// Waits until the output has all that was recorded before the call.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session, trace_instant};
    /// let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).start()?;
    /// let before = memory.len();
    /// trace_instant!("net", "retry");
    /// session.flush()?;
    /// assert!(memory.len() > before); // the output has the event
    /// # session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the output has failed.
    pub fn flush(&self) -> Result<(), Error> {
        self.shared().flush()
    }

    /// Writes the present content of the ring to a file, while threads record on. The session needs
    /// [`Overflow::Overwrite`](crate::Overflow::Overwrite). A slice that began before the ring's
    /// oldest record has its begin in the file too. Takes some milliseconds, and as much memory as the ring.
    ///
    /// A file at `path` is replaced when the new file is complete. The file has the session's format, so its
    /// extension is `.fxt` in a session that records FXT, otherwise `.pftrace`.
    ///
    /// ```no_run
    /// # use hairline::{Overflow, Session};
    /// let session = Session::builder().overflow(Overflow::Overwrite).start()?;
    /// // ... something goes wrong
    /// let summary = session.snapshot("last-seconds.pftrace")?;
    /// println!("{} records", summary.records);
    /// # Ok::<(), hairline::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the session does not overwrite, when the extension of `path` names another format than the
    /// session's, when the file cannot be written, or when this process is a forked child that does not
    /// trace. A file at `path` stays as it is.
    pub fn snapshot(&self, path: impl AsRef<Path>) -> Result<Summary, Error> {
        self.started().snapshot(path.as_ref())
    }

    /// Stops recording, and waits until the trace is complete.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session, trace_instant};
    /// let session = Session::builder().output_memory(&MemoryOutput::new()).start()?;
    /// trace_instant!("net", "retry");
    /// let summary = session.stop()?;
    /// assert_eq!((summary.records, summary.lost.total()), (1, 0));
    /// # Ok::<(), hairline::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the output has failed. The error has the summary.
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
    /// Starts recording. Takes less than 1 ms, unless the output's disk is slow.
    ///
    /// If the variable `HAIRLINE` is set, this process has the environment's session, which this call starts
    /// if no event has started it. The call returns a handle of that session. The settings of this builder do
    /// not apply then; a line on stderr names them. [`flush`](Session::flush),
    /// [`snapshot`](Session::snapshot) and [`set_categories`](Session::set_categories) work on the
    /// environment's session, [`stop`](Session::stop) or a drop ends it. A handle that is stopped later
    /// returns the same summary. The same holds while a command (`hairline record -p`) or the tracing service
    /// records this process. After the end of that session, a call starts the program's own. If the
    /// environment's session cannot start, stderr has the reason, and this call starts the program's own.
    ///
    /// # Errors
    /// When a session of the program runs, when the output cannot be created, or when an option has an
    /// invalid value. Nothing has changed then.
    pub fn start(self) -> Result<Session, Error> {
        let changed = self.changed();
        let config = self.into_config()?;
        if let Some(shared) = join::environments_session() {
            join::report(&shared, &changed);
            return Ok(Session { shared });
        }
        listen::go_on_in_child();
        traced::go_on_in_child();
        match start::start(config) {
            Err(Error::AlreadyRunning) => {
                let shared = join::sooner_session().ok_or(Error::AlreadyRunning)?;
                join::report(&shared, &changed);
                Ok(Session { shared })
            }
            started => started.map(|shared| Session { shared }),
        }
    }

    /// Checks the size of the buffer as [`start`](Self::start) does, and starts nothing. For a program that
    /// passes the size on to another one.
    ///
    /// ```
    /// use hairline::Session;
    ///
    /// Session::builder().buffer_size(64 << 10).check_buffer()?;
    /// assert!(Session::builder().buffer_size(63 << 10).check_buffer().is_err());
    /// # Ok::<(), hairline::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Buffer`] if the buffer has no room for four chunks, or for more than 2^24.
    pub fn check_buffer(&self) -> Result<(), Error> {
        crate::on::session::start::check_buffer(&self.config)
    }
}
