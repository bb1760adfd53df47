//! The intervals of all tracks, in one list: a thread with a few slices costs a few bytes, and a tree of any
//! depth needs no recursion.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use crate::slices::keys::Key;

/// Intervals side by side, in order of their start. Intervals in ascending order are appended, those in
/// descending order are prepended.
pub(super) type Row = VecDeque<NodeId>;

/// The place of a node among those of all tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

/// The nodes of all tracks.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    all: Vec<Node>,
    free: Vec<NodeId>,
    /// The steps that were made, less those that each interval may make.
    pub(super) steps: u64,
}

impl Nodes {
    /// The number of nodes.
    pub(super) fn count(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub(super) fn add(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.free.pop() {
            self[id] = node;
            return id;
        }
        self.all.push(node);
        NodeId((self.all.len() - 1) as u32) // far fewer: see `Slices`
    }

    /// Removes a node, whose place is then free.
    pub(super) fn remove(&mut self, id: NodeId) -> Node {
        self.free.push(id);
        std::mem::replace(&mut self[id], Node::new(0, 0, Key::NONE, Key::NONE))
    }
}

impl Index<NodeId> for Nodes {
    type Output = Node;

    fn index(&self, NodeId(place): NodeId) -> &Node {
        &self.all[place as usize]
    }
}

impl IndexMut<NodeId> for Nodes {
    fn index_mut(&mut self, NodeId(place): NodeId) -> &mut Node {
        &mut self.all[place as usize]
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) name: Key,
    pub(super) category: Key,
    pub(super) tag: u32,
    pub(super) is_point: bool,
    /// Whether this is the remaining stretch of emitted slices. Only its time is known.
    pub(super) is_emitted: bool,
    /// Whether these slices were emitted for want of memory.
    pub(super) is_shrunk: bool,
    /// The time of emitted slices directly below. For an emitted stretch, its whole time.
    pub(super) emitted: i64,
    /// The part of `emitted` that was counted as busy time.
    pub(super) emitted_busy: i64,
    pub(super) above: Option<NodeId>,
    pub(super) below: Row,
}

impl Node {
    pub(super) fn new(start: i64, end: i64, name: Key, category: Key) -> Self {
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
            above: None,
            below: Row::new(),
        }
    }

    /// The remaining stretch of emitted slices. `busy` is the part counted as busy time.
    pub(super) fn emitted(start: i64, end: i64, emitted: i64, emitted_busy: i64) -> Self {
        Self { is_emitted: true, emitted, emitted_busy, ..Self::new(start, end, Key::NONE, Key::NONE) }
    }

    /// The time to subtract from the parent's own time.
    pub(super) fn total(&self) -> i64 {
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
    pub(super) fn is_around_new(&self, new: &Self) -> bool {
        let is_inside = (self.start, self.end) == (new.start, new.end) && self.tag > new.tag;
        !self.is_emitted && self.is_around(new.start, new.end) && !is_inside
    }
}
