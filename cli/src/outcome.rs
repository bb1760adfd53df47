//! How a command ended.

use std::process::ExitCode;

/// What the shell is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    #[default]
    Done = 0,
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Alive = 4,
    NotStrict = 5,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome as u8)
    }
}
