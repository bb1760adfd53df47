//! The names of log priorities.

use hairline_formats::track_event::Priority;

/// The values of the argument "level", which holds the priority of a log message.
pub(super) const LEVELS: [(Priority, &str); 6] = [
    (Priority::Verbose, "trace"),
    (Priority::Debug, "debug"),
    (Priority::Info, "info"),
    (Priority::Warn, "warn"),
    (Priority::Error, "error"),
    (Priority::Fatal, "fatal"),
];
