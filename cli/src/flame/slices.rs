//! The stacks of slices.

use std::collections::HashMap;
use std::io;

use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Item, TrackId};

use crate::flame::lowest::Lowest;
use crate::flame::stacked::{Stacked, Weights};
use crate::folded::step;
use crate::paired::{PairingVisitor, show_paired};
use crate::text::{complain, grouped_count};
use crate::trace::{ItemVisitor, TraceArguments};
use crate::track_names::TrackNames;

/// What a stack weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// The time of its innermost slice without those inside it.
    Own,
    /// All time of its innermost slice.
    Total,
}

/// Reads the stacks of a trace.
pub(super) fn read(trace: &TraceArguments, lowest: Lowest, time: Time) -> Result<Stacked, String> {
    let make = |slices| Flame { slices, ..Flame::default() };
    let (summary, flame) = show_paired(trace, make)?;
    let name = &summary.name;
    if flame.stacks.left_out > 0 {
        let left_out = grouped_count(flame.stacks.left_out, "slice");
        complain(format_args!("{name}: not shown: {left_out}, because there are too many different stacks"));
    }
    if flame.stacks.deeper > 0 {
        let deeper = grouped_count(flame.stacks.deeper, "slice");
        complain(format_args!(
            "{name}: shown as {DEEPER}: {deeper} with more than {MOST_LEVELS} others around"
        ));
    }
    Ok(Stacked { weights: flame.weights(lowest, time), outcome: summary.outcome(), name: summary.name })
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

    fn spans(&mut self, _: i64, last: i64) {
        self.slices.lasts_to(last);
    }
}

impl PairingVisitor for Flame {
    fn finish(&mut self) -> io::Result<bool> {
        self.slices.finish(&mut self.stacks)?;
        Ok(self.stacks.is_late)
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
    fn weights(&self, lowest: Lowest, time: Time) -> Weights {
        // Stacks of different tracks may be equal now.
        let mut weights = Weights::new();
        let mut steps = Vec::new();
        for node in &self.stacks.nodes {
            let weight = if time == Time::Total { node.total } else { node.own };
            let Some(mut below) = node.below.filter(|_| weight > 0) else { continue };
            steps.clear();
            steps.push(self.name(node.what));
            let track = loop {
                let node = &self.stacks.nodes[below as usize];
                let Some(next) = node.below else { break TrackId(node.what) };
                steps.push(self.name(node.what));
                below = next;
            };
            let names = &self.track_names;
            let process = names.process_of(track);
            let thread = (process != Some(track)).then(|| lowest.name(names, track));
            steps.extend(lowest.steps(names, process, thread).into_iter().rev());
            let stack = steps.iter().rev().map(String::as_str).collect::<Vec<_>>().join(";");
            let sum = weights.entry(stack).or_default();
            *sum = sum.saturating_add(weight);
        }
        weights
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
