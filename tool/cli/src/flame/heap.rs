//! `hairline flame --heap`: who allocated the memory.

use hairline_convert::Item;
use hairline_convert::sampled::Samples;
use hairline_formats::track_event::ALLOCATION;

use crate::flame::lowest::{By, Lowest};
use crate::flame::stacked::{Stacked, Weights};
use crate::folded::step;
use crate::heap_sums::HeapProfile;
use crate::text::{complain, grouped_count};
use crate::trace::{ItemVisitor, TraceArguments};
use crate::track_names::TrackNames;

/// The part of a heap profile. Each means the heap profile, also without `--heap`.
#[derive(Debug, clap::Args)]
#[group(multiple = false, conflicts_with_all = NOT_OF_HEAP)]
pub(super) struct Part {
    /// What was live at the last dump (default)
    #[arg(long)]
    live: bool,
    /// All that was allocated, freed or not
    #[arg(long)]
    allocated: bool,
    /// What was live at the dump in which most was
    #[arg(long)]
    peak: bool,
}

/// The options that a heap profile goes without.
pub(super) const NOT_OF_HEAP: [&str; 6] = ["own", "total", "samples", "at", "time_range", "thread"];

impl Part {
    /// Whether a part is asked for.
    pub(super) fn is_given(&self) -> bool {
        self.live || self.allocated || self.peak
    }
}

/// Reads the heap profile of a trace.
pub(super) fn read(trace: &TraceArguments, lowest: Lowest, part: &Part) -> Result<Stacked, String> {
    let mut heap = Heap::default();
    let summary = trace.show(false, &mut heap)?;
    heap.profile.end_dump();
    let name = &summary.name;
    if heap.profile.left_out > 0 {
        let left_out = grouped_count(heap.profile.left_out, "call stack");
        complain(format_args!("{name}: not shown: {left_out}, because there are too many"));
    }
    if heap.profile.is_empty() {
        return Err(format!(
            "{name}: it has no sampled allocation: HAIRLINE_HEAP=on samples one in 512 KiB on average of a program \
             whose #[global_allocator] is a hairline::Heap; they are written when the session ends, but not into \
             an output that has reached its size limit, and after a kill by `hairline recover`"
        ));
    }
    // A profile has no threads.
    let by = if lowest.by == By::Thread { By::Process } else { lowest.by };
    let weights = heap.weights(part, Lowest { by, ..lowest });
    Ok(Stacked { weights, outcome: summary.outcome(), name: summary.name })
}

/// Collects a heap profile.
#[derive(Default)]
struct Heap {
    profile: HeapProfile,
    samples: Samples,
    names: TrackNames,
}

impl ItemVisitor for Heap {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Track(track) => self.names.set(track),
            Item::Heap(new) => self.profile.add(new, &mut self.samples),
            _ => self.samples.item(item),
        }
    }
}

impl Heap {
    /// The bytes of each call stack that has any.
    fn weights(&self, part: &Part, lowest: Lowest) -> Weights {
        let mut weights = Weights::new();
        for (pid, sums) in self.profile.sums() {
            let weight = match part {
                Part { allocated: true, .. } => sums.allocated,
                Part { peak: true, .. } => sums.most,
                _ => sums.live(),
            };
            let Some(stack) = sums.stack.filter(|_| weight > 0) else { continue };
            let mut steps = lowest.steps(&self.names, self.names.process(pid), None);
            let names = self.samples.names(stack);
            steps.extend(names.iter().filter(|name| *name != ALLOCATION).map(|name| step(name)));
            let sum = weights.entry(steps.join(";")).or_default();
            *sum = sum.saturating_add(i64::try_from(weight).unwrap_or(i64::MAX));
        }
        weights
    }
}
