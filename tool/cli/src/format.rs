//! Trace formats as command line arguments.

use clap::ValueEnum;
use hairline_convert::TraceFormat;

/// A trace format, named after its file extension.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatArgument {
    /// Perfetto's format.
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
