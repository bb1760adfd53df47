//! The names of log priorities.

use hairline_formats::track_event::Priority;

/// How log messages name their priorities in an argument "level".
pub(super) const LEVELS: [(Priority, &str); 6] = [
    (Priority::Verbose, "trace"),
    (Priority::Debug, "debug"),
    (Priority::Info, "info"),
    (Priority::Warn, "warn"),
    (Priority::Error, "error"),
    (Priority::Fatal, "fatal"),
];
