//! The answer: a table, CSV or JSON.

use std::collections::HashSet;
use std::io::{self, BufWriter, IsTerminal, Write};

use rusqlite::types::ValueRef;
use rusqlite::{Row, Statement};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::query::session::shown;
use crate::table::is_harmful;
use crate::text::{complain, harmless};

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Csv,
    Json,
    /// A table of at most so many rows.
    Table(usize),
    /// The last column alone: the steps of a plan.
    Plan,
}

/// Why an answer ended early.
enum Failure {
    Question(rusqlite::Error),
    Output(io::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(e: rusqlite::Error) -> Self {
        Self::Question(e)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Self::Output(e)
    }
}

/// Where the answer goes. A terminal gets it without what it would obey.
struct Output {
    inner: BufWriter<io::Stdout>,
    is_terminal: bool,
}

impl Output {
    fn put(&mut self, text: &str) -> io::Result<()> {
        let shown = self.is_terminal.then(|| harmless(text));
        self.inner.write_all(shown.as_deref().unwrap_or(text).as_bytes())
    }
}

/// Prints an answer on stdout. A closed pipe is no failure.
pub(crate) fn print(statement: &mut Statement<'_>, form: Form) -> Result<(), String> {
    let stdout = io::stdout();
    let is_terminal = stdout.is_terminal();
    let mut output = Output { inner: BufWriter::with_capacity(1 << 16, stdout), is_terminal };
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let printed = match form {
        Form::Csv => csv(statement, &names, &mut output),
        Form::Json => json(statement, &names, &mut output),
        Form::Table(most) => table(statement, &names, most, &mut output),
        Form::Plan => plan(statement, names.len(), &mut output),
    };
    match printed.and_then(|()| Ok(output.inner.flush()?)) {
        Ok(()) => Ok(()),
        Err(Failure::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Failure::Output(e)) => Err(format!("stdout: {e}")),
        Err(Failure::Question(e)) => Err(shown(&e)),
    }
}

fn csv(statement: &mut Statement<'_>, names: &[String], output: &mut Output) -> Result<(), Failure> {
    let mut line = |cells: &[String]| {
        let mut csv = csv::Writer::from_writer(Vec::new());
        csv.write_record(cells)?;
        let bytes = csv.into_inner().map_err(|e| io::Error::other(e.to_string()))?;
        output.put(&String::from_utf8_lossy(&bytes))
    };
    line(names)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        line(&cells(row, names.len())?)?;
    }
    Ok(())
}

fn json(statement: &mut Statement<'_>, names: &[String], output: &mut Output) -> Result<(), Failure> {
    let mut seen = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
        let what = format!("two columns have the name {twice}: give one another with `as`");
        return Err(rusqlite::Error::ModuleError(what).into());
    }
    let mut rows = statement.query([])?;
    let mut separator = "[";
    while let Some(row) = rows.next()? {
        let mut line = separator.to_owned();
        for (n, name) in names.iter().enumerate() {
            let value = match row.get_ref(n)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(int) => json!(int),
                ValueRef::Real(float) => json!(float),
                other => Value::String(text(other)),
            };
            line += &format!("{}{}:{value}", if n == 0 { "{" } else { "," }, Value::from(name.as_str()));
        }
        output.put(&(line + "}"))?;
        separator = ",";
    }
    Ok(output.put(if separator == "[" { "[]\n" } else { "]\n" })?)
}

/// A table of at most so many rows.
fn table(
    statement: &mut Statement<'_>,
    names: &[String],
    most: usize,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut table = vec![names.iter().map(|name| cell(name)).collect::<Vec<_>>()];
    let mut is_number = vec![true; names.len()];
    let mut rows = statement.query([])?;
    let mut has_more = false;
    while let Some(row) = rows.next()? {
        has_more = table.len() > most;
        if has_more {
            break;
        }
        for (n, is_number) in is_number.iter_mut().enumerate() {
            *is_number &= !matches!(row.get_ref(n)?, ValueRef::Text(_) | ValueRef::Blob(_));
        }
        table.push(cells(row, names.len())?.iter().map(|text| cell(text)).collect());
    }
    let width = |column: usize| table.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    for row in &table {
        let mut line = String::new();
        for (column, text) in row.iter().enumerate() {
            let space = " ".repeat(widths[column] - text.width());
            let (before, after) = if is_number[column] { (&*space, "") } else { ("", &*space) };
            line += &format!("{}{before}{text}{after}", if column == 0 { "" } else { "  " });
        }
        output.put(line.trim_end())?;
        output.put("\n")?;
    }
    if has_more {
        output.inner.flush()?;
        complain(format_args!("there are more than {most} rows: --csv and --json print all, --rows N more"));
    }
    Ok(())
}

fn plan(statement: &mut Statement<'_>, columns: usize, output: &mut Output) -> Result<(), Failure> {
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let step = cells(row, columns)?.pop().unwrap_or_default();
        output.put(&(cell(&step) + "\n"))?;
    }
    Ok(())
}

fn cells(row: &Row<'_>, columns: usize) -> rusqlite::Result<Vec<String>> {
    (0..columns).map(|n| Ok(text(row.get_ref(n)?))).collect()
}

/// A value as text. Null is empty, and bytes are hexadecimal.
fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(int) => int.to_string(),
        ValueRef::Real(float) => format!("{float:?}"),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// A text in a line of a table, without what a terminal would obey.
fn cell(text: &str) -> String {
    const LONGEST: usize = 400;
    let shown = |c: char| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c };
    let mut out: String = text.chars().take(LONGEST).map(shown).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}
