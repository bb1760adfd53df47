//! The formats, as arguments name them.

use clap::ValueEnum;
use hairline_convert::Source;

/// A format, by the name that its files have.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Perfetto's own.
    Pftrace,
    /// The Fuchsia trace format.
    Fxt,
    /// Trace Event JSON.
    Json,
}

impl From<Format> for Source {
    fn from(format: Format) -> Self {
        match format {
            Format::Pftrace => Self::TrackEvent,
            Format::Fxt => Self::Fxt,
            Format::Json => Self::Json,
        }
    }
}
