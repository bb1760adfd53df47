//! The tables of a trace: slices, instants, counters, flows, arguments, threads, processes and more, for
//! Parquet files and for SQL.
//!
//! ```text
//! Source ── TraceReader ── Item ── read ── Batch, Batch, Batch ── Sink
//!                                   └ only the tables and columns that are Wanted
//! ```
//!
//! * The [schema](TABLES) is data: tables, columns, kinds, and a sentence about each.
//! * [`read`] reads a trace twice, if it can. The first reading finds what must be known before: what the
//!   scheduler did, names that come late, whether events have to be sorted. The second one streams rows to
//!   the sink.
//! * Memory is bounded for any input. What does not fit is counted in [`Summary::left_out`].
//!
//! ```
//! use hairline_convert::{Error, TraceReader, open};
//! use hairline_tables::{Batch, Data, Sink, Source, TableId, Wanted, read};
//!
//! struct Json(&'static [u8]);
//! impl Source for Json {
//!     fn open(&mut self) -> Result<Box<dyn TraceReader + '_>, Error> {
//!         open(self.0, None)
//!     }
//! }
//! #[derive(Default)]
//! struct Durations(Vec<i64>);
//! impl Sink for Durations {
//!     fn batch(&mut self, batch: &mut Batch) -> std::io::Result<()> {
//!         let column = batch.table.table().column("duration").unwrap();
//!         if let Some(Data::Int(values)) = batch.columns[column].as_ref().map(|values| &values.data) {
//!             self.0.extend(values);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut json = Json(br#"[{"name":"outer","ph":"X","ts":0,"dur":9,"pid":1,"tid":1},
//!     {"name":"inner","ph":"X","ts":1,"dur":3,"pid":1,"tid":1}]"#);
//! let wanted = Wanted::nothing().columns(TableId::Slice, &["start", "duration"]);
//! let mut durations = Durations::default();
//! let summary = read(&mut json, &wanted, || unreachable!("nothing to sort"), &mut durations)?;
//! assert_eq!((durations.0, summary.rows[TableId::Slice as usize]), (vec![9_000, 3_000], 2));
//! # Ok::<(), hairline_tables::Error>(())
//! ```

mod about;
mod args;
mod batch;
mod content;
mod events;
mod flows;
mod markdown;
mod owners;
mod pairs;
mod place;
mod reading;
mod rows;
mod schema;
mod source;
pub mod sql;
mod states;
mod summary;
mod survey;
mod to_next;
mod waiting;
mod wanted;

use std::fs::File;
use std::io;

pub use batch::{Batch, Data, Dictionary, Values};
pub use markdown::markdown;
pub use place::Place;
pub use rows::MOST_ROWS;
pub use schema::{Column, Kind, TABLES, Table, TableId, VERSION};
pub use source::{Choice, Error, Sink, Source};
pub use summary::{Facts, Summary};
pub use wanted::Wanted;

/// Reads a trace into a sink. `scratch` creates an empty temporary file, for a trace with events that are far
/// from the order of time.
///
/// # Errors
/// See [`Error`]. The sink may have batches already.
pub fn read(
    source: &mut dyn Source,
    wanted: &Wanted,
    scratch: fn() -> io::Result<File>,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    reading::read(source, wanted, scratch, sink)
}

/// As [`read`], in one reading, which takes about half the time. For a caller that can throw rows away and
/// ask again: only at the end of the trace is it known that the rows are those that two readings would show.
/// [`Facts::content`] stays 0.
///
/// # Errors
/// [`Error::NotAtOnce`] if two readings may show other rows: events are far from the order of time, names
/// come late, there are complete slices, or other tables and columns are wanted than those of slices (without
/// `running` and `waiting`), threads and processes.
pub fn read_at_once(source: &mut dyn Source, wanted: &Wanted, sink: &mut dyn Sink) -> Result<Summary, Error> {
    reading::read_at_once(source, wanted, sink)
}
