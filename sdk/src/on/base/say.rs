//! What Hairline says on stderr.

use crate::error::Error;
use crate::on::base::platform::process;
use crate::on::base::variables::{one_of, variable};

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Off,
    Error,
    Info,
}

/// One line on stderr for a snapshot that could not be written.
pub(crate) fn complain_of(e: &std::io::Error) {
    say(Level::Error, format_args!("cannot write a snapshot: {e}"));
}

/// One line on stderr for an output that the process does not wait for any longer.
pub(crate) fn complain_of_stuck(path: Option<&std::path::Path>) {
    let path = path.unwrap_or("the output".as_ref()).display();
    say(Level::Error, format_args!("{path} is stuck: the trace is not complete; see `hairline recover`"));
}

/// One line on stderr for something that went wrong.
pub(crate) fn complain(e: &Error) {
    say(Level::Error, format_args!("{e}"));
}

pub(crate) fn say(level: Level, what: std::fmt::Arguments<'_>) {
    if level <= log_level().unwrap_or(Level::Error) {
        process::write_to_stderr(&format!("hairline: {what}\n"));
    }
}

pub(crate) fn log_level() -> Result<Level, Error> {
    match variable("HAIRLINE_LOG")? {
        None => Ok(Level::Error),
        Some(level) => {
            let known = [("off", Level::Off), ("error", Level::Error), ("info", Level::Info)];
            one_of("HAIRLINE_LOG", level, &known, "use off, error or info")
        }
    }
}
