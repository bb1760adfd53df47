//! `hairline stats`

mod counter_lines;
mod counters;
mod export;
mod far_apart;
mod gather;
mod groups;
mod histogram;
mod named;
mod rows;
mod show;
mod states;
mod tables;

pub(crate) use gather::{Gather, Gathered};
pub(crate) use rows::{Row, Rows};
pub(crate) use tables::{By, Line, SEVERAL, SEVERAL_SAID, Sort, Stats};

use hairline::Filter;
use hairline_convert::slices::Keys;
use hairline_convert::timeline::Timeline;
use hairline_convert::{BriefEvent, Item, Strings};

use crate::outcome::Outcome;
use crate::selection::Selection;
use crate::stats::tables::TableArguments;
use crate::text::{failed, for_programs, put, written};
use crate::thread_times::{self, SampleCounts};
use crate::trace::{ItemVisitor, ReadSummary, TraceArguments, unsorted};
use crate::track_names::TrackNames;

/// Shows what a trace contains, and where the time went.
///
/// Prints totals, then tables by category, by name and by thread: the number of slices, their time with and
/// without inner slices (total, self), minimum, maximum and percentiles. Percentiles are exact for up to 32
/// slices, otherwise within 1 %. A thread is busy while a slice is open on it, and a slice without an end is
/// open up to the end of the trace. Slices on tracks that are no threads, like the lives of async tasks, are
/// intervals with tables of their own: their time overlaps that of threads, and what is inside of them has
/// tracks of its own, as a life inside of another one. If the trace has scheduling and
/// is a file, running and waiting are the times in which the threads of slices were on a core and waited for
/// one. A table of its own (by state) has the times in which each thread ran, waited for a core and slept, in
/// slices and outside, and its stack samples. A table of counters has the number of their values, and the
/// minimum, mean, maximum and last of them; each value has the same weight in the mean. Tracks of one name
/// are one row. A row is the slices of one name; its category is `*` if they have several. Slices without an
/// end are counted, and make their thread busy, but are no part of the other columns. FXT has slices of 0 ns
/// that only carry a flow: they are in no table.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline stats trace.pftrace
  hairline stats trace.fxt --by name --sort p99 --top 10
  hairline stats trace.fxt --category 'net,db.*,-db.verbose'
  hairline stats trace.json.gz --json | jq '.names[] | select(.self_ns > 1e9)'
  hairline stats trace.fxt --by thread --csv > threads.csv
  hairline stats trace.pftrace --by counter
  hairline stats trace.pftrace --time-range 1.5s..2s --thread 'worker-*'
  hairline stats trace.pftrace --by state --sort waiting      threads that found no free core")]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: TraceArguments,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    choice: TableArguments,
    /// Print everything as JSON, times in nanoseconds.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one table as CSV, times in nanoseconds: by name, or as in --by.
    #[arg(long)]
    csv: bool,
    /// Count only slices of these categories: "net,db.*,-db.verbose", as in HAIRLINE_CATEGORIES. The time of
    /// other slices inside them is still not part of their own time.
    #[arg(long, visible_alias = "categories", value_name = "FILTER", allow_hyphen_values = true)]
    #[arg(value_parser = Filter::parse)]
    category: Option<Filter>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let trace = arguments.trace.part(&arguments.selection);
    let (summary, (gathered, keys, track_names)) = match gather(arguments, &trace) {
        Ok(all) => all,
        Err(e) => return failed(e),
    };
    let bytes = trace.file_len().unwrap_or(summary.bytes);
    let stats = Stats {
        name: &summary.name,
        bytes,
        gathered: &gathered,
        keys: &keys,
        track_names: &track_names,
        report: &summary.report,
        unread: &summary.unread,
    };
    let shown = if arguments.json {
        for_programs(export::json(&stats, &arguments.choice))
    } else if arguments.csv {
        for_programs(export::csv(&stats, &arguments.choice))
    } else {
        show::text(&stats, &arguments.choice)
    };
    // Text and JSON have what was passed over.
    written(put(&shown), "stdout").max(if arguments.csv { summary.outcome() } else { summary.end() })
}

/// Counts all, in order of time. A trace with scheduling is read a second time, when it is known what each
/// thread did.
fn gather(
    arguments: &Arguments,
    trace: &TraceArguments,
) -> Result<(ReadSummary, (Gathered, Keys, TrackNames)), String> {
    let filter = || arguments.category.clone();
    let gather = Gather::new(filter());
    let mut first = First { gather, timeline: Timeline::default(), samples: SampleCounts::default() };
    let summary = trace.show(false, &mut first)?;
    let First { gather, mut timeline, samples } = first;
    let mut all = gather.finish().map_err(unsorted)?;
    timeline.finish();
    let states = thread_times::of_all(&all.2, &timeline, &samples);
    let span = timeline.span();
    let has_scheduling = !timeline.is_empty() && !trace.is_stream();
    if !all.0.is_untrue && !has_scheduling {
        all.0.add_states(states, span);
        return Ok((summary, all));
    }
    let mut gather = if all.0.is_untrue { Gather::in_order(filter()) } else { Gather::new(filter()) };
    if has_scheduling {
        gather = gather.with_timeline(timeline, &all.2);
    }
    let summary = trace.show_again(&mut gather)?;
    let mut all = gather.finish().map_err(unsorted)?;
    all.0.add_states(states, span);
    Ok((summary, all))
}

/// The first reading.
struct First {
    gather: Gather,
    timeline: Timeline,
    samples: SampleCounts,
}

impl ItemVisitor for First {
    const TAKES_BRIEFS: bool = true;

    fn briefs(&mut self, briefs: &[BriefEvent], strings: &Strings) {
        self.gather.briefs(briefs, strings);
    }

    fn spans(&mut self, first: i64, last: i64) {
        self.gather.spans(first, last);
    }

    fn item(&mut self, item: &Item<'_>) {
        if let Item::Scheduling(scheduling) = item {
            self.timeline.add(scheduling);
        }
        self.samples.item(item);
        self.gather.item(item);
    }
}
