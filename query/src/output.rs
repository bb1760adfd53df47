//! The answer: a table, CSV or JSON.

use std::collections::HashSet;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv::WriterBuilder as CsvBuilder;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{JsonArray, WriterBuilder as JsonBuilder};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use unicode_width::UnicodeWidthStr;

use crate::arguments::Form;
use crate::text::{Harmless, complain};

/// Prints an answer on stdout. A closed pipe is no failure.
pub(crate) async fn print(rows: SendableRecordBatchStream, form: Form) -> Result<()> {
    let stdout = io::stdout();
    let is_terminal = stdout.is_terminal();
    let output = BufWriter::with_capacity(1 << 16, stdout);
    let mut output: Box<dyn Write + Send> =
        if is_terminal { Box::new(Harmless::new(output)) } else { Box::new(output) };
    let printed = match form {
        Form::Csv => csv(rows, &mut output).await,
        Form::Json => json(rows, &mut output).await,
        Form::Table(most) => table(rows, most, &mut output).await,
    };
    match printed.and_then(|()| output.flush().map_err(DataFusionError::IoError)) {
        Err(e) if is_closed(&e) => Ok(()),
        result => result,
    }
}

fn is_closed(e: &DataFusionError) -> bool {
    let io = match e {
        DataFusionError::IoError(e) => e,
        DataFusionError::ArrowError(e, _) => match &**e {
            ArrowError::IoError(_, e) => e,
            ArrowError::CsvError(text) => return text.contains("Broken pipe"),
            _ => return false,
        },
        _ => return false,
    };
    io.kind() == io::ErrorKind::BrokenPipe
}

async fn csv(mut rows: SendableRecordBatchStream, output: &mut (dyn Write + Send)) -> Result<()> {
    let mut csv = CsvBuilder::new().with_header(true).build(output);
    csv.write(&flat(&RecordBatch::new_empty(rows.schema()))?)?; // the names, also if there are no rows
    while let Some(batch) = rows.next().await {
        csv.write(&flat(&batch?)?)?;
    }
    Ok(())
}

/// Lists and the like as texts: CSV has no place for them.
fn flat(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    if !schema.fields().iter().any(|field| field.data_type().is_nested()) {
        return Ok(batch.clone());
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::<ArrayRef>::new());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if !field.data_type().is_nested() {
            fields.push(field.as_ref().clone());
            columns.push(Arc::clone(column));
            continue;
        }
        fields.push(Field::new(field.name(), DataType::Utf8, true));
        let options = FormatOptions::default();
        let texts = ArrayFormatter::try_new(column.as_ref(), &options)?;
        let text = |row| (!column.is_null(row)).then(|| texts.value(row).to_string());
        columns.push(Arc::new((0..column.len()).map(text).collect::<StringArray>()));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

async fn json(mut rows: SendableRecordBatchStream, output: &mut (dyn Write + Send)) -> Result<()> {
    let (schema, mut seen) = (rows.schema(), HashSet::new());
    if let Some(twice) = schema.fields().iter().find(|field| !seen.insert(field.name())) {
        let why = format!("two columns have the name {}: give one another with `as`", twice.name());
        return Err(DataFusionError::Plan(why));
    }
    let mut json = JsonBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(&mut *output);
    while let Some(batch) = rows.next().await {
        json.write(&batch?)?;
    }
    json.finish()?;
    drop(json);
    Ok(writeln!(output)?)
}

/// A table of at most so many rows.
async fn table(
    mut rows: SendableRecordBatchStream,
    most: usize,
    output: &mut (dyn Write + Send),
) -> Result<()> {
    let schema = rows.schema();
    if schema.fields().iter().map(|field| &**field.name()).eq(["plan_type", "plan"]) {
        return plan(rows, output).await;
    }
    let mut table: Vec<Vec<String>> = vec![schema.fields().iter().map(|field| cell(field.name())).collect()];
    let mut has_more = false;
    while let Some(batch) = rows.next().await.filter(|_| !has_more) {
        let batch = batch?;
        let rows = batch.num_rows().min(most + 1 - table.len());
        has_more = rows < batch.num_rows();
        let options = FormatOptions::default();
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..rows {
            table.push(columns.iter().map(|column| cell(&column.value(row).to_string())).collect());
        }
    }
    let is_number = |column: usize| schema.field(column).data_type().is_numeric();
    let widths: Vec<usize> = (0..schema.fields().len())
        .map(|column| table.iter().map(|row| row[column].width()).max().unwrap_or(0))
        .collect();
    for row in &table {
        let mut line = String::new();
        for (column, text) in row.iter().enumerate() {
            let space = " ".repeat(widths[column] - text.width());
            let (before, after) = if is_number(column) { (&*space, "") } else { ("", &*space) };
            line += &format!("{}{before}{text}{after}", if column == 0 { "" } else { "  " });
        }
        writeln!(output, "{}", line.trim_end())?;
    }
    if has_more {
        output.flush()?;
        complain(format_args!("there are more than {most} rows: --csv and --json print all, --rows N more"));
    }
    Ok(())
}

/// A text in a line of a table, without what a terminal would obey.
fn cell(text: &str) -> String {
    const LONGEST: usize = 400;
    let mut out: String = text.chars().take(LONGEST).map(shown).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

fn shown(c: char) -> char {
    if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }
}

/// How the engine would answer.
async fn plan(mut rows: SendableRecordBatchStream, output: &mut (dyn Write + Send)) -> Result<()> {
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let options = FormatOptions::default();
        let [kinds, plans] = [0, 1].map(|n| ArrayFormatter::try_new(batch.column(n).as_ref(), &options));
        let (kinds, plans) = (kinds?, plans?);
        for row in 0..batch.num_rows() {
            writeln!(output, "{}:\n{}", kinds.value(row), plans.value(row))?;
        }
    }
    Ok(())
}
