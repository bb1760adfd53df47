//! The stacks of slices.
//!
//! The life of a future is on a track below that of the future which polls it. Intervals come in the order of
//! their ends, so what a stack weighs inside of one waits until that one ends, and its names are known.

use std::cmp::Reverse;
use std::io;

use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Item, TrackId};

use crate::flame::lowest::Lowest;
use crate::flame::nested::{Nested, Part, Waiting};
use crate::flame::stacked::{Stacked, Weights};
use crate::flame::tree::{BELOW_ALL, BELOW_ANOTHER, MOST_LEVELS, Tree};
use crate::folded::step;
use crate::inside::Inside;
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
    let make = |slices| Flame { slices, stacks: Stacks::new(time) };
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
    Ok(Stacked { weights: flame.weights(lowest), outcome: summary.outcome(), name: summary.name })
}

/// Collects stacks.
struct Flame {
    slices: Slices,
    stacks: Stacks,
}

impl ItemVisitor for Flame {
    fn item(&mut self, item: &Item<'_>) {
        if let Item::Track(track) = item {
            self.stacks.track_names.set(track);
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
        self.stacks.finish();
        Ok(self.stacks.is_late)
    }
}

/// The limit for tracks below each other.
const MOST_TRACKS: usize = 64;

/// The name that slices below the last level share.
const DEEPER: &str = "(deeper)";

struct Stacks {
    time: Time,
    tree: Tree,
    track_names: TrackNames,
    /// What is inside of slices on tracks that are no threads: the times, and the stacks.
    inside: Inside,
    nested: Nested,
    /// The slices without an end on such tracks: those inside of others have to precede them.
    open: Vec<Interval>,
    left_out: u64,
    /// The number of slices below the last level.
    deeper: u64,
    /// Whether an event came too late to be put in order.
    is_late: bool,
}

/// A slice on a track that is no thread.
#[derive(Clone, Copy)]
struct Interval {
    slice: Slice,
    /// Its stack; of a slice below another track, from its own track's outermost slice on. `None` if there
    /// are too many.
    node: Option<u32>,
    /// The number of slices around it on its track.
    depth: usize,
    /// The track of the slices around those of its track.
    around: Option<TrackId>,
}

impl Stacks {
    fn new(time: Time) -> Self {
        Self {
            time,
            tree: Tree::default(),
            track_names: TrackNames::default(),
            inside: Inside::default(),
            nested: Nested::default(),
            open: Vec::new(),
            left_out: 0,
            deeper: 0,
            is_late: false,
        }
    }

    /// The total time of a slice. That of slices inside another one of the same node counts once.
    fn total(slice: &Slice, depth: usize) -> i64 {
        if depth > MOST_LEVELS { 0 } else { slice.duration }
    }

    fn add(&mut self, node: Option<u32>, count: u32, weight: i64) {
        match node {
            Some(node) => self.tree.add(node, weight),
            None => self.left_out += u64::from(count),
        }
    }

    fn is_thread(&self, track: TrackId) -> bool {
        self.track_names.tid(track).is_some()
    }

    /// Adds a slice of a thread.
    fn add_of_thread(&mut self, slice: &Slice, above: &mut [Frame]) {
        let depth = above.len();
        let weight = match self.time {
            Time::Own => slice.self_time,
            Time::Total => Self::total(slice, depth),
        };
        self.deeper += u64::from(depth >= MOST_LEVELS);
        let node = self.tree.node_of(slice.track, above, slice.name.0);
        self.add(node, 1, weight);
    }

    fn interval(&mut self, slice: &Slice, above: &mut [Frame]) -> Interval {
        let depth = above.len();
        self.deeper += u64::from(depth >= MOST_LEVELS);
        let around = self.track_names.track_above(slice.track);
        let lowest = if around.is_some() { BELOW_ANOTHER } else { slice.track };
        let node = self.tree.node_of(lowest, above, slice.name.0);
        Interval { slice: *slice, node, depth, around }
    }

    /// Adds an interval, with the stacks inside of it, whose intervals have ended before.
    fn add_interval(&mut self, interval: &Interval) {
        let Interval { ref slice, node, depth, around } = *interval;
        let weight = match self.time {
            Time::Own => self.inside.take(slice, &self.track_names),
            Time::Total => Self::total(slice, depth),
        };
        let waiting = self.nested.take(slice.track);
        let part = |node| Part { start: slice.start, node, track: slice.track, count: 1, weight };
        match (&waiting, node, around) {
            (None, Some(node), Some(around)) if depth == 0 => return self.wait(around, [part(node)]),
            (None, _, None) => return self.add(node, 1, weight),
            _ => {}
        }
        let mut waiting = waiting.unwrap_or_default();
        self.add_named(&mut waiting, around, node, part(0));
        while let Some(part) = waiting.pop(slice.start) {
            let (joined, weight) = self.joined(node, &part);
            self.add_named(&mut waiting, around, joined, Part { track: slice.track, weight, ..part });
        }
        if depth > 0 {
            let beyond_limit = self.nested.put(slice.track, waiting);
            return self.add_all_lowest(beyond_limit);
        }
        // What is left began before it.
        let (left, named) = waiting.into_parts();
        left.iter().for_each(|part| self.add_lowest(part));
        match around {
            Some(around) => {
                self.wait(around, named.into_iter().map(|part| Part { start: slice.start, ..part }));
            }
            None => named.iter().for_each(|part| self.add_lowest(part)),
        }
    }

    /// Adds parts that wait for the slice around them, on another track.
    fn wait(&mut self, around: TrackId, parts: impl IntoIterator<Item = Part>) {
        let beyond_limit = self.nested.add(around, parts);
        self.add_all_lowest(beyond_limit);
    }

    /// Adds a part whose stack has the names of its track, which may wait for those around them.
    fn add_named(&mut self, waiting: &mut Waiting, around: Option<TrackId>, node: Option<u32>, part: Part) {
        match (node, around) {
            (Some(node), Some(_)) => waiting.push_named(Part { node, ..part }),
            _ => self.add(node, part.count, part.weight),
        }
    }

    /// The stack of a part with the names around it, and its weight there.
    fn joined(&mut self, around: Option<u32>, part: &Part) -> (Option<u32>, i64) {
        let Some(around) = around else { return (None, part.weight) };
        let inner = self.tree.levels(part.node);
        let levels = self.tree.levels(around) + inner;
        if levels > MOST_LEVELS && inner <= MOST_LEVELS {
            self.deeper += u64::from(part.count);
        }
        let is_counted = self.time == Time::Own || levels <= MOST_LEVELS + 1;
        (self.tree.join(around, part.node), if is_counted { part.weight } else { 0 })
    }

    /// Adds a part that nothing is around.
    fn add_lowest(&mut self, part: &Part) {
        let track = self.tree.lowest(part.track);
        let (node, weight) = self.joined(track, part);
        self.add(node, part.count, weight);
    }

    fn add_all_lowest(&mut self, all: Vec<Waiting>) {
        for waiting in all {
            let (below, named) = waiting.into_parts();
            below.iter().chain(&named).for_each(|part| self.add_lowest(part));
        }
    }

    /// Ends the trace: adds the intervals without an end, and what waits for one.
    fn finish(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        // All last to the end of the trace, so those inside others are those that began later.
        open.sort_by_cached_key(|interval| {
            let above = |track: &TrackId| self.track_names.track_above(*track);
            let tracks = std::iter::successors(Some(interval.slice.track), above).take(MOST_TRACKS).count();
            Reverse((interval.slice.start, tracks))
        });
        open.iter().for_each(|interval| self.add_interval(interval));
        let all = self.nested.take_all();
        self.add_all_lowest(all);
    }
}

impl SliceSink for Stacks {
    fn begins(&mut self, slice: &Frame, track: TrackId, depth: usize) {
        if depth == 0 && self.time == Time::Own {
            self.inside.begin(track, slice.start, &self.track_names);
        }
    }

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.is_late |= matches!(what, Defect::Late | Defect::AfterInner);
    }

    fn slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        if self.is_thread(slice.track) {
            return self.add_of_thread(slice, above);
        }
        let interval = self.interval(slice, above);
        self.add_interval(&interval);
    }

    fn open_slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        if self.is_thread(slice.track) {
            return self.add_of_thread(slice, above);
        }
        let interval = self.interval(slice, above);
        self.open.push(interval); // at most 524,288
    }
}

impl Flame {
    fn weights(&self, lowest: Lowest) -> Weights {
        // Stacks of different tracks may be equal now.
        let mut weights = Weights::new();
        let mut steps = Vec::new();
        for node in self.stacks.tree.nodes() {
            let Some(mut below) = node.below.filter(|_| node.weight > 0) else { continue };
            steps.clear();
            steps.push(self.name(node.what));
            let track = loop {
                let node = self.stacks.tree.node(below);
                let Some(next) = node.below else { break TrackId(node.what) };
                steps.push(self.name(node.what));
                below = next;
            };
            let names = &self.stacks.track_names;
            let process = names.process_of(track);
            let thread = (process != Some(track)).then(|| lowest.name(names, track));
            steps.extend(lowest.steps(names, process, thread).into_iter().rev());
            let stack = steps.iter().rev().map(String::as_str).collect::<Vec<_>>().join(";");
            let sum = weights.entry(stack).or_default();
            *sum = sum.saturating_add(node.weight);
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

#[cfg(test)]
mod tests {
    use hairline_convert::{Track, TrackKind};

    use super::*;
    use crate::flame::tree::Node;

    /// Tracks by number, each with the one that it is below, or 0.
    fn stacks(time: Time, parents: &[(u32, u32)]) -> Stacks {
        let mut stacks = Stacks::new(time);
        for (id, parent) in parents {
            let parent = Some(TrackId(*parent)).filter(|parent| parent.0 > 0);
            stacks.track_names.set(&Track { parent, ..Track::new(TrackId(*id), TrackKind::Slices) });
        }
        stacks
    }

    /// Ends an interval with these names on its track, the outermost first.
    fn end(stacks: &mut Stacks, track: u32, names: &[u32], (start, end): (i64, i64)) {
        let (track, name, duration) = (TrackId(track), Key(names[names.len() - 1]), end - start);
        let busy = if names.len() == 1 { duration } else { 0 };
        let self_time = duration;
        let slice = Slice { track, name, category: name, start, duration, self_time, busy, tag: 0 };
        let around = stacks.track_names.track_above(track);
        let lowest = stacks.tree.lowest(if around.is_some() { BELOW_ANOTHER } else { track });
        let node = names.iter().fold(lowest, |node, name| stacks.tree.inside(node?, *name));
        stacks.add_interval(&Interval { slice, node, depth: names.len() - 1, around });
    }

    /// The weights: the number of the track, the names, the weight.
    fn weights(stacks: &mut Stacks) -> Vec<(Vec<u32>, i64)> {
        stacks.finish();
        let tree = &stacks.tree;
        let path = |node: &Node| {
            let above = |node: &&Node| node.below.map(|below| tree.node(below));
            let mut names: Vec<_> = std::iter::successors(Some(node), above).map(|node| node.what).collect();
            names.reverse();
            (names, node.weight)
        };
        let mut weights: Vec<_> = tree.nodes().iter().filter(|node| node.weight > 0).map(path).collect();
        weights.sort_unstable();
        weights
    }

    #[test]
    fn a_life_is_inside_the_innermost_slice_that_is_around_all_of_it() {
        let mut stacks = stacks(Time::Own, &[(1, 0), (2, 1), (3, 2), (4, 1)]);
        end(&mut stacks, 3, &[30], (22, 24));
        end(&mut stacks, 2, &[20, 21], (21, 25));
        end(&mut stacks, 2, &[20], (20, 30));
        end(&mut stacks, 1, &[10, 11], (15, 40));
        end(&mut stacks, 2, &[20], (50, 60));
        end(&mut stacks, 4, &[40], (12, 70)); // began before the span
        end(&mut stacks, 1, &[10], (10, 100));
        let expected = [
            (vec![1, 10], 90 - 58),
            (vec![1, 10, 11], 25 - 10),
            (vec![1, 10, 11, 20], 10 - 4),
            (vec![1, 10, 11, 20, 21], 4 - 2),
            (vec![1, 10, 11, 20, 21, 30], 2),
            (vec![1, 10, 20], 10),
            (vec![1, 10, 40], 58),
        ];
        assert_eq!(weights(&mut stacks), expected);
        assert_eq!(stacks.nested.count(), 0);
    }

    #[test]
    fn a_life_that_ends_after_the_one_around_it_is_inside_of_none() {
        let mut stacks = stacks(Time::Own, &[(1, 0), (2, 1), (3, 2)]);
        end(&mut stacks, 1, &[10], (10, 20));
        end(&mut stacks, 3, &[30], (16, 25));
        end(&mut stacks, 2, &[20], (15, 30));
        end(&mut stacks, 1, &[10], (20, 40));
        let expected = [(vec![1, 10], 30), (vec![2, 20], 15 - 9), (vec![2, 20, 30], 9)];
        assert_eq!(weights(&mut stacks), expected);
    }

    #[test]
    fn stacks_of_several_tracks_have_a_last_level_too() {
        let names: Vec<_> = (0..300).collect();
        for (time, deeper) in [(Time::Own, 88), (Time::Total, 88)] {
            let mut stacks = stacks(time, &[(1, 0), (2, 1)]);
            for levels in (1..=300).rev() {
                let at = 1000 + levels as i64;
                end(&mut stacks, 2, &names[..levels], (at, 3000 - at));
            }
            for levels in (1..=300).rev() {
                let at = levels as i64;
                end(&mut stacks, 1, &names[..levels], (at, 4000 - at));
            }
            let weights = weights(&mut stacks);
            let deepest = weights.iter().max_by_key(|(names, _)| names.len()).expect("a stack");
            assert_eq!((deepest.0.len(), deepest.0.last()), (1 + MOST_LEVELS + 1, Some(&BELOW_ALL)));
            // The outermost of them is around all others.
            assert_eq!(deepest.1, 3000 - 2 * (1000 + 213), "{time:?}");
            assert_eq!(stacks.deeper, deeper);
        }
    }

    #[test]
    fn lives_that_wait_have_a_limit() {
        let mut stacks = stacks(Time::Own, &[(1, 0), (2, 1), (3, 0), (4, 3)]);
        end(&mut stacks, 4, &[40], (0, 5));
        let count = (1 << 20) + (1 << 17);
        for start in (0..count).map(|n| 10 * n) {
            end(&mut stacks, 2, &[20], (start, start + 5));
        }
        assert!(stacks.nested.count() <= 1 << 20, "{}", stacks.nested.count());
        end(&mut stacks, 3, &[30], (0, 20));
        let expected = [(vec![2, 20], 5 * count), (vec![3, 30], 15), (vec![3, 30, 40], 5)];
        assert_eq!(weights(&mut stacks), expected);
    }
}
