//! The tables of a trace: slices, instants, counters, flows, arguments, threads, processes and more, for Parquet
//! files and for SQL.
//!
//! ```text
//! Source ── TraceReader ── Item ── read ── Batch, Batch, Batch ── Sink
//!                                   └ only the tables and columns that are Wanted
//! ```
//!
//! * The [schema](TABLES) is data: tables, columns, kinds, and a sentence about each.
//! * [`read`] reads a trace twice, if it can. The first reading finds what must be known before: what the scheduler
//!   did, names that come late, whether events have to be sorted. The second one streams rows to the sink.
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
//!     fn batch(&mut self, batch: Batch) -> std::io::Result<()> {
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
mod events;
mod flows;
mod markdown;
mod owners;
mod pairs;
mod reading;
mod rows;
mod schema;
mod states;
mod survey;
mod wanted;

use std::fs::File;
use std::io;

use hairline_convert::{Report, TraceReader};

pub use batch::{Batch, Data, Dictionary, Values};
pub use markdown::markdown;
pub use rows::MOST_ROWS;
pub use schema::{Column, Kind, TABLES, Table, TableId, VERSION};
pub use wanted::Wanted;

/// A trace that is read.
pub trait Source {
    /// Opens the trace from its first byte. Called a second time only if [`is_repeatable`](Self::is_repeatable).
    ///
    /// # Errors
    /// Fails if the trace cannot be opened.
    fn open(&mut self) -> Result<Box<dyn TraceReader + '_>, hairline_convert::Error>;

    /// Whether the trace can be opened a second time. If not, the tables of threads' states and samples are
    /// incomplete: see [`Summary::left_out`].
    fn is_repeatable(&self) -> bool {
        true
    }
}

/// Receives the rows of a trace.
pub trait Sink {
    /// Takes a batch. Batches of different tables come in any order.
    ///
    /// # Errors
    /// An error ends the reading, and is returned from [`read`].
    fn batch(&mut self, batch: Batch) -> io::Result<()>;
}

/// Why a trace was not read, or only partly. Batches that a sink has are then of no use.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read, or is damaged. The end of the file in the middle of a record is no error: see
    /// [`Summary::stopped`].
    Read(hairline_convert::Error),
    /// The temporary file for a trace that is not in order of time failed.
    Scratch(io::Error),
    /// The sink refused a batch.
    Sink(io::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(e) => e.fmt(f),
            Self::Scratch(e) => write!(f, "a temporary file for events that are not in order of time: {e}"),
            Self::Sink(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(e) => Some(e),
            Self::Scratch(e) | Self::Sink(e) => Some(e),
        }
    }
}

/// What was read.
#[derive(Debug, Default)]
pub struct Summary {
    /// Facts about the trace.
    pub facts: Facts,
    /// The number of rows of each table, by [`TableId`].
    pub rows: [u64; TABLES.len()],
    /// What the reader did not understand.
    pub report: Report,
    /// What the tables have no place or no memory for.
    pub left_out: Report,
    /// The error, if the trace ends early. The tables have all before it.
    pub stopped: Option<hairline_convert::Error>,
    /// The number of bytes of the trace.
    pub bytes: u64,
}

/// Facts about the trace. An unknown one is `None`, 0 or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The trace's UUID.
    pub uuid: Option<u128>,
    /// The machine, as in `uname`: sysname, release, version, machine.
    pub system: Option<[String; 4]>,
    /// The program or provider that wrote the trace.
    pub writer: Option<String>,
    /// The name of the process, if all events belong to one.
    pub executable: Option<String>,
    /// The clock of all times.
    pub clock: Option<u32>,
    /// What to add to a time of the trace for the time since 1970 in ns, UTC.
    pub since_1970: Option<i64>,
    /// The time of the first event and the last one, in ns on the trace's clock.
    pub span: Option<(i64, i64)>,
    /// The number of events.
    pub events: u64,
    /// The number of places at which events are missing, and the number of events that are missing there.
    pub losses: u64,
    /// See `losses`.
    pub lost_events: u64,
    /// Losses by reason, if the trace has them.
    pub lost: Vec<(String, u64)>,
    /// A hash of all events: distinguishes traces without a UUID.
    pub content: u64,
}

/// Reads a trace into a sink. `scratch` creates an empty temporary file, for a trace with events that are far from
/// the order of time.
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
