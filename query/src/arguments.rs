//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};
use hairline_convert::TraceFormat;
use hairline_tables::sql::{Engine, views};

/// Asks questions in SQL about traces, and about folders that `hairline export` wrote.
///
/// The tables are slice, instant, counter, flow, arg, thread, process, sched, sample and trace;
/// docs/guide/schema.md describes their columns. All inputs together are one set of tables. Their columns
/// `date`, `service` and `trace` say where a row comes from. The views slowest, by_name and critical are
/// there, too. The SQL is that of Apache DataFusion. It can only read.
///
/// Exit codes: 0; 1 if the question failed, or a trace is cut, or a folder lacks a table, so that the answer
/// does not have everything; 2 for wrong arguments.
#[derive(Debug, Parser)]
#[command(name = "hairline-query", bin_name = "hairline query", version, after_help = EXAMPLES)]
#[command(override_usage = "hairline query [OPTIONS] SQL TRACE|DIR...
       hairline query [OPTIONS] --view NAME TRACE|DIR...
       hairline query [OPTIONS] --file FILE TRACE|DIR...")]
pub(crate) struct Arguments {
    /// The question, unless --view or --file has it; then traces (.pftrace, .fxt, .json, compressed or not; -
    /// for stdin) and folders of `hairline export`.
    #[arg(value_name = "SQL TRACE|DIR", required = true)]
    all: Vec<OsString>,
    /// Read the question from a file.
    #[arg(short, long, value_name = "FILE", conflicts_with = "view")]
    file: Option<PathBuf>,
    /// Show a view: slowest (the hundred slices that took longest), by_name (count, total, p50, p99 of each
    /// name) or critical (where the slowest spent their time).
    #[arg(long, value_name = "NAME", value_parser = view)]
    view: Option<views::View>,
    /// Print comma-separated values, with a line of names.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print an array of objects.
    #[arg(long)]
    json: bool,
    /// Print how the question would be answered.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print at most so many rows as a table. --csv and --json print all.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rows: usize,
    /// The memory for sorting, grouping and joining, in MiB. What does not fit goes to temporary files.
    /// Default: a quarter of the memory that this program may use, at least 1024.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(128..))]
    pub(crate) memory: Option<u32>,
    /// The traces' format. Default: by their first bytes.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
}

const EXAMPLES: &str = "Examples:
  hairline query 'select name, count(*) from slice group by name' run.pftrace
  hairline query --view by_name run.pftrace
  hairline query --csv --file p99.sql fleet/
  hairline query --views duckdb fleet/ > fleet.sql   the tables and views for another engine; also:
                                                     clickhouse, datafusion, spark
  hairline query \"select key, text_value from arg where owner = 7 and of = 'slice'\" run.fxt";

/// A trace format, named after its file extension.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Perfetto's format.
    Pftrace,
    /// The Fuchsia trace format.
    Fxt,
    /// Trace Event JSON.
    Json,
}

impl From<Format> for TraceFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Pftrace => Self::TrackEvent,
            Format::Fxt => Self::Fxt,
            Format::Json => Self::Json,
        }
    }
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Csv,
    Json,
    /// A table of at most so many rows.
    Table(usize),
}

/// What is asked, and of what.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) sql: String,
    pub(crate) inputs: Vec<PathBuf>,
}

fn view(name: &str) -> Result<views::View, String> {
    views::ALL.into_iter().find(|view| view.name == name).ok_or_else(|| {
        let all = views::ALL.map(|view| view.name).join(", ");
        format!("there is no such view; choose from {all}")
    })
}

impl Arguments {
    /// The arguments of this process. Ends it if they are wrong.
    pub(crate) fn of_command() -> Self {
        Self::parse_from(std::env::args_os().map(not_an_option))
    }

    pub(crate) fn form(&self) -> Form {
        match (self.csv, self.json) {
            (true, _) => Form::Csv,
            (_, true) => Form::Json,
            _ => Form::Table(self.rows),
        }
    }

    /// The question. Fails if there is none, or no input.
    pub(crate) fn question(&self) -> Result<Question, String> {
        let (sql, inputs) = match (&self.file, &self.view) {
            (Some(file), _) => {
                let sql = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
                (sql, &self.all[..])
            }
            (None, Some(view)) => (view.query(Engine::DataFusion), &self.all[..]),
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
        Ok(Question { sql, inputs: inputs.iter().map(PathBuf::from).collect() })
    }
}

/// SQL may begin with a comment, which must not look like an option.
fn not_an_option(argument: OsString) -> OsString {
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
