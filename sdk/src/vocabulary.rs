//! Properties of events, the same with and without the feature `enable`.

/// The unit of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// No unit.
    #[default]
    None,
    /// Nanoseconds.
    Nanoseconds,
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// A unit with this name: `"frames"`, `"requests/s"`.
    Named(&'static str),
}

/// The severity of a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// The most detailed level; "verbose" in Perfetto.
    Trace,
    /// For debugging.
    Debug,
    /// For operation.
    Info,
    /// A possible problem.
    Warn,
    /// A failure.
    Error,
    /// A failure that ends the program.
    Fatal,
}

impl Level {
    /// Returns the name of the level, in lower case.
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

/// The order in which the UI shows the tracks below a track. The UI may choose another order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ordering {
    /// The UI's own order.
    #[default]
    Unspecified,
    /// By name.
    Lexicographic,
    /// By the time of their first event.
    Chronological,
    /// By their [`rank`](crate::Track::rank), the smallest first.
    Explicit,
}

/// An id that is common to events that belong together.
#[derive(Clone, Copy, Debug)]
pub enum Correlation<'a> {
    /// A number.
    Id(u64),
    /// A string.
    Name(&'a str),
}

impl From<u64> for Correlation<'_> {
    fn from(id: u64) -> Self {
        Self::Id(id)
    }
}

impl<'a> From<&'a str> for Correlation<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

impl<'a> From<&'a String> for Correlation<'a> {
    fn from(name: &'a String) -> Self {
        Self::Name(name)
    }
}
