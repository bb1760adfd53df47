//! `hairline query`: SQL, answered by SQLite.
//!
//! ```text
//! Arguments ── inputs ── load ─┬─ RowSource     a trace, read by hairline-tables
//!                 │       │    └─ parquet       files of `hairline export` (folders)
//!                 │       └─ kept               the columns that the question names
//!              session ─┬─ scan                 them as virtual tables of SQLite
//!                       └─ functions
//!              output, notes                    the answer, and what it lacks
//! ```

mod folders;
mod functions;
mod inputs;
mod kept;
mod load;
mod notes;
mod output;
mod parquet;
mod scan;
mod session;
mod views;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hairline_tables::sql::{Engine, views as ready};

use crate::opening::Opening;
use crate::outcome::Outcome;
use crate::query::load::Loader;
use crate::query::output::Form;
use crate::query::session::{Session, shown};
use crate::text::{complain, failed};

/// Asks questions in SQL about traces, and about folders that `hairline export` wrote.
///
/// The tables are slice, instant, counter, flow, arg, thread, process, sched, sample and trace;
/// docs/guide/schema.md describes their columns. All inputs together are one set of tables. Their columns
/// `date`, `service` and `trace` say where a row comes from. The views slowest, by_name and critical are
/// there, too. The SQL is that of SQLite, with percentile(x, 99), percentile_cont(x, 0.99), percentile_disc,
/// median, least, greatest, floor, ceil and sqrt. It can only read.
///
/// The exit code is 1 if the question failed, or a trace is cut, or a folder lacks a table, so that the
/// answer does not have everything.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct Arguments {
    /// The question, unless --view or --file has it; then traces (.pftrace, .fxt, .json, compressed or not; -
    /// for stdin) and folders of `hairline export`.
    #[arg(value_name = "SQL TRACE|DIR", required_unless_present = "views")]
    all: Vec<OsString>,
    /// Read the question from a file.
    #[arg(short, long, value_name = "FILE", conflicts_with = "view")]
    file: Option<PathBuf>,
    /// Show a view: slowest (the hundred slices that took longest), by_name (count, total, p50, p99 of each
    /// name) or critical (where the slowest spent their time).
    #[arg(long, value_name = "NAME", value_parser = view)]
    view: Option<ready::View>,
    /// Print the tables and views of folders for another engine: duckdb, clickhouse, datafusion or spark.
    #[arg(long, value_name = "ENGINE", value_parser = engine, conflicts_with_all = ["file", "view"])]
    views: Option<Engine>,
    /// Print comma-separated values, with a line of names.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print an array of objects.
    #[arg(long)]
    json: bool,
    /// Print how the question would be answered. Reads no trace.
    #[arg(long)]
    explain: bool,
    /// Print at most so many rows as a table. --csv and --json print all.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rows: usize,
    /// The memory for the columns of the inputs, in MiB. What does not fit goes to a temporary file.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: u32,
    #[command(flatten)]
    opening: Opening,
}

const USAGE: &str = "hairline query [OPTIONS] SQL TRACE|DIR...
       hairline query [OPTIONS] --view NAME TRACE|DIR...
       hairline query [OPTIONS] --file FILE TRACE|DIR...
       hairline query --views ENGINE [DIR...]";

const EXAMPLES: &str = "Examples:
  hairline query 'select name, count(*) from slice group by name' run.pftrace
  hairline query 'select name, percentile(duration, 99) as p99 from slice group by name' run.pftrace
  hairline query --view by_name run.pftrace
  hairline query --csv --file p99.sql fleet/
  hairline query --views duckdb fleet/ > fleet.sql   the tables and views for another engine
  hairline query \"select key, text_value from arg where owner = 7 and of = 'slice'\" run.fxt";

fn view(name: &str) -> Result<ready::View, String> {
    ready::ALL.into_iter().find(|view| view.name == name).ok_or_else(|| {
        let all = ready::ALL.map(|view| view.name).join(", ");
        format!("there is no such view; choose from {all}")
    })
}

fn engine(name: &str) -> Result<Engine, String> {
    Engine::ALL.into_iter().find(|engine| engine.name() == name).ok_or_else(|| {
        let all = Engine::ALL.map(Engine::name).join(", ");
        format!("the engines are {all}")
    })
}

/// SQL may begin with a comment, which must not look like an option.
pub(crate) fn not_an_option(argument: OsString) -> OsString {
    let is_comment = argument.to_str().is_some_and(|text| {
        text.strip_prefix("--").is_some_and(|rest| rest.starts_with(char::is_whitespace))
    });
    if !is_comment {
        return argument;
    }
    let mut line = OsString::from("\n");
    line.push(argument);
    line
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if let Some(engine) = arguments.views {
        return views::run(engine, &arguments.all);
    }
    let (sql, inputs) = match arguments.question() {
        Ok(question) => question,
        Err(why) => {
            complain(why);
            return Outcome::Usage;
        }
    };
    answer(arguments, &sql, &inputs).unwrap_or_else(failed)
}

/// Prints the answer.
fn answer(arguments: &Arguments, sql: &str, paths: &[PathBuf]) -> Result<Outcome, String> {
    let inputs = inputs::open(paths, arguments.opening)?;
    let mut loader = Loader::new(inputs, arguments.memory as usize * (1 << 20));
    let session = Session::new(&loader).map_err(|e| shown(&e))?;
    let answered = if arguments.explain {
        session.explain(sql).and_then(|mut statement| output::print(&mut statement, Form::Plan))
    } else {
        let statement = session.prepare(sql, &mut loader);
        statement.and_then(|mut statement| output::print(&mut statement, arguments.form()))
    };
    loader.inputs.notes.show();
    answered?;
    Ok(if loader.inputs.notes.is_complete() { Outcome::Done } else { Outcome::Failed })
}

impl Arguments {
    fn form(&self) -> Form {
        match (self.csv, self.json) {
            (true, _) => Form::Csv,
            (_, true) => Form::Json,
            _ => Form::Table(self.rows),
        }
    }

    /// The question and the inputs. Fails if there is none.
    fn question(&self) -> Result<(String, Vec<PathBuf>), String> {
        let (sql, inputs) = match (&self.file, &self.view) {
            (Some(file), _) => {
                let sql = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
                (sql, &self.all[..])
            }
            (None, Some(view)) => (view.sqlite(), &self.all[..]),
            (None, None) => {
                let (sql, inputs) = self.all.split_first().ok_or("a question is missing")?;
                let sql = sql.to_str().ok_or("the question is not UTF-8")?;
                if inputs.is_empty() && Path::new(sql).exists() {
                    return Err("a question is missing: hairline query SQL TRACE|DIR...".to_owned());
                }
                (sql.to_owned(), inputs)
            }
        };
        if inputs.is_empty() {
            return Err("name a trace, or a folder of `hairline export`, after the question".to_owned());
        }
        Ok((sql, inputs.iter().map(PathBuf::from).collect()))
    }
}
