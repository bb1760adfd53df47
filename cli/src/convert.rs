//! `hairline convert`

use std::path::PathBuf;

use crate::format::FormatArgument;
use crate::outcome::Outcome;
use crate::transfer::{self, Transfer};

/// Writes a trace in another format: Perfetto's, FXT or Trace Event JSON.
///
/// The input's format is known by its first bytes, compressed with gzip or not; the output's by its name. What the format cannot say is
/// written in its nearest form and counted on stderr. The output appears when it is whole, the input stays as it is. Of an
/// input that ends early all that is whole is converted, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline convert run.fxt run.pftrace
  hairline convert chrome.json.gz chrome.pftrace
  hairline convert run.pftrace - --to json | jq .
  hairline convert --strict run.pftrace run.fxt     fails if FXT has no word for something")]
pub(crate) struct Arguments {
    /// The trace; - is stdin.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to: .pftrace, .fxt or .json, with .gz after it to compress; - is stdout.
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The input's format, if its first bytes are not to be believed.
    #[arg(long, value_name = "FORMAT")]
    from: Option<FormatArgument>,
    /// The output's format, if its name does not say it.
    #[arg(long, value_name = "FORMAT")]
    to: Option<FormatArgument>,
    /// Fails, and writes nothing, if anything could not be said as it was.
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { input, output, from, to, strict } = arguments;
    let inputs = std::slice::from_ref(input);
    transfer::run(&Transfer { inputs, output, from: *from, to: *to, strict: *strict })
}
