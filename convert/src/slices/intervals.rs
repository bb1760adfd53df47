//! A tree of the complete slices of a track, here called intervals.
//!
//! Tracers write intervals at their begin (parents first) or at their end (children first), sorted or not. So
//! an interval is inserted where it belongs by time: into the innermost interval around it, and around the
//! intervals inside it. An interval is emitted when it is certain to be complete. If memory runs out, the
//! oldest intervals are emitted first. A stretch of time remains in their place, and an enclosing interval
//! that comes later subtracts it from its own time.

use std::collections::VecDeque;
use std::ops::Range;

use crate::slices::entry::Entry;
use crate::slices::keys::Key;
use crate::slices::slice::{Frame, Point, Slice, SliceSink, TrackSink};

/// The limit for the intervals around a new one, and for the depth of those inside it. The tree is at most
/// twice as deep.
const MAX_DEPTH: usize = 512;

/// Intervals side by side, in order of their start. Intervals in ascending order are appended, those in
/// descending order are prepended.
type Nodes = VecDeque<Node>;

#[derive(Debug)]
struct Node {
    start: i64,
    end: i64,
    name: Key,
    category: Key,
    tag: u32,
    is_point: bool,
    /// Whether this is the remaining stretch of emitted slices. Only its time is known.
    is_emitted: bool,
    /// Whether these slices were emitted for want of memory.
    is_shrunk: bool,
    /// The time of emitted slices directly below. For an emitted stretch, its whole time.
    emitted: i64,
    /// The part of `emitted` that was counted as busy time.
    emitted_busy: i64,
    /// The height of the tree below, plus 1.
    height: usize,
    below: Nodes,
}

impl Node {
    fn new(start: i64, end: i64, name: Key, category: Key) -> Self {
        Self {
            start,
            end,
            name,
            category,
            tag: 0,
            is_point: false,
            is_emitted: false,
            is_shrunk: false,
            emitted: 0,
            emitted_busy: 0,
            height: 1,
            below: Nodes::new(),
        }
    }

    /// The remaining stretch of emitted slices. `busy` is the part counted as busy time.
    fn emitted(start: i64, end: i64, emitted: i64, emitted_busy: i64) -> Self {
        Self { is_emitted: true, emitted, emitted_busy, ..Self::new(start, end, Key::NONE, Key::NONE) }
    }

    /// The time to subtract from the parent's own time.
    fn total(&self) -> i64 {
        if self.is_emitted { self.emitted } else { self.end.saturating_sub(self.start) }
    }

    fn is_around(&self, start: i64, end: i64) -> bool {
        !self.is_point
            && self.start <= start
            && end <= self.end
            && (start < self.end || start == end && self.start == start)
    }

    /// Whether this interval, which is stored, is around a new one. Of two with the same times, the one that
    /// began first in the file is the outer one.
    fn is_around_new(&self, new: &Self) -> bool {
        let is_inside = (self.start, self.end) == (new.start, new.end) && self.tag > new.tag;
        !self.is_emitted && self.is_around(new.start, new.end) && !is_inside
    }
}

/// Why an interval is not in its regular place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misplaced {
    /// It overlaps another interval, so it is beside it.
    Overlaps,
    /// There are too many levels around it or inside it, so it was not inserted.
    TooDeep,
    /// Slices inside it were emitted already, for want of memory.
    AfterInner,
}

/// The intervals of one track.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    roots: Nodes,
    held: usize,
    covered: Covered,
}

/// The latest stretch of time that emitted top-level slices cover. Slices that overlap are beside each other,
/// and the time of both counts once as busy time.
#[derive(Debug, Default)]
struct Covered(Option<(i64, i64)>);

impl Covered {
    /// Adds a slice. Returns the part of its time that no slice has covered before.
    fn add(&mut self, start: i64, end: i64) -> i64 {
        let duration = end.saturating_sub(start);
        let Some((from, until)) = self.0.filter(|(from, until)| start < *until && *from < end) else {
            // A slice before the stretch came too late.
            if self.0.is_none_or(|(_, until)| until <= start) {
                self.0 = Some((start, end));
            }
            return duration;
        };
        self.0 = Some((start.min(from), end.max(until)));
        if start <= from && until <= end {
            return duration; // those are inside it, and the caller subtracts them
        }
        duration.saturating_sub(end.min(until).saturating_sub(start.max(from)))
    }
}

impl Intervals {
    /// The number of stored intervals.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Inserts an interval. `ends_now`: it had a begin, and what began after that, up to now, is inside it.
    pub(super) fn add(&mut self, entry: &Entry, end: i64, ends_now: bool) -> Result<(), Misplaced> {
        let Entry { time, name, category, tag, .. } = *entry;
        self.put(Node { tag, ..Node::new(time, end, name, category) }, ends_now)
    }

    /// Inserts a point. Returns whether there was room for it.
    pub(super) fn add_point(&mut self, entry: &Entry) -> bool {
        let Entry { time, name, category, tag, .. } = *entry;
        let point = Node { tag, is_point: true, ..Node::new(time, time, name, category) };
        self.put(point, false) != Err(Misplaced::TooDeep)
    }

    /// Inserts the time of a slice that was emitted already. `busy` is the part counted as busy time.
    pub(super) fn add_emitted(&mut self, start: i64, end: i64, busy: i64) {
        // A slice that overlaps others has no parent.
        let _ = self.put(Node::emitted(start, end, end.saturating_sub(start), busy), false);
    }

    fn put(&mut self, mut node: Node, ends_now: bool) -> Result<(), Misplaced> {
        let mut depth = 1;
        let mut nodes = &mut self.roots;
        loop {
            // The last interval that starts at or before this one may enclose it.
            let after = nodes.partition_point(|n| n.start <= node.start);
            let is_in = after.checked_sub(1).filter(|&n| nodes[n].is_around_new(&node));
            let Some(outer) = is_in else { break };
            let outer = &mut nodes[outer];
            if node.is_emitted {
                outer.emitted = outer.emitted.saturating_add(node.emitted);
                outer.emitted_busy = outer.emitted_busy.saturating_add(node.emitted_busy);
                return Ok(());
            }
            depth += 1;
            if depth > MAX_DEPTH {
                outer.emitted = outer.emitted.saturating_add(node.total());
                return Err(Misplaced::TooDeep);
            }
            nodes = &mut outer.below;
        }
        if node.is_point {
            // Not around others of its time.
            nodes.insert(nodes.partition_point(|n| n.start <= node.start), node);
            self.held += 1;
            return Ok(());
        }
        let from = nodes.partition_point(|n| n.start < node.start);
        let to = partition_point(nodes, from..nodes.len(), |n| {
            let is_before_end = n.start < node.end.max(node.start.saturating_add(1));
            n.end <= node.end && (is_before_end || ends_now && n.start == node.end && n.tag > node.tag)
        });
        if nodes.range(from..to).any(|inner| inner.height >= MAX_DEPTH) {
            return Err(Misplaced::TooDeep);
        }
        let overlaps = from > 0 && nodes[from - 1].end > node.start && !nodes[from - 1].is_emitted
            || nodes.get(to).is_some_and(|n| n.start < node.end);
        let mut is_after_inner = false;
        for inner in nodes.drain(from..to) {
            is_after_inner |= inner.is_shrunk;
            if inner.is_emitted {
                node.emitted = node.emitted.saturating_add(inner.emitted);
                node.emitted_busy = node.emitted_busy.saturating_add(inner.emitted_busy);
                self.held -= 1;
            } else {
                node.height = node.height.max(inner.height + 1);
                node.below.push_back(inner);
            }
        }
        nodes.insert(from, node);
        self.held += 1;
        match (overlaps, is_after_inner) {
            (true, _) => Err(Misplaced::Overlaps),
            (false, true) => Err(Misplaced::AfterInner),
            (false, false) => Ok(()),
        }
    }

    /// Returns the part of a top-level slice's time that the intervals before it do not cover. The slice had a
    /// begin and an end, and those inside it are emitted.
    pub(super) fn uncovered(&mut self, start: i64, end: i64) -> i64 {
        // The one before it, if it has not ended yet, is emitted later.
        let before = self.roots.back().filter(|node| !node.is_emitted).map_or(start, |node| node.end);
        self.covered.add(before.clamp(start, end.max(start)), end)
    }

    /// Emits all intervals from `start` on, as slices below `above`. Returns their time.
    pub(super) fn emit_from(
        &mut self,
        start: i64,
        above: &mut Vec<Frame>,
        sink: &mut TrackSink<'_, impl SliceSink>,
    ) -> i64 {
        let from = self.roots.partition_point(|node| node.start < start);
        let mut total = 0_i64;
        for node in self.roots.drain(from..) {
            total = total.saturating_add(node.total());
            self.held -= emit_tree(node, above, &mut self.covered, sink).count;
        }
        total
    }

    /// Emits the older half, each below those of the frames that began before it.
    pub(super) fn shrink(&mut self, above: &mut Vec<Frame>, sink: &mut TrackSink<'_, impl SliceSink>) {
        let mut later = Later::all_of(above);
        let mut rests: Vec<Node> = Vec::new();
        for node in self.roots.drain(..self.roots.len() / 2) {
            let (start, end, total) = (node.start, node.end, node.total());
            // A stretch for each frame, which subtracts its own part.
            if later.show_until(start, above) || rests.is_empty() {
                rests.push(Node { is_shrunk: true, ..Node::emitted(start, end, 0, 0) });
            }
            let EmittedTree { count, busy } = emit_tree(node, above, &mut self.covered, sink);
            self.held -= count;
            if let Some(rest) = rests.last_mut() {
                rest.end = rest.end.max(end);
                rest.emitted = rest.emitted.saturating_add(total);
                rest.emitted_busy = rest.emitted_busy.saturating_add(busy);
            }
        }
        self.held += rests.len();
        rests.into_iter().rev().for_each(|rest| self.roots.push_front(rest));
        if let Some(last) = self.roots.back_mut() {
            later.show_until(last.start, above);
            self.held -= shrink_below(last, above, &mut self.covered, sink);
        }
        later.show_until(i64::MAX, above);
    }
}

/// Emits the older half of the slices below one that may still grow, on each level. Returns their number.
fn shrink_below(
    last: &mut Node,
    above: &mut Vec<Frame>,
    covered: &mut Covered,
    sink: &mut TrackSink<'_, impl SliceSink>,
) -> usize {
    let depth = above.len();
    let (mut last, mut emitted) = (Some(last), 0);
    while let Some(node) = last {
        let half = node.below.len() / 2;
        above.push(Frame::new(node.name, node.category, node.start, node.tag));
        for inner in node.below.drain(..half) {
            node.emitted = node.emitted.saturating_add(inner.total());
            let EmittedTree { count, busy } = emit_tree(inner, above, covered, sink);
            emitted += count;
            node.emitted_busy = node.emitted_busy.saturating_add(busy);
        }
        last = node.below.back_mut();
    }
    above.truncate(depth);
    emitted
}

/// Open slices that began after what is emitted, the earliest last.
struct Later(Vec<Frame>);

impl Later {
    fn all_of(above: &mut Vec<Frame>) -> Self {
        let mut later = std::mem::take(above);
        later.reverse();
        Self(later)
    }

    /// Puts those that began up to this time above what is emitted now. Returns whether there were any.
    fn show_until(&mut self, time: i64, above: &mut Vec<Frame>) -> bool {
        let shown = above.len();
        while let Some(frame) = self.0.pop_if(|frame| frame.start <= time) {
            above.push(frame);
        }
        above.len() > shown
    }
}

/// The first index in the range for which `is_before` is false.
fn partition_point(nodes: &Nodes, range: Range<usize>, is_before: impl Fn(&Node) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if is_before(&nodes[middle]) { start = middle + 1 } else { end = middle }
    }
    start
}

/// The result of emitting a tree.
struct EmittedTree {
    count: usize,
    /// The part of its time that is counted as busy time.
    busy: i64,
}

fn emit_tree(
    node: Node,
    above: &mut Vec<Frame>,
    covered: &mut Covered,
    sink: &mut TrackSink<'_, impl SliceSink>,
) -> EmittedTree {
    if node.is_emitted {
        return EmittedTree { count: 1, busy: node.emitted_busy };
    }
    if node.is_point {
        let Node { name, category, start: time, tag, .. } = node;
        sink.sink.point(&Point { track: sink.track, name, category, time, tag }, above);
        return EmittedTree { count: 1, busy: 0 };
    }
    let duration = node.end.saturating_sub(node.start);
    let (mut inner, mut all) = (node.emitted, EmittedTree { count: 1, busy: node.emitted_busy });
    above.push(Frame::new(node.name, node.category, node.start, node.tag));
    for below in node.below {
        inner = inner.saturating_add(below.total());
        let EmittedTree { count, busy } = emit_tree(below, above, covered, sink);
        all.count += count;
        all.busy = all.busy.saturating_add(busy);
    }
    above.pop();
    // Slices inside it may have been emitted before, as if nothing were around them.
    let is_top = above.is_empty();
    let busy = if is_top { covered.add(node.start, node.end).saturating_sub(all.busy).max(0) } else { 0 };
    all.busy = all.busy.saturating_add(busy);
    let slice = Slice {
        track: sink.track,
        name: node.name,
        category: node.category,
        start: node.start,
        duration,
        self_time: duration.saturating_sub(inner).max(0),
        busy,
        tag: node.tag,
    };
    sink.sink.slice(&slice, above);
    all
}
