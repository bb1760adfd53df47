//! `hairline flame`

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Item, TrackId};

use crate::folded::{draw, step, without_symbols};
use crate::input::{input_identity, is_standard};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::text::{complain, failed, grouped_count, one_line};
use crate::trace::{ItemVisitor, ReadSummary, TraceArguments, unsorted};
use crate::track_names::TrackNames;
use hairline_convert::sampled::Samples;

/// Writes folded stacks or a flame graph.
///
/// Each line is a stack: the names of the slices from the outermost to the innermost, separated by `;`, and
/// the innermost slice's own time in nanoseconds. inferno, speedscope and flamegraph.pl read this form. A
/// slice without an end lasts to the end of the trace. A stack has at most 512 names; slices inside more
/// others share the name "(deeper)".
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline flame trace.pftrace --svg -o trace.svg
  hairline flame trace.fxt --by all | awk '{ print $NF, $0 }' | sort -rn | cut -d' ' -f2-
  hairline flame trace.pftrace --samples --svg -o functions.svg
  hairline flame trace.fxt -o trace.folded       to be dropped on https://www.speedscope.app")]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: TraceArguments,
    /// The output file, which is replaced; - for stdout.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Draw a flame graph as SVG, for browsers.
    #[arg(long, conflicts_with = "total")]
    svg: bool,
    /// The lowest level of each stack.
    #[arg(long, value_enum, default_value_t = By::Thread)]
    by: By,
    /// Weights without the time of inner slices, as other programs expect (default).
    #[arg(long = "self", conflicts_with = "total")]
    own: bool,
    /// The functions of stack samples instead of slices. The weights are numbers of samples.
    #[arg(long, conflicts_with_all = ["own", "total"])]
    samples: bool,
    /// Weights with the time of inner slices. For people: programs would count that time twice.
    #[arg(long)]
    total: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Process and thread
    Thread,
    /// Process: all its threads together
    Process,
    /// Nothing: all processes and threads together
    All,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.samples {
        return run_samples(arguments);
    }
    let (summary, flame) = match gather(arguments) {
        Ok(all) => all,
        Err(e) => return failed(e),
    };
    if flame.stacks.left_out > 0 {
        let left_out = grouped_count(flame.stacks.left_out, "slice");
        complain(format_args!(
            "{}: not shown: {left_out}, because there are too many different stacks",
            summary.name
        ));
    }
    if flame.stacks.deeper > 0 {
        let deeper = grouped_count(flame.stacks.deeper, "slice");
        complain(format_args!(
            "{}: shown as {DEEPER}: {deeper} with more than {MOST_LEVELS} others around",
            summary.name
        ));
    }
    finish(&flame.folded(arguments.by, arguments.total), arguments, summary.outcome())
}

/// Draws stack samples.
fn run_samples(arguments: &Arguments) -> Outcome {
    let mut sampled = Sampled::default();
    let summary = match arguments.trace.show(false, &mut sampled) {
        Ok(summary) => summary,
        Err(e) => return failed(e),
    };
    if sampled.samples.left_out > 0 {
        let left_out = grouped_count(sampled.samples.left_out, "sample");
        complain(format_args!("{}: not shown: {left_out}, because there are too many", summary.name));
    }
    sampled.samples.finish();
    without_symbols(&sampled.samples).iter().for_each(complain);
    finish(&sampled.folded(arguments.by), arguments, summary.outcome())
}

/// Writes the output.
fn finish(folded: &str, arguments: &Arguments, outcome: Outcome) -> Outcome {
    match write(folded, arguments) {
        Ok(()) => outcome,
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => outcome,
        Err(e) => {
            let output = &arguments.output;
            let name = if is_standard(output) { "stdout".to_owned() } else { output.display().to_string() };
            failed(format_args!("{name}: {e}"))
        }
    }
}

/// Collects all stacks, in order of time.
fn gather(arguments: &Arguments) -> Result<(ReadSummary, Flame), String> {
    let mut flame = Flame::default();
    let mut summary = arguments.trace.show(false, &mut flame)?;
    flame.slices.finish(&mut flame.stacks).map_err(unsorted)?;
    if flame.stacks.is_late {
        flame = Flame { slices: Slices::in_order(tempfile::tempfile), ..Flame::default() };
        summary = arguments.trace.show_again(&mut flame)?;
        flame.slices.finish(&mut flame.stacks).map_err(unsorted)?;
    }
    Ok((summary, flame))
}

fn write(folded: &str, arguments: &Arguments) -> io::Result<()> {
    let mut output =
        Output::create(&arguments.output, &[input_identity(arguments.trace.path())])?.or_nothing()?;
    if arguments.svg {
        if folded.is_empty() {
            let what = if arguments.samples { "stack samples" } else { "slices" };
            return Err(io::Error::other(format!("the trace has no {what} to draw")));
        }
        let (unit, what) = if arguments.samples { ("samples", "Function:") } else { ("ns", "Slice:") };
        draw(folded, (title(arguments.trace.path()), unit, what), &mut output)?;
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

/// Collects stack samples.
#[derive(Default)]
struct Sampled {
    samples: Samples,
    track_names: TrackNames,
}

impl ItemVisitor for Sampled {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Track(track) => self.track_names.set(track),
            _ => self.samples.item(item),
        }
    }
}

impl Sampled {
    /// One line for each stack.
    fn folded(&self, by: By) -> String {
        let mut weights: HashMap<String, i64> = HashMap::new();
        for (tid, stack) in self.samples.all_on_cpu() {
            let mut steps = place(&self.track_names, by, self.track_names.thread(tid), tid);
            steps.extend(self.samples.names(stack).iter().map(|name| step(name)));
            *weights.entry(steps.join(";")).or_default() += 1;
        }
        lines(weights)
    }
}

/// The process and the thread of a sample.
fn place(names: &TrackNames, by: By, track: Option<TrackId>, tid: u64) -> Vec<String> {
    let process = track.and_then(|track| names.process_of(track));
    let process = process.map_or_else(|| "(no process)".to_owned(), |process| step(&names.name(process)));
    let thread = track.map_or_else(|| format!("thread {tid}"), |track| step(&names.name(track)));
    match by {
        By::Thread => vec![process, thread],
        By::Process => vec![process],
        By::All => Vec::new(),
    }
}

/// The lines of all stacks, in alphabetical order.
fn lines(weights: HashMap<String, i64>) -> String {
    let mut lines: Vec<_> = weights.into_iter().collect();
    lines.sort_unstable();
    lines.iter().fold(String::new(), |mut out, (stack, weight)| {
        let _ = writeln!(out, "{stack} {weight}");
        out
    })
}

/// Collects stacks.
#[derive(Default)]
struct Flame {
    slices: Slices,
    stacks: Stacks,
    track_names: TrackNames,
}

impl ItemVisitor for Flame {
    fn item(&mut self, item: &Item<'_>) {
        if let Item::Track(track) = item {
            self.track_names.set(track);
        }
        self.slices.item(item, &mut self.stacks);
    }
}

/// The limit for different stacks.
const MOST_STACKS: usize = 1 << 20;

/// The limit for the names of a stack. A line has all of them, so the lines of deeper stacks would need space
/// in proportion to the square of the depth.
const MOST_LEVELS: usize = 512;

/// The name that slices below the last level share.
const DEEPER: &str = "(deeper)";

/// All stacks as a tree. A node is a stack that ends with its slice.
#[derive(Default)]
struct Stacks {
    nodes: Vec<Node>,
    /// Nodes by their parent and the key of their name.
    by_step: HashMap<(Option<u32>, u32), u32>,
    left_out: u64,
    /// The number of slices below the last level.
    deeper: u64,
    /// Whether an event came too late to be put in order.
    is_late: bool,
}

struct Node {
    below: Option<u32>,
    /// The key of the name; on the lowest level, the number of the track; [`BELOW_ALL`].
    what: u32,
    own: i64,
    total: i64,
}

/// Stands for the names of all slices below the last level.
const BELOW_ALL: u32 = u32::MAX;
/// The mark of a frame whose stack has no node.
const NO_NODE: u32 = u32::MAX;

impl Stacks {
    fn step(&mut self, below: Option<u32>, what: u32) -> Option<u32> {
        if let Some(node) = self.by_step.get(&(below, what)) {
            return Some(*node);
        }
        if self.nodes.len() >= MOST_STACKS {
            return None;
        }
        let node = self.nodes.len() as u32; // at most MOST_STACKS
        self.nodes.push(Node { below, what, own: 0, total: 0 });
        self.by_step.insert((below, what), node);
        Some(node)
    }

    /// The node of the innermost frame. Marks each frame with its node plus 1, so each frame is looked up
    /// once only, however many slices it encloses.
    fn node_of(&mut self, track: TrackId, above: &mut [Frame]) -> Option<u32> {
        let levels = above.len().min(MOST_LEVELS);
        let above = &mut above[..levels];
        let unknown = above.iter().rposition(|frame| frame.mark != 0).map_or(0, |known| known + 1);
        let mut node = match unknown.checked_sub(1).map(|known| above[known].mark) {
            None => self.step(None, track.0),
            Some(NO_NODE) => None,
            Some(mark) => Some(mark - 1),
        };
        for frame in &mut above[unknown..] {
            node = node.and_then(|node| self.step(Some(node), frame.name.0));
            frame.mark = node.map_or(NO_NODE, |node| node + 1);
        }
        node
    }

    fn add(&mut self, slice: &Slice, above: &mut [Frame]) {
        let depth = above.len();
        let what = if depth < MOST_LEVELS { slice.name.0 } else { BELOW_ALL };
        self.deeper += u64::from(depth >= MOST_LEVELS);
        let outer = self.node_of(slice.track, above);
        match outer.and_then(|outer| self.step(Some(outer), what)) {
            Some(node) => {
                let node = &mut self.nodes[node as usize];
                node.own = node.own.saturating_add(slice.self_time);
                // The time of slices inside another one of the same node counts once.
                if depth <= MOST_LEVELS {
                    node.total = node.total.saturating_add(slice.duration);
                }
            }
            None => self.left_out += 1,
        }
    }
}

impl SliceSink for Stacks {
    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.is_late |= matches!(what, Defect::Late | Defect::AfterInner);
    }

    fn slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        self.add(slice, above);
    }

    fn open_slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        self.add(slice, above);
    }
}

impl Flame {
    /// One line for each stack with a weight.
    fn folded(&self, by: By, is_total: bool) -> String {
        // Stacks of different tracks may be equal now.
        let mut weights: HashMap<String, i64> = HashMap::new();
        let mut steps = Vec::new();
        for node in &self.stacks.nodes {
            let weight = if is_total { node.total } else { node.own };
            let Some(mut below) = node.below.filter(|_| weight > 0) else { continue };
            steps.clear();
            steps.push(self.name(node.what));
            let lowest = loop {
                let node = &self.stacks.nodes[below as usize];
                let Some(next) = node.below else { break TrackId(node.what) };
                steps.push(self.name(node.what));
                below = next;
            };
            self.place(by, lowest, &mut steps);
            let stack = steps.iter().rev().map(String::as_str).collect::<Vec<_>>().join(";");
            let sum = weights.entry(stack).or_default();
            *sum = sum.saturating_add(weight);
        }
        lines(weights)
    }

    fn place(&self, by: By, track: TrackId, steps: &mut Vec<String>) {
        let process = self.track_names.process_of(track);
        if by == By::Thread && process != Some(track) {
            steps.push(step(&self.track_names.name(track)));
        }
        if by != By::All {
            steps.push(
                process.map_or_else(
                    || "(no process)".to_owned(),
                    |process| step(&self.track_names.name(process)),
                ),
            );
        }
    }

    fn name(&self, what: u32) -> String {
        if what == BELOW_ALL {
            return DEEPER.to_owned();
        }
        match self.slices.keys().text(Key(what)) {
            "" => "(no name)".to_owned(),
            name => step(name),
        }
    }
}
