//! `hairline merge`

use std::path::PathBuf;

use crate::format::FormatArgument;
use crate::outcome::Outcome;
use crate::transfer::{self, Transfer};

/// Merges traces of any format into one.
///
/// The traces must have one clock, like traces of one machine. A process or thread that occurs in several
/// traces becomes one in FXT and JSON, which identify it by its id. A Perfetto trace keeps those of each
/// input apart, like async intervals and custom tracks in all formats. Flows connect traces by their ids.
///
/// The files of one rotated output are joined with `cat`, the oldest first, not with this command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline merge server.pftrace client.fxt -o both.pftrace
  hairline merge run-*.fxt -o run.json.gz")]
pub(crate) struct Arguments {
    /// The traces; - for stdin, once.
    #[arg(value_name = "TRACE", required = true)]
    inputs: Vec<PathBuf>,
    /// The output: .pftrace, .fxt or .json, with .gz appended for compression; - for stdout.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The output's format, if its name has no known extension.
    #[arg(long, value_name = "FORMAT")]
    to: Option<FormatArgument>,
    /// Fail and write nothing if the format cannot express all data.
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { inputs, output, to, strict } = arguments;
    transfer::run(&Transfer { inputs, output, from: None, to: *to, strict: *strict })
}
