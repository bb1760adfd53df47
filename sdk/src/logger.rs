//! A logger for the `log` crate.

use std::fmt;

use log::{LevelFilter, Log, Metadata, Record};

use crate::imp::messages;

/// Records the messages of the `log` crate, as [`trace_log!`](crate::trace_log) records its own. Feature
/// `log`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("hairline-logger-{}.pftrace", std::process::id()));
/// hairline::Logger::new().install()?;
/// let session = hairline::Session::builder().output(&path).categories("net").start()?;
/// log::warn!(target: "net", "no answer after {} attempts", 3);
/// session.stop()?;
/// # let _ = std::fs::remove_file(path);
/// # Ok(())
/// # }
/// ```
///
/// The program needs no session of its own: the first message starts the session that `HAIRLINE` asks for.
///
/// A message becomes an event. Its name is the message, and its category is the target, to which the
/// session's filter applies. It has the message's level, and if the session records source locations, the
/// module, file and line. Key-values are not recorded. While no session runs and no other logger wants
/// messages, they are not even formatted: `log` compares their level with [`log::max_level`].
///
/// Targets are kept for the rest of the process. After the first 16,384 places (a target, a file and a line
/// each), messages of new places have the category `log` and no location.
pub struct Logger {
    other: Option<Box<dyn Log>>,
    level: LevelFilter,
}

impl Logger {
    /// A logger that records messages, and passes them to no other logger.
    #[must_use]
    pub fn new() -> Self {
        Self { other: None, level: LevelFilter::Off }
    }

    /// Passes messages up to `level` to another logger too, also while no session runs: `log` has room for
    /// one logger only.
    ///
    /// ```
    /// use hairline::Logger;
    ///
    /// struct Stderr;
    /// impl log::Log for Stderr {
    ///     fn enabled(&self, _: &log::Metadata<'_>) -> bool {
    ///         true
    ///     }
    ///     fn log(&self, record: &log::Record<'_>) {
    ///         eprintln!("{}", record.args());
    ///     }
    ///     fn flush(&self) {}
    /// }
    ///
    /// Logger::new().beside(Stderr, log::LevelFilter::Warn).install()?;
    /// log::warn!("the disk is nearly full"); // on stderr, and in the trace of a session
    /// assert_eq!(log::max_level(), log::LevelFilter::Warn); // no session runs
    /// # Ok::<(), log::SetLoggerError>(())
    /// ```
    #[must_use]
    pub fn beside(mut self, other: impl Log + 'static, level: LevelFilter) -> Self {
        self.other = Some(Box::new(other));
        self.level = level;
        self
    }

    /// Makes this logger the logger of the process. From now on it sets [`log::max_level`]: to the level of
    /// the session while one runs, but not below the level of the other logger.
    ///
    /// # Errors
    /// If the process has a logger already, for example tracing-log's `LogTracer`, which `init()` of
    /// tracing-subscriber installs. Then nothing changes, and a line on stderr says which logger is there.
    pub fn install(self) -> Result<(), log::SetLoggerError> {
        let level = self.level;
        log::set_boxed_logger(Box::new(self)).inspect_err(|_| messages::report_other_logger())?;
        messages::keep_max_level(level);
        Ok(())
    }

    fn wants(&self, metadata: &Metadata<'_>) -> Option<&dyn Log> {
        self.other.as_deref().filter(|_| metadata.level() <= self.level)
    }
}

impl Default for Logger {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        messages::would_record(metadata) || self.wants(metadata).is_some_and(|other| other.enabled(metadata))
    }

    fn log(&self, record: &Record<'_>) {
        messages::record(record);
        if let Some(other) = self.wants(record.metadata()) {
            other.log(record);
        }
    }

    /// Flushes the other logger. The session flushes the trace.
    fn flush(&self) {
        if let Some(other) = &self.other {
            other.flush();
        }
    }
}
