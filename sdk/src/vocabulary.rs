//! Words that events are described with, the same with and without the feature `enable`.

/// What a counter's numbers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Nothing in particular.
    #[default]
    None,
    /// Nanoseconds.
    Nanoseconds,
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Whatever this says: `"frames"`, `"requests/s"`.
    Named(&'static str),
}

/// How much a log message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// The finest; "verbose" in Perfetto.
    Trace,
    /// For those who debug.
    Debug,
    /// For those who operate.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
    /// All is over.
    Fatal,
}

impl Level {
    /// The level's name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Fatal => "fatal",
        }
    }
}

/// How the tracks below a track are shown. A hint: the UI may know better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ordering {
    /// As the UI likes.
    #[default]
    Unspecified,
    /// By name.
    Lexicographic,
    /// By the time of their first event.
    Chronological,
    /// By their [`rank`](crate::Track::rank), the smallest first.
    Explicit,
}
