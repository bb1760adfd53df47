//! `hairline flame`

mod compared;
mod heap;
mod lowest;
mod nested;
mod sampled;
mod slices;
mod stacked;
mod tree;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::flame::lowest::{By, Lowest, Naming};
use crate::flame::slices::Time;
use crate::flame::stacked::{Stacked, Weights};
use crate::folded::{Weighed, draw};
use crate::input::{input_identity, is_standard};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::pattern::Pattern;
use crate::selection::Selection;
use crate::text::{complain, failed, one_line};
use crate::trace::TraceArguments;
use crate::transfer::check_streams;

/// Writes folded stacks or a flame graph.
///
/// Each line is a stack: the names of the slices from the outermost to the innermost, separated by `;`, and
/// the innermost slice's own time in nanoseconds. inferno, speedscope and flamegraph.pl read this form. A
/// slice without an end lasts to the end of the trace. A stack has at most 512 names; slices inside more
/// others share the name "(deeper)".
///
/// An interval on a track below that of another interval is inside of it: the life of a future in that of the
/// future which polls it, or a wait of a task in the task's life. The own time of an interval is the time in
/// which nothing was inside of it. Intervals inside of it may overlap; the weights of each have its whole
/// time, so their sum may be more than the time of the interval around them.
///
/// With --diff, a line has two weights, the old one first, as difffolded.pl writes them for inferno and
/// flamegraph.pl. The old ones are multiplied by a factor, so that both traces have the same sum: runs of
/// different length then compare. stderr has the factor.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline flame trace.pftrace --svg -o trace.svg
  hairline flame trace.fxt --by all | awk '{ print $NF, $0 }' | sort -rn | cut -d' ' -f2-
  hairline flame trace.pftrace --samples --svg -o functions.svg
  hairline flame trace.pftrace --at net/request --svg -o request.svg
  hairline flame --samples --diff old.pftrace new.pftrace --svg -o changed.svg
  hairline flame trace.pftrace --time-range 1.5s..2s --svg -o slow.svg
  hairline flame trace.pftrace --heap --peak --svg -o memory.svg
  hairline flame trace.fxt -o trace.folded       to be dropped on https://www.speedscope.app")]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: TraceArguments,
    #[command(flatten)]
    selection: Selection,
    /// The output file, which is replaced; - for stdout.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Draw a flame graph as SVG, for browsers. With --diff, what grew is red, what shrank is blue.
    #[arg(long, conflicts_with = "total")]
    svg: bool,
    /// The lowest level of each stack. With --diff, names without ids, which differ in two runs.
    #[arg(long, value_enum, default_value_t = By::Thread)]
    by: By,
    /// Weights without the time of inner slices, as other programs expect (default).
    #[arg(long = "self", conflicts_with = "total")]
    own: bool,
    /// The functions of stack samples instead of slices. The weights are numbers of samples.
    #[arg(long, conflicts_with_all = ["own", "total"])]
    samples: bool,
    /// The functions of the stack samples that were taken while a slice of this name was open on their
    /// thread: a name, or a category and a name like net/request. * matches any characters.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["own", "total"])]
    at: Option<Pattern>,
    /// The functions of a heap profile instead of slices. The weights are bytes.
    #[arg(long, conflicts_with_all = heap::NOT_OF_HEAP)]
    heap: bool,
    #[command(flatten)]
    of_heap: heap::Part,
    /// Compare with this trace: each stack has its weight there and in TRACE.
    #[arg(long, value_name = "OLD", conflicts_with = "total")]
    diff: Option<PathBuf>,
    /// With --diff: leave the old weights as they are.
    #[arg(long, requires = "diff")]
    raw: bool,
    /// Weights with the time of inner slices. For people: programs would count that time twice.
    #[arg(long)]
    total: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let inputs: Vec<_> = arguments.diff.iter().cloned().chain([arguments.trace.path().to_owned()]).collect();
    if let Err(what) = check_streams(&inputs) {
        complain(what);
        return Outcome::Usage;
    }
    let (folded, outcome) = match fold(arguments) {
        Ok(folded) => folded,
        Err(e) => return failed(e),
    };
    match write(&folded, arguments, &inputs) {
        Ok(()) => outcome,
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => outcome,
        Err(e) => {
            let output = &arguments.output;
            let name = if is_standard(output) { "stdout".to_owned() } else { output.display().to_string() };
            failed(format_args!("{name}: {e}"))
        }
    }
}

impl Arguments {
    fn is_of_heap(&self) -> bool {
        self.heap || self.of_heap.is_given()
    }

    fn is_of_samples(&self) -> bool {
        self.samples || self.at.is_some()
    }

    /// What is drawn: the word for all weights, their unit, and what a name is.
    fn words(&self) -> (&'static str, &'static str, &'static str) {
        if self.is_of_heap() {
            ("bytes", "bytes", "Function:")
        } else if self.is_of_samples() {
            ("samples", "samples", "Function:")
        } else {
            ("times", "ns", "Slice:")
        }
    }

    /// Why a trace without stacks has none.
    fn why_empty(&self) -> &'static str {
        if self.is_of_heap() {
            "nothing was live then: `--allocated` has what was freed too, and `--peak` what was live at a peak"
        } else if self.selection.is_all() {
            "it has no slices: `--samples` takes the functions of stack samples instead"
        } else {
            "the chosen part of it has no slices: `--samples` takes the functions of stack samples instead"
        }
    }

    fn stacks(&self, trace: &TraceArguments) -> Result<Stacked, String> {
        let naming = if self.diff.is_some() { Naming::WithoutIds } else { Naming::WithIds };
        let lowest = Lowest { by: self.by, naming };
        if self.is_of_heap() {
            return heap::read(trace, lowest, &self.of_heap);
        }
        if self.is_of_samples() {
            return sampled::read(trace, lowest, self.at.as_ref(), self.selection.is_all());
        }
        slices::read(trace, lowest, if self.total { Time::Total } else { Time::Own })
    }
}

/// The lines of the output.
fn fold(arguments: &Arguments) -> Result<(String, Outcome), String> {
    let trace = arguments.trace.part(&arguments.selection);
    let Some(old) = &arguments.diff else {
        let stacked = arguments.stacks(&trace)?;
        if stacked.weights.is_empty() {
            let why = format!("{}: {}", stacked.name, arguments.why_empty());
            if arguments.svg {
                return Err(why);
            }
            complain(why); // no line is the truth
        }
        return Ok((lines(stacked.weights), stacked.outcome));
    };
    let mut old = arguments.stacks(&trace.with_path(old))?;
    let new = arguments.stacks(&trace)?;
    if let Some(empty) = [&old, &new].into_iter().find(|side| side.weights.is_empty()) {
        return Err(format!("{}: it has no slices to compare", empty.name));
    }
    if !arguments.raw {
        let factor = compared::normalise(&mut old, &new);
        let (what, ..) = arguments.words();
        complain(format_args!(
            "{}: {what} multiplied by {factor:.4}: their sum is then that of {} (--raw shows them as they are)",
            old.name, new.name
        ));
    }
    Ok((compared::lines(&old, &new), old.outcome.max(new.outcome)))
}

fn write(folded: &str, arguments: &Arguments, inputs: &[PathBuf]) -> io::Result<()> {
    let identities: Vec<_> = inputs.iter().map(|input| input_identity(input)).collect();
    let mut output = Output::create(&arguments.output, &identities)?.or_nothing()?;
    if arguments.svg {
        if folded.is_empty() {
            return Err(io::Error::other("the trace has no slices to draw"));
        }
        let (_, unit, what) = arguments.words();
        let weighed = if arguments.diff.is_some() { Weighed::Twice } else { Weighed::Once };
        let titles: Vec<_> = inputs.iter().map(|input| title(input)).collect();
        draw((folded, weighed), (titles.join(" → "), unit, what), &mut output)?;
    } else {
        output.write_all(folded.as_bytes())?;
    }
    output.keep()
}

fn title(path: &Path) -> String {
    if is_standard(path) {
        return "stdin".to_owned();
    }
    path.file_name().map_or_else(|| "trace".to_owned(), |name| one_line(&name.to_string_lossy()))
}

/// The lines of all stacks, in alphabetical order.
fn lines(weights: Weights) -> String {
    let mut lines: Vec<_> = weights.into_iter().collect();
    lines.sort_unstable();
    lines.iter().fold(String::new(), |mut out, (stack, weight)| {
        let _ = writeln!(out, "{stack} {weight}");
        out
    })
}
