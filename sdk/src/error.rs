use std::io;
use std::path::PathBuf;

use crate::summary::Summary;

/// Why a session could not start, or what went wrong in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A session is running; a process has one at a time.
    #[error("a tracing session is already running in this process")]
    AlreadyRunning,
    /// Neither the path's extension nor [`format`](crate::SessionBuilder::format) says which format to write.
    #[error("{}: unknown extension; use .pftrace, .perfetto-trace or .fxt, or set the format", path.display())]
    UnknownFormat {
        /// The output's path.
        path: PathBuf,
    },
    /// [`output`](crate::SessionBuilder::output) or one of its siblings was not called.
    #[error("the session has no output")]
    NoOutput,
    /// The output could not be created.
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// The output's path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The output failed while the session ran. What it had taken until then is in it.
    #[error("cannot write the trace: {source}; {} events lost", summary.lost.total())]
    Write {
        /// What the system said.
        source: io::Error,
        /// What was recorded and lost.
        summary: Box<Summary>,
    },
    /// [`snapshot`](crate::Session::snapshot) of a session whose [`Overflow`](crate::Overflow) is not `Overwrite`.
    #[error("no flight recorder: the session does not overwrite")]
    NotRecording,
    /// A category filter that makes no sense.
    #[error("category filter {filter:?}: {what}")]
    Filter {
        /// The text.
        filter: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A buffer or chunk size that makes no sense, or memory that could not be had.
    #[error("buffer: {0}")]
    Buffer(String),
    /// A value that cannot be parsed.
    #[error("{what} {value:?}: {expected}")]
    Value {
        /// What it was given for.
        what: &'static str,
        /// The text.
        value: String,
        /// What would have been understood.
        expected: &'static str,
    },
    /// The writer thread could not be started.
    #[error("cannot start the writer thread: {0}")]
    Thread(io::Error),
    /// This process was forked from a traced one; it does not trace.
    #[error("a process forked from a traced one does not trace")]
    Forked,
}
