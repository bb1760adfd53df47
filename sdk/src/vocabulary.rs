//! Properties of events, the same with and without the feature `enable`.

/// The unit of a counter.
///
/// ```
/// # use hairline::{Unit, trace_counter};
/// trace_counter!("net", "received", 512, unit: Unit::Bytes);
/// trace_counter!("ui", "frame rate", 59.9, unit: Unit::Named("frames/s"));
/// ```
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
///
/// ```
/// # use hairline::{Level, trace_log};
/// trace_log!(Level::Warn, "net", "attempt {} failed", 3);
/// assert!(Level::Warn > Level::Info);
/// ```
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
///
/// ```
/// use hairline::{Ordering, Track};
///
/// let queues = Track::new("queues").ordering(Ordering::Explicit);
/// let (urgent, rest) = (queues.child("urgent").rank(1), queues.child("rest").rank(2));
/// ```
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
