use std::path::PathBuf;
use std::{fmt, io};

use crate::summary::Summary;

/// Why a session cannot start, or what fails while it runs.
///
/// ```
/// # use hairline::{Error, MemoryOutput, Session};
/// # let memory = MemoryOutput::new();
/// let session = Session::builder().output_memory(&memory).start()?;
/// # if cfg!(feature = "enable") {
/// let second = Session::builder().output_memory(&memory).start();
/// assert!(matches!(second, Err(Error::AlreadyRunning)));
/// assert!(matches!(session.snapshot("now.pftrace"), Err(Error::NotRecording)));
/// # }
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Another session runs. A process has one session at a time.
    AlreadyRunning,
    /// Neither the path's extension nor [`format`](crate::SessionBuilder::format) names the format.
    #[non_exhaustive]
    UnknownFormat {
        /// The path of the output.
        path: PathBuf,
    },
    /// The extension of the path names another format than that of the session.
    #[non_exhaustive]
    WrongExtension {
        /// The path of the output or of the snapshot.
        path: PathBuf,
        /// The name of the session's format.
        format: &'static str,
        /// An extension of that format.
        extension: &'static str,
    },
    /// Neither [`output`](crate::SessionBuilder::output) nor one of its siblings was called.
    NoOutput,
    /// The output cannot be created.
    #[non_exhaustive]
    Create {
        /// The path of the output.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The output failed while the session ran. It has everything that was written before.
    #[non_exhaustive]
    Write {
        /// The system's error.
        source: io::Error,
        /// What the session recorded and lost.
        summary: Box<Summary>,
    },
    /// [`snapshot`](crate::Session::snapshot) was called on a session whose [`Overflow`](crate::Overflow) is
    /// not `Overwrite`.
    NotRecording,
    /// The category filter is malformed.
    #[non_exhaustive]
    Filter {
        /// The text of the filter.
        filter: String,
        /// The error in the text.
        what: &'static str,
    },
    /// A buffer or chunk size is out of range, or its memory cannot be allocated.
    Buffer(Box<dyn std::error::Error + Send + Sync>),
    /// A value cannot be parsed or is out of range.
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
    Thread(io::Error),
    /// This process is a forked child that records nothing.
    Forked,
    /// The process cannot listen for commands: see [`listen`](crate::listen).
    Listen(io::Error),
    /// The process cannot register with Perfetto's tracing service: see
    /// [`SessionBuilder::output_traced`](crate::SessionBuilder::output_traced).
    Traced(io::Error),
    /// No session runs.
    NoSession,
    /// Nothing can record on this platform: it has no threads. The macros do nothing there. The guide lists
    /// the platforms.
    Unsupported,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRunning => f.write_str("a tracing session is already running in this process"),
            Self::UnknownFormat { path } => write!(
                f,
                "{}: unknown extension; use .pftrace, .perfetto-trace or .fxt, or set the format",
                path.display()
            ),
            Self::WrongExtension { path, format, extension } => {
                write!(
                    f,
                    "{}: the session records {format}, and the extension is that of another format; use \
                     {extension}, or set the format of the session",
                    path.display()
                )
            }
            Self::NoOutput => {
                f.write_str("the session has no output; call `output`, `output_memory` or `output_writer`")
            }
            Self::Create { path, source } => write!(f, "cannot create {}: {source}", path.display()),
            Self::Write { source, summary } => {
                write!(f, "cannot write the trace: {source}; {} events lost", summary.lost.total())
            }
            Self::NotRecording => f.write_str(
                "cannot take a snapshot: the session is no flight recorder; start it with \
                 `Overflow::Overwrite`, or from the environment with HAIRLINE_OVERFLOW=overwrite",
            ),
            Self::Filter { filter, what } => write!(f, "category filter {filter:?}: {what}"),
            Self::Buffer(e) => write!(f, "buffer: {e}"),
            Self::Value { what, value, expected } => write!(f, "{what} {value:?}: {expected}"),
            Self::Thread(e) => write!(f, "cannot start the drain thread: {e}"),
            Self::Listen(e) => write!(f, "cannot listen for commands: {e}"),
            Self::Traced(e) => write!(f, "cannot register with the tracing service: {e}"),
            Self::NoSession => f.write_str("no session runs"),
            Self::Forked => f.write_str("a process forked from a traced one does not trace"),
            Self::Unsupported => f.write_str("hairline cannot record on this platform, which has no threads"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Create { source, .. } | Self::Write { source, .. } => Some(source),
            Self::Buffer(e) => Some(&**e),
            Self::Thread(e) | Self::Listen(e) | Self::Traced(e) => Some(e),
            _ => None,
        }
    }
}
