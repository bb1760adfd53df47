//! Messages of Hairline on stderr.

use crate::error::Error;
use crate::on::base::platform::process;
use crate::on::base::variables::{one_of, variable};

/// The messages that Hairline writes to stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// None.
    Off,
    /// Errors, by default.
    Error,
    /// Errors, and what a session does.
    Info,
}

/// Reports a snapshot that could not be written.
pub(crate) fn report_failed_snapshot(e: &std::io::Error) {
    write(Level::Error, format_args!("cannot write a snapshot: {e}"));
}

/// Reports an output that the process no longer waits for.
pub(crate) fn report_stuck_output(path: Option<&std::path::Path>) {
    let path = path.unwrap_or("the output".as_ref()).display();
    write(Level::Error, format_args!("{path} is stuck: the trace is not complete; see `hairline recover`"));
}

/// Reports an error.
pub(crate) fn report_error(e: &Error) {
    write(Level::Error, format_args!("{e}"));
}

/// Writes a line to stderr, if `HAIRLINE_LOG` asks for messages of this level.
pub(crate) fn write(level: Level, message: std::fmt::Arguments<'_>) {
    if level <= log_level().unwrap_or(Level::Error) {
        process::write_to_stderr(&line(&message.to_string()));
    }
}

/// Makes a line of a message. A terminal obeys nothing in it: paths may have any character.
fn line(message: &str) -> String {
    let harmless = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    format!("hairline: {}\n", message.chars().map(harmless).collect::<String>())
}

/// Returns the level that `HAIRLINE_LOG` sets.
pub(crate) fn log_level() -> Result<Level, Error> {
    match variable("HAIRLINE_LOG")? {
        None => Ok(Level::Error),
        Some(level) => {
            let known = [("off", Level::Off), ("error", Level::Error), ("info", Level::Info)];
            one_of("HAIRLINE_LOG", level, &known, "use off, error or info")
        }
    }
}
