//! `hairline query`: finds the program that answers SQL and starts it, as cargo does with its commands.
//!
//! The engine is a program of its own because it is ten times as large as everything else; see
//! docs/decisions/tool.md.

mod find;
mod views;

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use crate::outcome::Outcome;
use crate::platform;
use crate::text::{complain, failed, put, written};

/// Asks questions in SQL about traces, and about folders that `hairline export` wrote.
///
/// The program `hairline-query` answers them; it is found beside `hairline` or in PATH. All arguments are
/// passed on to it. Without it, this command says how to install it, and which other engine can ask the
/// folders.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, override_usage = USAGE, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The arguments of `hairline-query`: its --help lists them.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    all: Vec<OsString>,
}

const ABOUT: &str = "Asks questions in SQL about traces, and about folders that `hairline export` wrote";

const USAGE: &str = "hairline query [OPTIONS] SQL TRACE|DIR...
       hairline query --views ENGINE [DIR...]";

const EXAMPLES: &str = "Examples:
  hairline query 'select name, count(*) from slice group by name' p.pftrace
  hairline query --view by_name fleet/
  hairline query --csv --file p99.sql fleet/
  hairline query --views duckdb fleet/ > fleet.sql   the tables and views for DuckDB; also: clickhouse,
                                                     datafusion, spark";

/// Why the program is not there.
const HOW: &str = "`hairline-query` is not installed: `cargo install hairline-query` builds it, or \
                   `cargo install --path query` in a checkout of Hairline";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let all = &arguments.all;
    if all.first().is_some_and(|first| first == "--views") {
        return views::run(&all[1..]).into();
    }
    if let Some(program) = find::own() {
        let mut command = Command::new(&program);
        command.args(all);
        return match platform::become_command(&mut command) {
            Ok(code) => code,
            Err(e) => failed(format_args!("{}: {e}", program.display())).into(),
        };
    }
    if all.iter().any(|argument| argument == "--help" || argument == "-h") {
        return written(put(format!("{ABOUT}\n\nUsage: {USAGE}\n\n{EXAMPLES}\n\n{HOW}\n")), "stdout").into();
    }
    without(all).into()
}

/// What this command can do without the program: the tables and views for an engine that is there.
fn without(all: &[OsString]) -> Outcome {
    let folders: Vec<OsString> = all.iter().filter(|path| views::is_exported(path)).cloned().collect();
    complain(HOW);
    let Some((engine, program)) = views::engine_here() else {
        return failed(
            "no other engine was found: duckdb, clickhouse, datafusion-cli and spark-sql can ask the \
             folders of `hairline export` too",
        );
    };
    if folders.is_empty() {
        let name = engine.name();
        return failed(format_args!(
            "`{program}` is here, and can ask the folders of `hairline export`: \
             hairline query --views {name} DIR"
        ));
    }
    complain(format_args!("`{program}` is here: the tables and views for it follow"));
    match views::print(engine, &folders) {
        Outcome::Done => Outcome::Failed, // the question was not answered
        other => other,
    }
}
