//! FXT.

mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

use hairline_formats::track_event::Priority;

/// How log messages name their priorities in an argument "level".
const LEVELS: [(Priority, &str); 6] = [
    (Priority::Verbose, "trace"),
    (Priority::Debug, "debug"),
    (Priority::Info, "info"),
    (Priority::Warn, "warn"),
    (Priority::Error, "error"),
    (Priority::Fatal, "fatal"),
];
