//! The name of a lock in the trace, and how a thread takes it.

use std::fmt;
use std::panic::Location;

/// A place in the source of the program.
pub(crate) type Place = &'static Location<'static>;

/// The name of a lock.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))] // nothing is recorded
pub(crate) enum Name {
    /// The name that the program gave.
    Given(&'static str),
    /// The place where it was made.
    MadeAt(Place),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(name) => f.write_str(name),
            Self::MadeAt(place) => write!(f, "{}:{}", place.file(), place.line()),
        }
    }
}

/// How a thread takes a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))] // nothing is recorded
pub(crate) enum Kind {
    /// As the only one.
    Alone,
    /// Together with others, who read.
    Shared,
    /// Not at all: it waits for a notification.
    Notified,
    /// The same: the condition did not hold after the last notification.
    NotifiedAgain,
    /// Not at all: it waits for the other threads of a barrier.
    Met,
    /// Not at all: it waits until another thread has initialized something.
    Done,
}
