//! A logger for the `log` crate.

use std::fmt;

use log::{LevelFilter, Log, Metadata, Record};

use crate::imp::messages;

/// Records the messages of the `log` crate, as [`trace_log!`](crate::trace_log) does its own. Feature `log`.
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
/// Or without a session of the program's own: the first message starts the one that `HAIRLINE` asks for.
///
/// A message is an event with the message as its name, its target as the category, which the session's filter goes by, and its
/// level; where the session records source locations, with module, file and line. Key-values are left out. While no session runs
/// and no other logger wants them, messages are not even formatted: `log` compares their level with [`log::max_level`].
///
/// Targets are kept for the rest of the process. In one that makes up ever new ones, messages of what comes after the first
/// 16,384 places (of a target, a file and a line) have the category `log` and no location.
pub struct Logger {
    other: Option<Box<dyn Log>>,
    level: LevelFilter,
}

impl Logger {
    /// A logger that records, and does nothing else.
    #[must_use]
    pub fn new() -> Self {
        Self { other: None, level: LevelFilter::Off }
    }

    /// Hands messages up to `level` to another logger as well, whether a session runs or not: `log` has room for one logger.
    #[must_use]
    pub fn beside(mut self, other: impl Log + 'static, level: LevelFilter) -> Self {
        self.other = Some(Box::new(other));
        self.level = level;
        self
    }

    /// Makes it the process's logger, and from now on sets [`log::max_level`]: to everything while a session runs, else to what
    /// the other logger is to have.
    ///
    /// # Errors
    /// When the process has a logger already; then nothing changes.
    pub fn install(self) -> Result<(), log::SetLoggerError> {
        let level = self.level;
        log::set_boxed_logger(Box::new(self))?;
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

    /// Flushes the other logger. What is in the trace is flushed by the session.
    fn flush(&self) {
        if let Some(other) = &self.other {
            other.flush();
        }
    }
}
