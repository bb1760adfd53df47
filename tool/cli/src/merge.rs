//! `hairline merge`

use std::path::PathBuf;

use crate::format::FormatArgument;
use crate::opening::Threads;
use crate::outcome::Outcome;
use crate::selection::Selection;
use crate::transfer::{self, Transfer};

/// Merges traces of any format into one.
///
/// Traces of one machine since its last boot have one clock. The times of a trace of another machine, boot or
/// container with a clock of its own are moved by the readings of the clock of the day, which most traces
/// have; stderr says so. Traces that cannot have one clock and have no readings are refused. Processes,
/// threads, async intervals and custom tracks of each input are kept apart, also if two have one id. Flows
/// connect traces by their ids, unless these are small numbers.
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
    /// Keep the times of all traces, even if their clocks differ.
    #[arg(long)]
    as_is: bool,
    #[command(flatten)]
    threads: Threads,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { inputs, output, to, strict, as_is, threads } = arguments;
    transfer::run(&Transfer {
        inputs,
        output,
        opening: (*threads).into(),
        to: *to,
        strict: *strict,
        as_is: *as_is,
        selection: &Selection::default(),
    })
}
