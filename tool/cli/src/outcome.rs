//! The exit code of a command.

use std::process::ExitCode;

/// The exit code of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    #[default]
    Done = 0,
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Alive = 4,
    NotStrict = 5,
    Changed = 6,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome as u8)
    }
}
