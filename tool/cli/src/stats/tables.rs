//! The tables: their rows and their order.

use clap::ValueEnum;
use hairline_convert::slices::{Key, Keys};
use hairline_convert::{Report, TrackId};

use crate::stats::gather::Gathered;
use crate::stats::rows::Row;
use crate::track_names::TrackNames;

/// Stands for several categories.
pub(crate) const SEVERAL: &str = "*";

/// The line below a table with such rows.
pub(crate) const SEVERAL_SAID: &str =
    "*: slices of several categories have this name; --category FILTER counts those of some";

/// Arguments that choose tables and rows.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TableArguments {
    /// Print only this table.
    #[arg(long, value_enum)]
    pub(crate) by: Option<By>,
    /// The column to sort by, largest first; names in alphabetical order.
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = Sort::Total)]
    pub(crate) sort: Sort,
    /// The number of rows of each table; 0 for all. Default: 25 in tables for people, all otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// A row for each category of slices on threads
    Category,
    /// A row for each name of slices on threads
    Name,
    /// A row for each name of slices on other tracks
    Interval,
    /// A row for each thread
    Thread,
    /// A row for all other tracks of one name and process
    Track,
    /// A row for each thread with states or stack samples, in slices and outside
    State,
    /// A row for each counter
    Counter,
}

impl By {
    pub(super) const ALL: [Self; 7] =
        [Self::Category, Self::Name, Self::Interval, Self::Thread, Self::Track, Self::State, Self::Counter];

    /// The title of the first column.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Category => "category",
            Self::Name => "name",
            Self::Interval => "interval",
            Self::Thread | Self::State => "thread",
            Self::Track => "track",
            Self::Counter => "counter",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// The name, category or thread
    Name,
    /// The number of slices, or of values of a counter
    Count,
    /// Their time, inner slices included
    Total,
    /// Their time without inner slices
    #[value(name = "self")]
    Own,
    /// Their time without enclosing slices: the busy time of a thread
    Busy,
    /// The time in which their threads ran, if the trace has scheduling
    Running,
    /// The time in which their threads waited for a core
    Waiting,
    /// The time in which threads slept, in the table by state
    Asleep,
    /// The number of stack samples, in the table by state
    Samples,
    /// The shortest
    Min,
    /// The 50th percentile
    P50,
    /// The 90th percentile
    P90,
    /// The 99th percentile
    P99,
    /// The longest
    Max,
}

/// The statistics of a trace.
pub(crate) struct Stats<'a> {
    pub(crate) name: &'a str,
    pub(crate) bytes: u64,
    pub(crate) gathered: &'a Gathered,
    pub(crate) keys: &'a Keys,
    pub(crate) track_names: &'a TrackNames,
    pub(crate) report: &'a Report,
    /// The records whose content is not shown.
    pub(crate) unread: &'a Report,
}

/// A row with its texts and percentiles.
pub(crate) struct Line<'a> {
    pub(crate) what: String,
    /// The category of a name, or the process of a thread.
    pub(crate) of: String,
    pub(crate) row: &'a Row,
    pub(crate) percentiles: [i64; 3],
}

impl Line<'_> {
    fn column(&self, sort: Sort) -> i64 {
        match sort {
            Sort::Name | Sort::Asleep | Sort::Samples => 0,
            Sort::Count => i64::try_from(self.row.count).unwrap_or(i64::MAX),
            Sort::Total => self.row.total,
            Sort::Own => self.row.own,
            Sort::Busy => self.row.busy,
            Sort::Running => self.row.running,
            Sort::Waiting => self.row.waiting,
            Sort::Min => self.row.min,
            Sort::P50 => self.percentiles[0],
            Sort::P90 => self.percentiles[1],
            Sort::P99 => self.percentiles[2],
            Sort::Max => self.row.max,
        }
    }
}

impl Stats<'_> {
    /// All rows of a table in the given order.
    pub(crate) fn lines(&self, by: By, sort: Sort) -> Vec<Line<'_>> {
        let Gathered { names, categories, intervals, threads, tracks, .. } = self.gathered;
        let rows = match by {
            By::Category => categories,
            By::Name => names,
            By::Interval => intervals,
            By::Thread => threads,
            By::Track => tracks,
            // Their rows are no slices: see `states` and `counter_lines`.
            By::State | By::Counter => return Vec::new(),
        };
        let line = |row| {
            let (what, of) = self.words(by, row);
            Line { what, of, row, percentiles: row.percentiles() }
        };
        let mut lines: Vec<Line<'_>> = rows.iter().map(line).collect();
        lines.sort_by(|a, b| b.column(sort).cmp(&a.column(sort)).then_with(|| a.what.cmp(&b.what)));
        lines
    }

    fn words(&self, by: By, row: &Row) -> (String, String) {
        let text = |key| self.keys.text(key).to_owned();
        let Some(what) = row.what else { return (text(Key::OTHER), String::new()) };
        match by {
            By::Category => (text(Key(what)), String::new()),
            By::Name | By::Interval => {
                (text(Key(what)), row.category.map_or_else(|| SEVERAL.to_owned(), text))
            }
            By::Thread | By::State | By::Counter => self.track_words(TrackId(what)),
            By::Track => match self.gathered.groups.about(what) {
                Some((first, _)) => self.track_words(first),
                None => ("(unknown track)".to_owned(), String::new()),
            },
        }
    }

    /// The name of a track, and that of its process.
    fn track_words(&self, track: TrackId) -> (String, String) {
        let track_names = self.track_names;
        let process = track_names.process_of(track).filter(|process| *process != track);
        let process = process.map(|process| track_names.name(process));
        (track_names.name(track), process.unwrap_or_default())
    }

    /// The time in which the intervals of a row were polled: that of the slices on threads with its name and
    /// category. `None` if there are none.
    pub(super) fn polled(&self, row: &Row) -> Option<i64> {
        let polls = self.gathered.names.get(row.what?)?;
        (row.category.is_some() && polls.category == row.category).then_some(polls.total)
    }

    /// The number of tracks of a row.
    pub(super) fn tracks_of(&self, row: &Row) -> u64 {
        row.what.and_then(|what| self.gathered.groups.about(what)).map_or(1, |(_, tracks)| tracks)
    }
}
