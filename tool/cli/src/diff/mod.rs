//! `hairline diff`

mod chance;
mod compare;
mod condition;
mod random;
mod reading;
mod show;

use std::path::PathBuf;

use hairline::Filter;

use crate::diff::compare::{Comparison, Side};
use crate::diff::condition::Condition;
use crate::diff::reading::read;
use crate::input::is_standard;
use crate::opening::Threads;
use crate::outcome::Outcome;
use crate::text::{complain, failed, for_programs, put, written};

/// Shows what takes longer in some traces than in others, beyond chance.
///
/// Compares the figures of `stats` (count, total, p50, p99) for each name, and prints those that differ by
/// more than chance explains. The traces of a side are recordings of one program; the side's figure is their
/// geometric mean. Whether a difference can be chance is found by exchanging traces between the sides at
/// random: if both sides are recordings of one program, made in turns, then in one comparison of a hundred
/// any figure is reported (`--alarms`). That needs five traces a side. With fewer, each trace is cut into
/// parts of equal time, and the parts are exchanged; a difference between two runs of the same program, which
/// is often 10 % on a shared machine, then looks like one of the program, and names that are not in all parts
/// are not compared. The category of a name is `*` if its slices have several.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline diff old.pftrace new.pftrace
  hairline diff old-*.pftrace -- new-*.pftrace
  hairline diff --fail-if 'p99 > +10%' --fail-if 'count > +0%' old-*.fxt -- new-*.fxt
  hairline diff --json old-*.fxt -- new-*.fxt | jq '.figures[] | select(.changed)'")]
pub(crate) struct Arguments {
    /// The old trace and the new one; or all old ones, with -- before the new ones.
    #[arg(value_name = "TRACE", required = true)]
    old: Vec<PathBuf>,
    /// The new traces.
    #[arg(value_name = "NEW", last = true)]
    new: Vec<PathBuf>,
    /// Compare only slices of these categories: "net,db.*,-db.verbose", as in HAIRLINE_CATEGORIES.
    #[arg(long, visible_alias = "categories", value_name = "FILTER", allow_hyphen_values = true)]
    #[arg(value_parser = Filter::parse)]
    category: Option<Filter>,
    /// Exit with 6 if a figure changed beyond chance, by --least and by more than this: "p99 > +10%",
    /// "total < -5%". May be given several times. A trace without slices to compare is then an error.
    #[arg(long, value_name = "CONDITION", value_parser = Condition::parse)]
    fail_if: Vec<Condition>,
    /// The share of comparisons of equal programs in which anything is reported, from 0.001 on. Below 0.01 it
    /// takes more than five traces a side.
    #[arg(long, value_name = "PART", default_value_t = 0.01, value_parser = part)]
    alarms: f64,
    /// Report only changes of at least this many percent. Default: 1 with five traces a side, else 10.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    least: Option<f64>,
    /// Print all figures, also those whose difference can be chance.
    #[arg(long)]
    all: bool,
    /// Print all figures as JSON, times in nanoseconds.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print all figures as CSV, times in nanoseconds.
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    threads: Threads,
}

fn part(text: &str) -> Result<f64, String> {
    match text.parse() {
        // Of so few exchanges at least, the chance of a change is found.
        Ok(part) if (0.001..1.0).contains(&part) => Ok(part),
        _ => Err("give a number from 0.001 to less than 1, like 0.01".to_owned()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..1e6).contains(&percent) => Ok(percent),
        _ => Err("give a number of percent, like 2".to_owned()),
    }
}

impl Arguments {
    /// The traces of both sides.
    fn sides(&self) -> Result<[&[PathBuf]; 2], String> {
        let sides = match (&self.old[..], &self.new[..]) {
            (old, new) if !new.is_empty() => [old, new],
            ([old, new], []) => [std::slice::from_ref(old), std::slice::from_ref(new)],
            _ => return Err("give two traces, or the old ones, -- and the new ones".to_owned()),
        };
        if sides.concat().iter().any(|path| is_standard(path)) {
            return Err("stdin can be read only once: save the trace to a file".to_owned());
        }
        Ok(sides)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let sides = match arguments.sides() {
        Ok(sides) => sides,
        Err(e) => {
            complain(e);
            return Outcome::Usage;
        }
    };
    let parts = chance::parts(sides.map(<[PathBuf]>::len), arguments.alarms);
    let mut outcome = Outcome::Done;
    let mut read_side = |paths: &[PathBuf]| -> Result<Side, String> {
        let mut side = Side::default();
        for path in paths {
            let (trace, read) =
                read(path, arguments.threads.into(), parts.unwrap_or(1), arguments.category.as_ref())?;
            outcome = outcome.max(read);
            side.add(trace);
        }
        Ok(side)
    };
    let both = read_side(sides[0]).and_then(|old| Ok([old, read_side(sides[1])?]));
    let both = match both {
        Ok(both) => both,
        Err(e) => return failed(e),
    };
    compare::doubts(&both).iter().for_each(complain);
    let least = arguments.least.unwrap_or(if parts.is_none() { 1.0 } else { 10.0 }) / 100.0;
    let comparison = Comparison::of(&both, arguments.alarms, least, parts);
    let shown = if arguments.json {
        for_programs(show::json(&comparison))
    } else if arguments.csv {
        for_programs(show::csv(&comparison))
    } else {
        show::text(&comparison, arguments.all)
    };
    outcome = written(put(&shown), "stdout").max(outcome);
    if !arguments.fail_if.is_empty() && both.iter().any(|side| side.empty().next().is_some()) {
        outcome = failed("--fail-if needs slices in each trace").max(outcome);
    }
    let met: Vec<_> = arguments.fail_if.iter().filter_map(|condition| condition.met(&comparison)).collect();
    met.iter().for_each(complain);
    if met.is_empty() { outcome } else { outcome.max(Outcome::Changed) }
}
