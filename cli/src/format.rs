//! The formats, as arguments name them.

use clap::ValueEnum;
use hairline_convert::TraceFormat;

/// A format, by the name that its files have.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatArgument {
    /// Perfetto's own.
    Pftrace,
    /// The Fuchsia trace format.
    Fxt,
    /// Trace Event JSON.
    Json,
}

impl From<FormatArgument> for TraceFormat {
    fn from(format: FormatArgument) -> Self {
        match format {
            FormatArgument::Pftrace => Self::TrackEvent,
            FormatArgument::Fxt => Self::Fxt,
            FormatArgument::Json => Self::Json,
        }
    }
}
