//! `hairline`: looks after what traced processes leave on a machine.

mod list;
mod recover;
mod text;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Recovers the traces of processes that were killed.
#[derive(Debug, Parser)]
#[command(name = "hairline", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Recover(recover::Arguments),
    Ls(list::Arguments),
}

/// Every failure is one line on stderr.
const EXIT_CODES: &str = "Exit codes:
  0  done
  1  something could not be read or written; the rest was done
  2  the arguments make no sense
  3  there is no such process or region
  4  the process is alive, or it cannot be told";

/// What the shell is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    #[default]
    Done = 0,
    Failed = 1,
    NotFound = 3,
    Alive = 4,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Ls(arguments) => list::run(&arguments),
    };
    ExitCode::from(outcome as u8)
}
