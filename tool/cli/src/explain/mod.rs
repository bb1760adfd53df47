//! `hairline explain`

mod arguments;
mod awaited;
mod callers;
mod conditions;
mod cpu_times;
mod dropped;
mod ending;
mod explained;
mod export;
mod flames;
mod functions;
mod gather;
mod heap;
mod held;
mod holder;
mod joined;
mod lists;
mod locks;
mod lost;
mod meanwhile;
mod memory;
mod neighbours;
mod nested;
mod off_cpu;
mod own_polls;
mod paths;
mod polls;
mod queue;
mod refused;
mod separation;
mod shares;
mod show;
mod show_threads;
mod stacks;
mod survey;
mod target;
mod tasks;
mod threads;
mod turns;
mod verdict;
mod waited;
mod wakes;

use std::path::PathBuf;

use hairline_convert::slices::Slices;

use crate::explain::explained::Explained;
use crate::explain::gather::Gather;
use crate::explain::heap::Heap;
use crate::explain::meanwhile::Meanwhile;
use crate::explain::survey::Survey;
use crate::explain::threads::Threads;
use crate::input::is_standard;
use crate::outcome::Outcome;
use crate::pattern::Pattern;
use crate::text::{complain, failed, for_programs, put, written};
use crate::trace::{FileArguments, TraceArguments, unsorted};

/// Says why slices take long: running, waiting for a core, or asleep; in which function, and on what.
///
/// Takes the slices of one name, or the ten names that took most, and compares the slowest hundredth with the
/// typical ones: the time that their thread ran, waited for a core and slept; the inner slices in which it
/// did; the functions on the CPU, and the stacks in which it slept; the threads that had the core meanwhile.
/// A function is that of the program, with the function of a library that it called and that has the time:
/// `Mutex::lock` in `fault::journal`.
/// The first lines name the cause. Waits for locks that the program recorded (`lock/wait: NAME`) come first:
/// the lock, who held it, and where. A trace without scheduling still shows inner slices, and what other
/// threads did meanwhile. Intervals of async tasks are explained by the intervals inside of them: waits for
/// locks, and the time in the queue of the workers, come first. Without a name, a name that has intervals and
/// polls is explained by its intervals, and a heap profile is summed up by the functions that allocated what
/// is live. Reads the trace up to three times, so it must be a file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline explain trace.pftrace
  hairline explain trace.pftrace net/request
  hairline explain trace.pftrace 'net/*'
  hairline explain trace.pftrace net/request --svg request.svg
  hairline explain trace.pftrace --thread worker-1
  hairline explain trace.fxt db/query --json | jq '.names[0].cause'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: FileArguments,
    /// The slices to explain, by name or by category and name; * matches any characters. Default: the ten
    /// names that took most.
    #[arg(value_name = "[CATEGORY/]NAME")]
    pattern: Option<Pattern>,
    /// Explain threads instead, by name or by id; * matches any characters. A trace without slices has
    /// nothing else to explain: the threads that took most time are chosen.
    #[arg(long, value_name = "NAME|TID", conflicts_with = "pattern")]
    thread: Option<String>,
    /// Explain so many names or threads at most.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    top: u32,
    /// Print the most frequent stack of each function that is named: all its functions, the innermost first.
    /// With --json, it is always there.
    #[arg(long)]
    verbose: bool,
    /// Print everything as JSON, times in nanoseconds.
    #[arg(long)]
    json: bool,
    /// Draw a flame graph of the functions inside the slices of the first name with samples, or of the first
    /// thread: where they ran, and where they slept if the trace has such samples.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.svg.as_deref().is_some_and(is_standard) {
        complain("--svg -: the report goes to stdout: give the name of a file");
        return Outcome::Usage;
    }
    let trace = TraceArguments::from(&arguments.trace);
    let explained = match explain(arguments, &trace) {
        Ok(explained) => explained,
        Err(e) => return failed(e),
    };
    let shown = if arguments.json {
        for_programs(export::json(&explained))
    } else {
        show::text(&explained, arguments.verbose)
    };
    let mut outcome = written(put(&shown), "stdout").max(explained.summary.outcome());
    if let Some(path) = &arguments.svg {
        outcome = outcome.max(flames::write(&explained, path, trace.path()));
    }
    outcome
}

/// Gives wakes and the instants at the ends of waits their keys. Only the second reading of the trace looks
/// at these instants, and each reading must give all other names the same keys.
fn with_keys(mut slices: Slices) -> Slices {
    for name in [locks::LOCK, locks::RELEASED, locks::NOTIFIED, tasks::CATEGORY, tasks::WAKE] {
        slices.keys_mut().key(name.into());
    }
    slices
}

fn explain(arguments: &Arguments, trace: &TraceArguments) -> Result<Explained, String> {
    if trace.is_stream() {
        let what = "it is read several times: save it to a file";
        return Err(format!("{}: {what}", trace.path().display()));
    }
    // Slices whose events are out of order are sorted, which the first reading finds out.
    let mut new_slices: fn() -> Slices = || with_keys(Slices::new());
    let mut survey = Survey::new(new_slices());
    let mut summary = trace.show(false, &mut survey)?;
    survey.finish().map_err(unsorted)?;
    if survey.is_late() {
        new_slices = || with_keys(Slices::in_order(tempfile::tempfile));
        survey = Survey::new(new_slices());
        summary = trace.show_again(&mut survey)?;
        survey.finish().map_err(unsorted)?;
    }
    let most = arguments.top as usize;
    let asked = arguments.thread.as_deref();
    let heap = Heap::of(&survey.memory.profile, &survey.samples);
    let is_of_all = asked.is_none() && arguments.pattern.is_none();
    let chosen = if asked.is_none() { survey.choose(arguments.pattern.as_ref(), most) } else { Vec::new() };
    if chosen.is_empty() && arguments.pattern.is_none() {
        let threads = threads::choose(&survey, asked, most);
        if !threads.chosen.is_empty() || is_of_all && heap.is_some() {
            let trace = trace.path().to_owned();
            return Ok(Explained { trace, summary, survey, targets: Vec::new(), threads, heap, is_of_all });
        }
    }
    if let Some(thread) = asked {
        let what = "it has no states and no samples of a thread";
        return Err(format!("{}: {what} {thread}; `hairline stats --by state` shows all", summary.name));
    }
    if chosen.is_empty() {
        let what = arguments.pattern.as_ref().map_or_else(
            || "it has no slices".to_owned(),
            |pattern| format!("it has no slices of the name {pattern}; `hairline stats` shows all names"),
        );
        let more: String = survey.left_out().iter().map(|note| format!("; {note}")).collect();
        return Err(format!("{}: {what}{more}", summary.name));
    }
    let mut gather = Gather::new(&survey, new_slices(), chosen);
    trace.show_again(&mut gather)?;
    let (targets, lives) = gather.finish().map_err(unsorted)?;
    let mut meanwhile = Meanwhile::new(&survey, new_slices(), targets, &lives);
    if meanwhile.has_questions() {
        trace.show_again(&mut meanwhile)?;
    }
    let targets = meanwhile.finish().map_err(unsorted)?;
    let trace = trace.path().to_owned();
    Ok(Explained { trace, summary, survey, targets, threads: Threads::default(), heap, is_of_all })
}
