//! Why a part could not be added.

use std::io;

use hairline_formats::DecodeError;

/// Why a part could not be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpliceError {
    /// The part ends early, or is no trace of this format, or cannot be read. What stands before that place was added.
    #[error("{0}")]
    Part(#[from] DecodeError),
    /// The output cannot be written.
    #[error("{0}")]
    Output(#[from] io::Error),
}

impl SpliceError {
    /// Whether the part merely ends early, as that of a killed process may.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self, Self::Part(e) if e.is_truncated())
    }
}
