//! A tree of the complete slices of a track, here called intervals.
//!
//! Tracers write intervals at their begin (parents first) or at their end (children first), sorted or not. So
//! an interval is inserted where it belongs by time: into the innermost interval around it, and around the
//! intervals inside it. An interval is emitted when it is certain to be complete. If memory runs out, the
//! oldest intervals are emitted first. A stretch of time remains in their place, and an enclosing interval
//! that comes later subtracts it from its own time.

use crate::slices::entry::Entry;
use crate::slices::nodes::{Node, NodeId, Nodes, Row};
use crate::slices::slice::{Defect, Frame, Point, Slice, SliceSink, TrackSink};

/// The depth that an interval may have in any case.
const SURE_DEPTH: u32 = 512;
/// The steps up and down in the trees that are made for deeper intervals, and further ones for each interval.
/// Neighbours in a file are near each other in the tree, so only a file made to be slow exceeds them.
const MOST_STEPS: u64 = 1 << 28;
const STEPS_EACH: u64 = 64;

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
    roots: Row,
    /// The interval that was inserted last, while it is stored. The next one is usually near it.
    latest: Option<NodeId>,
    /// Whether intervals overlap others. Then the place of a new one is found from the roots.
    has_overlaps: bool,
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
    /// Whether no interval is stored.
    pub(super) fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Inserts a slice that ends at `end`. `ends_now`: it had a begin, and what began after that, up to now, is
    /// inside it.
    pub(super) fn add(
        &mut self,
        slice: &Frame,
        end: i64,
        ends_now: bool,
        nodes: &mut Nodes,
    ) -> Result<(), Misplaced> {
        let Frame { start, name, category, tag, .. } = *slice;
        self.put(Node { tag, ..Node::new(start, end, name, category) }, ends_now, nodes)
    }

    /// Inserts a point. Returns whether there was room for it.
    pub(super) fn add_point(&mut self, entry: &Entry, nodes: &mut Nodes) -> bool {
        let Entry { time, name, category, tag, .. } = *entry;
        let point = Node { tag, is_point: true, ..Node::new(time, time, name, category) };
        self.put(point, false, nodes) != Err(Misplaced::TooDeep)
    }

    /// Inserts the time of a slice that was emitted already. `busy` is the part counted as busy time.
    pub(super) fn add_emitted(&mut self, start: i64, end: i64, busy: i64, nodes: &mut Nodes) {
        // A slice that overlaps others has no parent.
        let _ = self.put(Node::emitted(start, end, end.saturating_sub(start), busy), false, nodes);
    }

    fn put(&mut self, mut node: Node, ends_now: bool, nodes: &mut Nodes) -> Result<(), Misplaced> {
        let outer = self.outer_of(&node, nodes)?;
        if let Some(outer) = outer
            && node.is_emitted
        {
            let outer = &mut nodes[outer];
            outer.emitted = outer.emitted.saturating_add(node.emitted);
            outer.emitted_busy = outer.emitted_busy.saturating_add(node.emitted_busy);
            return Ok(());
        }
        node.above = outer;
        // Taken out, because the nodes in the row are in the same list as the one that has it.
        let mut row = std::mem::take(self.row(outer, nodes));
        let put = self.put_in_row(node, &mut row, ends_now, nodes);
        *self.row(outer, nodes) = row;
        put
    }

    fn row<'r>(&'r mut self, of: Option<NodeId>, nodes: &'r mut Nodes) -> &'r mut Row {
        match of {
            Some(outer) => &mut nodes[outer].below,
            None => &mut self.roots,
        }
    }

    /// The innermost interval around a new one.
    fn outer_of(&mut self, node: &Node, nodes: &mut Nodes) -> Result<Option<NodeId>, Misplaced> {
        nodes.steps = nodes.steps.saturating_sub(STEPS_EACH);
        let mut outer = self.latest.filter(|_| !self.has_overlaps);
        while let Some(place) = outer.filter(|place| !nodes[*place].is_around_new(node)) {
            outer = nodes[place].above;
            nodes.steps += 1;
        }
        let mut depth = 1;
        loop {
            let row = outer.map_or(&self.roots, |outer| &nodes[outer].below);
            // The last interval that starts at or before this one may enclose it.
            let after = place(row, |id| nodes[id].start <= node.start);
            let inner = after.checked_sub(1).map(|place| row[place]);
            let Some(inner) = inner.filter(|inner| nodes[*inner].is_around_new(node)) else {
                return Ok(outer);
            };
            outer = Some(inner);
            nodes.steps += 1;
            depth += 1;
            if depth > SURE_DEPTH && nodes.steps > MOST_STEPS {
                let outer = &mut nodes[inner];
                outer.emitted = outer.emitted.saturating_add(node.total());
                return Err(Misplaced::TooDeep);
            }
        }
    }

    fn put_in_row(
        &mut self,
        mut node: Node,
        row: &mut Row,
        ends_now: bool,
        nodes: &mut Nodes,
    ) -> Result<(), Misplaced> {
        if node.is_point {
            // Not around others of its time.
            let place = place(row, |id| nodes[id].start <= node.start);
            row.insert(place, nodes.add(node));
            return Ok(());
        }
        let from = place(row, |id| nodes[id].start < node.start);
        let is_inside = |n: &Node| {
            let is_before_end = n.start < node.end.max(node.start.saturating_add(1));
            n.end <= node.end && (is_before_end || ends_now && n.start == node.end && n.tag > node.tag)
        };
        let to = from + partition_point(row.len() - from, |place| is_inside(&nodes[row[from + place]]));
        let overlaps = from
            .checked_sub(1)
            .map(|before| &nodes[row[before]])
            .is_some_and(|before| before.end > node.start && !before.is_emitted)
            || row.get(to).is_some_and(|id| nodes[*id].start < node.end);
        let mut is_after_inner = false;
        // The node needs its id for those inside it.
        let (above, is_emitted) = (node.above, node.is_emitted);
        let id = nodes.add(Node::new(node.start, node.end, node.name, node.category));
        for inner in row.drain(from..to) {
            is_after_inner |= nodes[inner].is_shrunk;
            if nodes[inner].is_emitted {
                let inner = nodes.remove(inner);
                node.emitted = node.emitted.saturating_add(inner.emitted);
                node.emitted_busy = node.emitted_busy.saturating_add(inner.emitted_busy);
            } else {
                nodes[inner].above = Some(id);
                node.below.push_back(inner);
            }
        }
        nodes[id] = node;
        row.insert(from, id);
        self.latest = if is_emitted { above } else { Some(id) };
        self.has_overlaps |= overlaps;
        match (overlaps, is_after_inner) {
            (true, _) => Err(Misplaced::Overlaps),
            (false, true) => Err(Misplaced::AfterInner),
            (false, false) => Ok(()),
        }
    }

    /// Returns the part of a top-level slice's time that the intervals before it do not cover. The slice had
    /// a begin and an end, and those inside it are emitted.
    pub(super) fn uncovered(&mut self, start: i64, end: i64, nodes: &Nodes) -> i64 {
        // The one before it, if it has not ended yet, is emitted later.
        let back = self.roots.back().map(|id| &nodes[*id]);
        let back = back.filter(|node| !node.is_emitted && node.start <= start);
        let before = back.map_or(start, |node| node.end);
        self.covered.add(before.clamp(start, end.max(start)), end)
    }

    /// Emits all intervals from `start` on, as slices below `above`, up to those that last beyond `end`: they
    /// are not inside it. Returns the time of those that are, and the overlap with the others.
    pub(super) fn emit_between(
        &mut self,
        start: i64,
        end: i64,
        above: &mut Vec<Frame>,
        sink: &mut TrackSink<'_, impl SliceSink>,
    ) -> (i64, i64) {
        let lasts = |node: &Node| node.start < end && end < node.end && !node.is_emitted;
        let from = self.roots.partition_point(|id| sink.nodes[*id].start < start);
        if !self.roots.range(from..).any(|id| lasts(&sink.nodes[*id])) {
            return (self.emit_from(start, above, sink), 0);
        }
        self.latest = None;
        let (mut total, mut overlap) = (0_i64, 0_i64);
        for id in self.roots.split_off(from) {
            let node = &sink.nodes[id];
            let (begin, name, time) = (node.start, node.name, node.total());
            if lasts(node) {
                // With the same begin, it is around the other one.
                if begin > start {
                    sink.defect(Defect::Overlaps, begin, name);
                    overlap = overlap.saturating_add(end.saturating_sub(begin));
                }
                self.roots.push_back(id);
            } else {
                total = total.saturating_add(time);
                emit_tree(id, above, &mut self.covered, sink);
            }
        }
        (total, overlap)
    }

    /// Emits all intervals from `start` on, as slices below `above`. Returns their time.
    pub(super) fn emit_from(
        &mut self,
        start: i64,
        above: &mut Vec<Frame>,
        sink: &mut TrackSink<'_, impl SliceSink>,
    ) -> i64 {
        let from = self.roots.partition_point(|id| sink.nodes[*id].start < start);
        let mut total = 0_i64;
        for id in self.roots.drain(from..) {
            total = total.saturating_add(sink.nodes[id].total());
            emit_tree(id, above, &mut self.covered, sink);
        }
        self.latest = None;
        total
    }

    /// Emits the older half, each below those of the frames that began before it.
    pub(super) fn shrink(&mut self, above: &mut Vec<Frame>, sink: &mut TrackSink<'_, impl SliceSink>) {
        let mut later = Later::all_of(above);
        let mut rests: Vec<Node> = Vec::new();
        self.latest = None;
        for id in self.roots.drain(..self.roots.len() / 2) {
            let node = &sink.nodes[id];
            let (start, end, total) = (node.start, node.end, node.total());
            // A stretch for each frame, which subtracts its own part.
            if later.show_until(start, above) || rests.is_empty() {
                rests.push(Node { is_shrunk: true, ..Node::emitted(start, end, 0, 0) });
            }
            let busy = emit_tree(id, above, &mut self.covered, sink);
            if let Some(rest) = rests.last_mut() {
                rest.end = rest.end.max(end);
                rest.emitted = rest.emitted.saturating_add(total);
                rest.emitted_busy = rest.emitted_busy.saturating_add(busy);
            }
        }
        for rest in rests.into_iter().rev() {
            self.roots.push_front(sink.nodes.add(rest));
        }
        if let Some(last) = self.roots.back() {
            later.show_until(sink.nodes[*last].start, above);
            shrink_below(*last, above, &mut self.covered, sink);
        }
        later.show_until(i64::MAX, above);
    }
}

/// Emits the older half of the slices below one that may still grow, on each level.
fn shrink_below(
    last: NodeId,
    above: &mut Vec<Frame>,
    covered: &mut Covered,
    sink: &mut TrackSink<'_, impl SliceSink>,
) {
    let depth = above.len();
    let mut last = Some(last);
    while let Some(id) = last {
        let node = &mut sink.nodes[id];
        let half = node.below.len() / 2;
        let older: Vec<_> = node.below.drain(..half).collect();
        last = node.below.back().copied();
        above.push(Frame::new(node.name, node.category, node.start, node.tag));
        for inner in older {
            let total = sink.nodes[inner].total();
            let busy = emit_tree(inner, above, covered, sink);
            let node = &mut sink.nodes[id];
            node.emitted = node.emitted.saturating_add(total);
            node.emitted_busy = node.emitted_busy.saturating_add(busy);
        }
    }
    above.truncate(depth);
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

/// The first place of a row for which `is_before` is false, found from the end: most intervals come last.
#[inline]
fn place(row: &Row, is_before: impl Fn(NodeId) -> bool) -> usize {
    let (mut end, mut step) = (row.len(), 1);
    let start = loop {
        let Some(place) = end.checked_sub(step) else { break 0 };
        if is_before(row[place]) {
            break place + 1;
        }
        (end, step) = (place, 2 * step);
    };
    start + partition_point(end - start, |at| is_before(row[start + at]))
}

/// The first of `count` places for which `is_before` is false.
fn partition_point(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut start, mut end) = (0, count);
    while start < end {
        let middle = start + (end - start) / 2;
        if is_before(middle) { start = middle + 1 } else { end = middle }
    }
    start
}

/// An interval that is being emitted: those inside it come first.
struct Emitting {
    node: Node,
    /// The time of those inside it.
    inner: i64,
    /// The part of that time that was counted as busy time.
    busy: i64,
}

impl Emitting {
    fn begin(node: Node, above: &mut Vec<Frame>) -> Self {
        above.push(Frame::new(node.name, node.category, node.start, node.tag));
        Self { inner: node.emitted, busy: node.emitted_busy, node }
    }

    /// Removes the next interval inside it.
    fn next_inner(&mut self, nodes: &Nodes) -> Option<NodeId> {
        let inner = self.node.below.pop_front()?;
        self.inner = self.inner.saturating_add(nodes[inner].total());
        Some(inner)
    }
}

/// Emits an interval and all inside it. Returns the part of its time that is counted as busy time.
fn emit_tree(
    root: NodeId,
    above: &mut Vec<Frame>,
    covered: &mut Covered,
    sink: &mut TrackSink<'_, impl SliceSink>,
) -> i64 {
    let (mut open, mut next): (Vec<Emitting>, _) = (Vec::new(), Some(root));
    loop {
        let busy = match next.map(|id| sink.nodes.remove(id)) {
            Some(node) if node.is_emitted => node.emitted_busy,
            Some(Node { is_point: true, name, category, start: time, tag, .. }) => {
                sink.sink.point(&Point { track: sink.track, name, category, time, tag }, above);
                0
            }
            Some(node) => {
                let mut outer = Emitting::begin(node, above);
                next = outer.next_inner(sink.nodes);
                if next.is_some() {
                    open.push(outer); // nearly all have no other inside, and need no list
                    continue;
                }
                emit(outer, above, covered, sink)
            }
            None => open.pop().map_or(0, |outer| emit(outer, above, covered, sink)),
        };
        let Some(outer) = open.last_mut() else { return busy };
        outer.busy = outer.busy.saturating_add(busy);
        next = outer.next_inner(sink.nodes);
    }
}

/// Emits the innermost interval. Returns the part of its time that is counted as busy time.
fn emit(
    Emitting { node, inner, busy: busy_inside }: Emitting,
    above: &mut Vec<Frame>,
    covered: &mut Covered,
    sink: &mut TrackSink<'_, impl SliceSink>,
) -> i64 {
    above.pop();
    let duration = node.end.saturating_sub(node.start);
    // Slices inside it may have been emitted before, as if nothing were around them.
    let is_top = above.is_empty();
    let busy = if is_top { covered.add(node.start, node.end).saturating_sub(busy_inside).max(0) } else { 0 };
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
    busy_inside.saturating_add(busy)
}
