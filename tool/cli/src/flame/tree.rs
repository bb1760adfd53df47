//! All stacks as a tree of names. A node is a stack that ends with its name.
//!
//! A stack begins with the track of its slices, or with [`BELOW_ANOTHER`]: then the names around it are those
//! of a slice on another track, which ends later. [`join`](Tree::join) puts one below the other.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::Frame;

/// The limit for different stacks.
const MOST_STACKS: usize = 1 << 20;

/// The limit for the names of a stack. A line has all of them, so the lines of deeper stacks would need space
/// in proportion to the square of the depth.
pub(super) const MOST_LEVELS: usize = 512;

/// Stands for the names of all slices below the last level.
pub(super) const BELOW_ALL: u32 = u32::MAX;

/// Stands for the track of stacks that are below a slice of another track.
pub(super) const BELOW_ANOTHER: TrackId = TrackId(u32::MAX);

/// The mark of a frame whose stack has no node.
const NO_NODE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// Nodes by their parent and the key of their name.
    by_step: HashMap<(Option<u32>, u32), u32>,
    /// Nodes by those that they were joined of.
    joined: HashMap<(u32, u32), u32>,
}

pub(super) struct Node {
    pub(super) below: Option<u32>,
    /// The key of the name; on the lowest level, the number of the track; [`BELOW_ALL`].
    pub(super) what: u32,
    /// The number of names.
    levels: u32,
    pub(super) weight: i64,
}

impl Tree {
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// The number of names of a stack.
    pub(super) fn levels(&self, node: u32) -> usize {
        self.node(node).levels as usize
    }

    /// Adds the weight of a slice to its stack.
    pub(super) fn add(&mut self, node: u32, weight: i64) {
        let node = &mut self.nodes[node as usize];
        node.weight = node.weight.saturating_add(weight);
    }

    fn step(&mut self, below: Option<u32>, what: u32) -> Option<u32> {
        if let Some(node) = self.by_step.get(&(below, what)) {
            return Some(*node);
        }
        if self.nodes.len() >= MOST_STACKS {
            return None;
        }
        let levels = below.map_or(0, |below| self.node(below).levels + 1);
        let node = self.nodes.len() as u32; // at most MOST_STACKS
        self.nodes.push(Node { below, what, levels, weight: 0 });
        self.by_step.insert((below, what), node);
        Some(node)
    }

    /// The stack of slices without names around them.
    pub(super) fn lowest(&mut self, track: TrackId) -> Option<u32> {
        self.step(None, track.0)
    }

    /// The stack with one more name, or the one of all that are deeper.
    pub(super) fn inside(&mut self, around: u32, what: u32) -> Option<u32> {
        let Node { what: last, levels, .. } = *self.node(around);
        if last == BELOW_ALL && levels as usize > MOST_LEVELS {
            return Some(around);
        }
        self.step(Some(around), if (levels as usize) < MOST_LEVELS { what } else { BELOW_ALL })
    }

    /// The node of a slice. Marks each frame with its node plus 1, so each frame is looked up once only,
    /// however many slices it encloses.
    pub(super) fn node_of(&mut self, track: TrackId, above: &mut [Frame], name: u32) -> Option<u32> {
        let levels = above.len().min(MOST_LEVELS);
        let above = &mut above[..levels];
        let unknown = above.iter().rposition(|frame| frame.mark != 0).map_or(0, |known| known + 1);
        let mut node = match unknown.checked_sub(1).map(|known| above[known].mark) {
            None => self.lowest(track),
            Some(NO_NODE) => None,
            Some(mark) => Some(mark - 1),
        };
        for frame in &mut above[unknown..] {
            node = node.and_then(|node| self.step(Some(node), frame.name.0));
            frame.mark = node.map_or(NO_NODE, |node| node + 1);
        }
        node.and_then(|node| self.inside(node, name))
    }

    /// The stack of the names of both.
    pub(super) fn join(&mut self, around: u32, inner: u32) -> Option<u32> {
        let (mut rest, mut at) = (Vec::new(), inner);
        let mut node = loop {
            if let Some(node) = self.joined.get(&(around, at)) {
                break *node;
            }
            let Some(below) = self.node(at).below else { break around };
            rest.push(at);
            at = below;
        };
        for at in rest.into_iter().rev() {
            node = self.inside(node, self.node(at).what)?;
            if self.joined.len() < MOST_STACKS {
                self.joined.insert((around, at), node);
            }
        }
        Some(node)
    }
}
