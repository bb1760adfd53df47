//! `hairline flame --heap`: who allocated the memory.

use std::collections::HashMap;

use hairline_convert::Item;
use hairline_convert::sampled::{Samples, StackId};

use crate::flame::lowest::{By, Lowest};
use crate::flame::stacked::{Stacked, Weights};
use crate::folded::step;
use crate::text::{complain, grouped_count};
use crate::trace::{ItemVisitor, TraceArguments};
use crate::track_names::TrackNames;

/// The part of a heap profile.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(super) struct Part {
    /// What was live at the last dump (default)
    #[arg(long, requires = "heap")]
    live: bool,
    /// All that was allocated, freed or not
    #[arg(long, requires = "heap")]
    allocated: bool,
    /// What was live at the dump in which most was
    #[arg(long, requires = "heap")]
    peak: bool,
}

/// Reads the heap profile of a trace.
pub(super) fn read(trace: &TraceArguments, lowest: Lowest, part: &Part) -> Result<Stacked, String> {
    let mut heap = Heap::default();
    let summary = trace.show(false, &mut heap)?;
    heap.end_dump();
    let name = &summary.name;
    if heap.left_out > 0 {
        let left_out = grouped_count(heap.left_out, "call stack");
        complain(format_args!("{name}: not shown: {left_out}, because there are too many"));
    }
    if heap.time.is_none() {
        return Err(format!("{name}: it has no heap profile: HAIRLINE_HEAP=on adds one"));
    }
    // A profile has no threads.
    let by = if lowest.by == By::Thread { By::Process } else { lowest.by };
    let weights = heap.weights(part, Lowest { by, ..lowest });
    Ok(Stacked { weights, outcome: summary.outcome(), name: summary.name })
}

/// The sums of a call stack: bytes.
#[derive(Clone, Copy, Default)]
struct Sums {
    stack: Option<StackId>,
    allocated: u64,
    freed: u64,
    /// At the peak.
    most: u64,
}

impl Sums {
    fn live(&self) -> u64 {
        self.allocated.saturating_sub(self.freed)
    }
}

/// The limit for call stacks with sums.
const MOST_STACKS: usize = 1 << 20;

/// Collects a heap profile. Each dump has the new sums of the call stacks that have changed.
#[derive(Default)]
struct Heap {
    /// By process, sequence and call stack.
    sums: HashMap<(u64, (u64, u64)), Sums>,
    /// The time of the current dump.
    time: Option<i64>,
    /// The live bytes of all dumps so far at the last one, and at the peak.
    live: u64,
    most: u64,
    /// Call stacks for which there was no room.
    left_out: u64,
    samples: Samples,
    names: TrackNames,
}

impl ItemVisitor for Heap {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Track(track) => self.names.set(track),
            Item::Heap(new) => {
                if self.time.replace(new.time).is_some_and(|time| time != new.time) {
                    self.end_dump();
                }
                let key = (new.pid, new.key);
                if self.sums.len() >= MOST_STACKS && !self.sums.contains_key(&key) {
                    self.left_out += 1;
                    return;
                }
                let sums = self.sums.entry(key).or_default();
                if sums.stack.is_none() {
                    sums.stack = self.samples.stack(new.stack);
                    self.left_out += u64::from(sums.stack.is_none());
                }
                let before = sums.live();
                (sums.allocated, sums.freed) = (new.allocated, new.freed);
                self.live = self.live.saturating_sub(before).saturating_add(sums.live());
            }
            _ => self.samples.item(item),
        }
    }
}

impl Heap {
    /// Notes the sums at a new peak.
    fn end_dump(&mut self) {
        if self.live > self.most {
            self.most = self.live;
            self.sums.values_mut().for_each(|sums| sums.most = sums.live());
        }
    }

    /// The bytes of each call stack that has any.
    fn weights(&self, part: &Part, lowest: Lowest) -> Weights {
        let mut weights = Weights::new();
        for ((pid, _), sums) in &self.sums {
            let weight = match part {
                Part { allocated: true, .. } => sums.allocated,
                Part { peak: true, .. } => sums.most,
                _ => sums.live(),
            };
            let Some(stack) = sums.stack.filter(|_| weight > 0) else { continue };
            let mut steps = lowest.steps(&self.names, self.names.process(*pid), None);
            steps.extend(self.samples.names(stack).iter().map(|name| step(name)));
            let sum = weights.entry(steps.join(";")).or_default();
            *sum = sum.saturating_add(i64::try_from(weight).unwrap_or(i64::MAX));
        }
        weights
    }
}
