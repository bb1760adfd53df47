use std::io;
use std::path::PathBuf;

use crate::summary::Summary;

/// Why a session cannot start, or what fails while it runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another session runs. A process has one session at a time.
    #[error("a tracing session is already running in this process")]
    AlreadyRunning,
    /// Neither the path's extension nor [`format`](crate::SessionBuilder::format) names the format.
    #[error(
        "{}: unknown extension; use .pftrace, .perfetto-trace or .fxt, or set the format",
        path.display()
    )]
    #[non_exhaustive]
    UnknownFormat {
        /// The path of the output.
        path: PathBuf,
    },
    /// Neither [`output`](crate::SessionBuilder::output) nor one of its siblings was called.
    #[error("the session has no output; call `output`, `output_memory` or `output_writer`")]
    NoOutput,
    /// The output cannot be created.
    #[error("cannot create {}: {source}", path.display())]
    #[non_exhaustive]
    Create {
        /// The path of the output.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The output failed while the session ran. It has everything that was written before.
    #[error("cannot write the trace: {source}; {} events lost", summary.lost.total())]
    #[non_exhaustive]
    Write {
        /// The system's error.
        source: io::Error,
        /// What the session recorded and lost.
        summary: Box<Summary>,
    },
    /// [`snapshot`](crate::Session::snapshot) was called on a session whose [`Overflow`](crate::Overflow) is
    /// not `Overwrite`.
    #[error(
        "cannot take a snapshot: the session is no flight recorder; start it with `Overflow::Overwrite`, or \
         from the environment with HAIRLINE_OVERFLOW=overwrite"
    )]
    NotRecording,
    /// The category filter is malformed.
    #[error("category filter {filter:?}: {what}")]
    #[non_exhaustive]
    Filter {
        /// The text of the filter.
        filter: String,
        /// The error in the text.
        what: &'static str,
    },
    /// A buffer or chunk size is out of range, or its memory cannot be allocated.
    #[error("buffer: {0}")]
    Buffer(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A value cannot be parsed or is out of range.
    #[error("{what} {value:?}: {expected}")]
    #[non_exhaustive]
    Value {
        /// The name of the setting.
        what: &'static str,
        /// The text of the value.
        value: String,
        /// The values that are accepted.
        expected: &'static str,
    },
    /// The drain thread cannot be started.
    #[error("cannot start the drain thread: {0}")]
    Thread(#[source] io::Error),
    /// This process is a forked child that records nothing.
    #[error("a process forked from a traced one does not trace")]
    Forked,
}
