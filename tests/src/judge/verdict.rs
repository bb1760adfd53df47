//! What the judge says of a trace.

use std::fmt;

use serde_json::Value;

/// What trace_processor read in a trace, and what it found wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The rows of each query, in the order of the queries.
    pub results: Vec<Rows>,
    /// The stats that say that something is wrong with the trace (whatever their severity).
    pub complaints: Vec<Stat>,
    /// All stats that are not zero.
    pub stats: Vec<Stat>,
}

impl Verdict {
    /// The trace is as good as it can be.
    ///
    /// # Panics
    /// If the importer complained about anything; the message lists the complaints.
    #[track_caller]
    pub fn require_clean(&self) {
        let listed: Vec<String> = self.complaints.iter().map(Stat::to_string).collect();
        assert!(listed.is_empty(), "trace_processor complains:\n  {}", listed.join("\n  "));
    }

    /// The trace is as good as it can be on a busy machine, where a reader may come too late: up to a tenth of
    /// the `samples` in it are lost, and counted.
    ///
    /// # Panics
    /// If the importer complained about anything else, or about more.
    #[track_caller]
    pub fn require_few_lost_samples(&self, samples: i64) {
        const LOST: &str = "perf_cpu_lost_records";
        let others: Vec<_> = self.complaints.iter().filter(|stat| stat.name != LOST).collect();
        let lost = self.stat(LOST);
        assert!(others.is_empty() && lost * 10 <= samples.max(250), "{others:?}, {lost} lost of {samples}");
    }

    /// The value of a stat, summed over its indices; 0 if it does not appear.
    pub fn stat(&self, name: &str) -> i64 {
        self.stats.iter().filter(|stat| stat.name == name).map(|stat| stat.value).sum()
    }
}

/// A counter of the importer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Its name, such as `fuchsia_invalid_string_ref`.
    pub name: String,
    /// Which of several counters of this name it is.
    pub idx: Option<i64>,
    /// `info`, `data_loss` or `error`. Many mistakes are filed under `info`.
    pub severity: String,
    /// `trace` (the recorder said so) or `analysis` (the importer found it).
    pub source: String,
    /// How often.
    pub value: i64,
}

impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, idx, severity, source, value } = self;
        let idx = idx.map_or(String::new(), |idx| format!("[{idx}]"));
        write!(f, "{name}{idx} = {value} ({severity}, {source})")
    }
}

/// The rows of one query.
///
/// An integer is exact over the whole range of an `i64`; a double is a float (`1.0`); NULL is null.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Are there no rows?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, with access to the cells by the columns' names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> + DoubleEndedIterator {
        self.rows.iter().map(|cells| Row { columns: &self.columns, cells })
    }

    /// The cells of a column, from the first row to the last.
    ///
    /// # Panics
    /// If there is no such column.
    #[track_caller]
    pub fn column(&self, name: &str) -> Vec<&Value> {
        let index = column_index(&self.columns, name);
        self.rows.iter().map(|cells| &cells[index]).collect()
    }

    /// The only cell of the only row, as of `select count() from slice`.
    ///
    /// # Panics
    /// If there is more than one, or none.
    #[track_caller]
    pub fn single(&self) -> &Value {
        match self.rows.as_slice() {
            [cells] if cells.len() == 1 => &cells[0],
            _ => panic!("not a single cell:\n{self}"),
        }
    }

    /// [`Rows::single`], an integer.
    ///
    /// # Panics
    /// If it is not a single cell or not an integer.
    #[track_caller]
    pub fn single_i64(&self) -> i64 {
        let Some(value) = self.single().as_i64() else { panic!("not an integer:\n{self}") };
        value
    }

    /// The rows as lines of tab-separated cells, without a header and without a newline at the end.
    ///
    /// NULL is `NULL`; a tab, newline or backslash in a string is escaped, so a row is always one line.
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.rows.iter().map(|cells| line_of(cells.iter().map(cell_text))).collect();
        lines.join("\n")
    }
}

/// The header and the rows, for a message.
impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", line_of(self.columns.iter().cloned()), self.text())
    }
}

/// A row of [`Rows`].
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    columns: &'a [String],
    cells: &'a [Value],
}

impl<'a> Row<'a> {
    /// The cell in the column `name`.
    ///
    /// # Panics
    /// If there is no such column.
    #[track_caller]
    pub fn get(&self, name: &str) -> &'a Value {
        &self.cells[column_index(self.columns, name)]
    }

    /// The integer in the column `name`.
    ///
    /// # Panics
    /// If there is no such column or it holds something else.
    #[track_caller]
    pub fn i64(&self, name: &str) -> i64 {
        let cell = self.get(name);
        let Some(value) = cell.as_i64() else { panic!("{name} is not an integer: {cell}") };
        value
    }

    /// The number in the column `name`, an integer or not.
    ///
    /// # Panics
    /// If there is no such column or it holds something else.
    #[track_caller]
    pub fn f64(&self, name: &str) -> f64 {
        let cell = self.get(name);
        let Some(value) = cell.as_f64() else { panic!("{name} is not a number: {cell}") };
        value
    }

    /// The string in the column `name`.
    ///
    /// # Panics
    /// If there is no such column or it holds something else.
    #[track_caller]
    pub fn str(&self, name: &str) -> &'a str {
        let cell = self.get(name);
        let Some(value) = cell.as_str() else { panic!("{name} is not a string: {cell}") };
        value
    }
}

#[track_caller]
fn column_index(columns: &[String], name: &str) -> usize {
    let Some(index) = columns.iter().position(|column| column == name) else {
        panic!("no column {name} in {columns:?}")
    };
    index
}

fn line_of(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join("\t")
}

fn cell_text(cell: &Value) -> String {
    match cell {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => {
            text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
        }
        other => other.to_string(),
    }
}

/// Reads an answer of `oracle/judge.mjs`; its form is stated there.
pub(super) fn verdict_of(mut answer: Value) -> Verdict {
    Verdict {
        results: array(answer["results"].take()).map(rows_of).collect(),
        complaints: array(answer["complaints"].take()).map(|stat| stat_of(&stat)).collect(),
        stats: array(answer["stats"].take()).map(|stat| stat_of(&stat)).collect(),
    }
}

fn rows_of(mut result: Value) -> Rows {
    Rows {
        columns: array(result["columns"].take()).map(|name| string(&name)).collect(),
        rows: array(result["rows"].take()).map(|row| array(row).collect()).collect(),
    }
}

fn stat_of(stat: &Value) -> Stat {
    Stat {
        name: string(&stat["name"]),
        idx: stat["idx"].as_i64(),
        severity: string(&stat["severity"]),
        source: string(&stat["source"]),
        value: stat["value"].as_i64().unwrap_or_else(|| panic!("a stat without a value: {stat}")),
    }
}

fn array(value: Value) -> impl Iterator<Item = Value> {
    match value {
        Value::Array(items) => items.into_iter(),
        other => panic!("an array is missing in the judge's answer: {other}"),
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a string is missing in the judge's answer: {value}")).to_owned()
}
