//! `hairline merge`

use std::path::PathBuf;

use crate::format::FormatArgument;
use crate::outcome::Outcome;
use crate::transfer::{self, Transfer};

/// Makes one trace of several, whatever their formats.
///
/// Their times must be of one clock, as those of traces of one machine are. A process or thread that several traces have is one in
/// FXT and JSON, where it is known by its number; in a Perfetto trace those of each are kept apart, as intervals and tracks of the
/// program's own always are. Flows go from trace to trace by their numbers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline merge server.pftrace client.fxt -o both.pftrace
  hairline merge run-*.fxt -o run.json.gz")]
pub(crate) struct Arguments {
    /// The traces; - is stdin.
    #[arg(value_name = "TRACE", required = true)]
    inputs: Vec<PathBuf>,
    /// Where to: .pftrace, .fxt or .json, with .gz after it to compress; - is stdout.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The output's format, if its name does not say it.
    #[arg(long, value_name = "FORMAT")]
    to: Option<FormatArgument>,
    /// Fails, and writes nothing, if anything could not be said as it was.
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { inputs, output, to, strict } = arguments;
    transfer::run(&Transfer { inputs, output, from: None, to: *to, strict: *strict })
}
