//! `hairline`: records, converts and inspects traces, and recovers traces of killed processes.
//!
//! This is a library only for the integration tests. [`main`] is its whole interface.

mod aligned;
mod completions;
mod convert;
mod diff;
mod doctor;
mod explain;
mod export;
mod filter;
mod flame;
mod folded;
mod format;
mod heap_sums;
mod incomplete;
mod input;
mod inside;
mod json_version;
mod links;
mod list;
mod listener;
mod merge;
mod opening;
mod otlp;
mod outcome;
mod output;
mod paired;
mod pattern;
mod platform;
mod profiles;
mod query;
mod record;
mod recover;
mod region;
mod remark;
mod selection;
mod session_file;
mod snapshot;
mod start;
mod stats;
mod stretches;
mod table;
mod text;
mod texts;
mod thread_times;
mod top;
mod trace;
mod track_names;
mod transfer;
mod trigger;
mod validate;
mod view;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Records, converts and inspects traces, and recovers traces of killed processes.
#[derive(Debug, Parser)]
#[command(name = "hairline", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Record(record::Arguments),
    Filter(filter::Arguments),
    Start(start::Arguments),
    Stop(start::StopArguments),
    Trigger(trigger::Arguments),
    Snapshot(snapshot::Arguments),
    View(view::Arguments),
    Convert(convert::Arguments),
    Merge(merge::Arguments),
    Stats(stats::Arguments),
    Diff(diff::Arguments),
    Explain(explain::Arguments),
    Export(export::Arguments),
    Query(query::Arguments),
    Flame(flame::Arguments),
    Top(top::Arguments),
    Validate(validate::Arguments),
    Recover(recover::Arguments),
    Ls(list::Arguments),
    Doctor(doctor::Arguments),
    Completions(completions::Arguments),
    Man(completions::ManArguments),
}

/// Every failure is one line on stderr.
const EXIT_CODES: &str = "Exit codes:
  0  done
  1  something could not be read or written; the rest is done
  2  the arguments are invalid
  3  the process or region does not exist
  4  the process is alive, or its state is unknown
  5  --strict, and the format cannot express all data
  6  --fail-if, and a figure of `diff` changed so
`hairline record` has those of its command.";

fn exit_code(error: &clap::Error) -> ExitCode {
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Runs the command in the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let is = |name| std::env::args_os().nth(1).is_some_and(|command| command == name);
    let is_query = is("query");
    let arguments = std::env::args_os();
    let arguments =
        arguments.map(|argument| if is_query { query::not_an_option(argument) } else { argument });
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(e) => {
            let _ = e.print();
            // 2 may be the exit code of the command that is recorded.
            let is_failure = e.use_stderr();
            return if is_failure && is("record") { record::FAILED.into() } else { exit_code(&e) };
        }
    };
    match arguments.command {
        Command::Record(arguments) => record::run(&arguments),
        Command::Filter(arguments) => filter::run(&arguments).into(),
        Command::Start(arguments) => start::run(&arguments).into(),
        Command::Stop(arguments) => start::stop(&arguments).into(),
        Command::Trigger(arguments) => trigger::run(&arguments).into(),
        Command::Snapshot(arguments) => snapshot::run(&arguments).into(),
        Command::View(arguments) => view::run(&arguments).into(),
        Command::Convert(arguments) => convert::run(&arguments).into(),
        Command::Merge(arguments) => merge::run(&arguments).into(),
        Command::Stats(arguments) => stats::run(&arguments).into(),
        Command::Diff(arguments) => diff::run(&arguments).into(),
        Command::Explain(arguments) => explain::run(&arguments).into(),
        Command::Export(arguments) => export::run(&arguments).into(),
        Command::Query(arguments) => query::run(&arguments).into(),
        Command::Flame(arguments) => flame::run(&arguments).into(),
        Command::Top(arguments) => top::run(&arguments).into(),
        Command::Validate(arguments) => validate::run(&arguments).into(),
        Command::Recover(arguments) => recover::run(&arguments).into(),
        Command::Ls(arguments) => list::run(&arguments).into(),
        Command::Doctor(arguments) => doctor::run(&arguments).into(),
        Command::Completions(arguments) => completions::run(&arguments, Arguments::command()).into(),
        Command::Man(arguments) => completions::run_man(&arguments, Arguments::command()).into(),
    }
}
