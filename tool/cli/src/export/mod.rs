//! `hairline export`

mod coded;
mod file;
mod places;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use hairline::Filter;
use hairline_convert::{Report, Worker, with_worker};
use hairline_tables::{Batch, Error as Failure, Place, Sink, Source, Summary, TableId, Wanted, read};

use crate::export::file::Files;
use crate::export::places::Places;
use crate::input::{Input, is_standard};
use crate::opening::Opening;
use crate::outcome::Outcome;
use crate::selection::Selection;
use crate::text::{complain, described, failed, grouped_count, say, shown, size};
use crate::trace::RowSource;
use crate::transfer::check_streams;

/// Writes the tables of traces as Parquet files, for DuckDB, Spark, ClickHouse, pandas and other engines.
///
/// Each table has a folder: slice, instant, counter, flow, arg, thread, process, sched, sample, trace. In it
/// are folders by date, service and trace, which engines read as columns (Hive's way):
/// DIR/slice/date=2026-11-23/service=web/trace=6b0c.../part-0.parquet. Times are in nanoseconds on the
/// trace's clock; the table `trace` has what to add for the time since 1970, and how many events are missing,
/// by reason.
///
/// A file appears when it is complete, that of the table `trace` last. The same trace again replaces its
/// files. A trace that ends early is exported up to there, with `is_whole` false in the table `trace`, and
/// the exit code is 1; of a damaged trace nothing is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline export run.pftrace -o traces
  hairline export --service web *.fxt -o traces
  hairline export --time-range 10s..12s --thread 'worker-*' run.pftrace -o part
  hairline export --table slice,trace --category 'net,db.*' run.pftrace -o traces
  duckdb -c \"select name, count(*), avg(duration) from 'traces/slice/**/*.parquet' group by 1\"")]
pub(crate) struct Arguments {
    /// The traces: .pftrace, .fxt or .json, compressed or not; - for stdin.
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// The folder of the tables. Created if it does not exist.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The service in the path. Default: the name of the trace's process.
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Write only these tables.
    #[arg(long, visible_alias = "tables", value_name = "TABLES", value_delimiter = ',')]
    #[arg(value_parser = table)]
    table: Vec<TableId>,
    /// Write only slices and instants of these categories, with their arguments and flows:
    /// "net,db.*,-db.verbose", as in HAIRLINE_CATEGORIES.
    #[arg(long, visible_alias = "categories", value_name = "FILTER", allow_hyphen_values = true)]
    #[arg(value_parser = Filter::parse)]
    category: Option<Filter>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    opening: Opening,
    /// Write nothing of a trace of which the tables cannot have everything.
    #[arg(long)]
    strict: bool,
}

fn table(name: &str) -> Result<TableId, String> {
    TableId::by_name(name).ok_or_else(|| {
        let all = TableId::ALL.map(|table| table.table().name);
        format!("there is no such table; choose from {}", all.join(", "))
    })
}

impl Sink for Files {
    fn batch(&mut self, batch: &mut Batch) -> std::io::Result<()> {
        self.write(batch)
    }
}

/// The batches that wait for the thread that writes them: one of the most rows has some 10 MB.
const WAITING: usize = 2;

/// Passes batches to the thread that writes them.
struct Passed<'w, 's>(&'w mut Worker<'s, Option<Batch>>);

impl Sink for Passed<'_, '_> {
    fn batch(&mut self, batch: &mut Batch) -> std::io::Result<()> {
        let spare = self.0.take()?.map(|spare| spare.columns);
        let columns = std::mem::replace(&mut batch.columns, spare.unwrap_or_default());
        self.0.give(Some(Batch { columns, ..*batch }))
    }
}

/// Reads a trace into files. A thread of its own writes them, if there are several.
fn read_into(files: &mut Files, trace: &mut RowSource<'_>, wanted: &Wanted) -> Result<Summary, Failure> {
    if !trace.opening.threads.are_several() {
        return read(trace, wanted, tempfile::tempfile, files);
    }
    let write = |batch: &mut Option<Batch>| batch.as_ref().map_or(Ok(()), |batch| files.write(batch));
    let work = |worker: &mut Worker<'_, _>| read(trace, wanted, tempfile::tempfile, &mut Passed(worker));
    with_worker(WAITING, write, work).map_err(Failure::Sink)?
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mut outcome = Outcome::Done;
    if let Err(what) = check_streams(&arguments.traces) {
        complain(what);
        return Outcome::Usage;
    }
    let (mut seen, mut places) = (HashSet::new(), Places::new(&arguments.output));
    for path in &arguments.traces {
        let done = export(arguments, path, &mut seen, &mut places).unwrap_or_else(failed);
        outcome = outcome.max(done);
    }
    outcome
}

impl Arguments {
    fn tables(&self) -> Vec<TableId> {
        if self.table.is_empty() {
            return TableId::ALL.to_vec();
        }
        TableId::ALL.into_iter().filter(|table| self.table.contains(table)).collect()
    }

    fn wanted(&self) -> Wanted {
        let wanted = self.tables().into_iter().fold(Wanted::nothing(), Wanted::table);
        match self.category.clone() {
            Some(filter) => wanted.category(move |category| filter.matches(category)),
            None => wanted,
        }
    }
}

/// Exports a trace. `seen`: the traces before it.
fn export(
    arguments: &Arguments,
    path: &PathBuf,
    seen: &mut HashSet<String>,
    places: &mut Places<'_>,
) -> Result<Outcome, String> {
    let name = if is_standard(path) { "stdin".to_owned() } else { shown(path) };
    let tables = arguments.tables();
    let of_output = |e: std::io::Error| format!("{}: {e}", shown(&arguments.output));
    let mut trace = RowSource::new(path, arguments.opening).part(&arguments.selection)?;
    drop(
        trace
            .is_repeatable()
            .then(|| Input::open(path, trace.opening))
            .transpose()
            .map_err(|e| format!("{name}: {e}"))?,
    );
    let mut files = Files::create(&arguments.output, &tables).map_err(of_output)?;
    let summary = read_into(&mut files, &mut trace, &arguments.wanted()).map_err(|e| match e {
        Failure::Read(e) => format!("{name}: {e}; nothing of it was written"),
        Failure::Sink(e) => of_output(e),
        e => format!("{name}: {e}; nothing of it was written"),
    })?;
    if let Some(e) = summary.stopped.as_ref().filter(|_| summary.facts.events == 0) {
        return Err(format!("{name}: {e}; nothing of it was written"));
    }
    let mut report = summary.report.clone();
    report.add_all(&summary.left_out);
    show(&name, &report);
    if arguments.strict && !report.is_empty() {
        complain(format_args!("{name}: not written, because the tables cannot have everything (--strict)"));
        return Ok(Outcome::NotStrict);
    }
    let place = Place::of(&summary.facts, arguments.service.as_deref());
    if !seen.insert(place.trace.clone()) {
        complain(format_args!("{name}: it is the same trace as one before, and replaces it"));
    }
    let (files, bytes) = files.finish().map_err(of_output)?;
    places.keep(files, &place, summary.facts.uuid.is_some()).map_err(of_output)?;
    let of_tables = if let [table] = tables[..] { table.table().name } else { "*" };
    let said = summarise(&name, &summary, bytes, &arguments.output.join(of_tables).join(place.folder()));
    let Some(e) = &summary.stopped else { return Ok(said) };
    complain(format_args!("{name}: {e}; everything before that is in the tables"));
    Ok(Outcome::Failed)
}

fn show(name: &str, report: &Report) {
    if !report.is_empty() {
        complain(format_args!("{name}: the tables differ from the trace:"));
    }
    report.iter().for_each(|(what, n)| complain(format_args!("{n:>9} {}", described(n, what))));
}

/// One line: what was written, and where: the folder of the table, or a pattern for those of all tables.
fn summarise(name: &str, summary: &Summary, bytes: u64, place: &Path) -> Outcome {
    let rows: u64 = summary.rows.iter().sum();
    let slices = summary.rows[TableId::Slice as usize];
    let (rows, slices) = (grouped_count(rows, "row"), grouped_count(slices, "slice"));
    say(format_args!("{name}: {rows}, {slices}, {} in {}", size(bytes), shown(place)))
}
