//! `hairline`: works with traces, and looks after what traced processes leave on a machine.

mod convert;
mod input;
mod list;
mod merge;
mod output;
mod recover;
mod text;
mod transfer;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Works with traces: converts and merges them, and recovers those of processes that were killed.
#[derive(Debug, Parser)]
#[command(name = "hairline", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Convert(convert::Arguments),
    Merge(merge::Arguments),
    Recover(recover::Arguments),
    Ls(list::Arguments),
}

/// Every failure is one line on stderr.
const EXIT_CODES: &str = "Exit codes:
  0  done
  1  something could not be read or written; the rest was done
  2  the arguments make no sense
  3  there is no such process or region
  4  the process is alive, or it cannot be told
  5  --strict, and something could not be said as it was";

/// What the shell is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    #[default]
    Done = 0,
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Alive = 4,
    NotStrict = 5,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Ls(arguments) => list::run(&arguments),
    };
    ExitCode::from(outcome as u8)
}
