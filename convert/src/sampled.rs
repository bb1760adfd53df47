//! Stack samples of a whole trace: a tree of functions, and the samples of each thread in order of time.

use std::collections::HashMap;

use crate::{Item, Sample, SampleKind, StackFrame, Symbols};

/// The limit for samples, 16 bytes each.
const MOST_SAMPLES: usize = 1 << 22;
/// The limit for different stacks, some 60 bytes each.
const MOST_NODES: usize = 1 << 20;
/// The limit for symbols and modules.
const MOST_SYMBOLS: usize = 1 << 20;
/// The limit for frames of one stack: the outermost ones, and the innermost.
const MOST_FRAMES: usize = 512;

/// A stack: the number of its innermost frame in the tree, from 0 without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// The samples of a trace.
#[derive(Debug, Default)]
pub struct Samples {
    /// By process and thread.
    on_cpu: HashMap<(u64, u64), Vec<(i64, StackId)>>,
    off_cpu: HashMap<(u64, u64), Vec<(i64, StackId)>>,
    nodes: Vec<Node>,
    steps: HashMap<(Option<StackId>, u32), StackId>,
    frames: Vec<FrameKey>,
    frame_ids: HashMap<FrameKey, u32>,
    modules: HashMap<(String, Vec<u8>), u32>,
    module_names: Vec<String>,
    symbols: HashMap<(u32, u64), Box<[String]>>,
    count: usize,
    /// The number of samples for which there was no room.
    pub left_out: u64,
}

#[derive(Debug)]
struct Node {
    below: Option<StackId>,
    frame: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FrameKey {
    function: String,
    module: u32,
    address: u64,
}

impl Samples {
    /// Stores an item, if it is a sample or a symbol.
    pub fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Sample(sample) => self.add(sample),
            Item::Symbols(symbols) => self.symbols(symbols),
            _ => {}
        }
    }

    fn add(&mut self, sample: &Sample<'_>) {
        let (mut stack, mut depth, mut is_full) = (None, 0, self.count >= MOST_SAMPLES);
        let mut innermost = None;
        sample.stack.each(&mut |frame| {
            depth += 1;
            if is_full {
                return;
            }
            let frame = self.frame(&frame);
            if depth >= MOST_FRAMES {
                innermost = frame;
            } else {
                stack = frame.and_then(|frame| self.step(stack, frame));
            }
            is_full = frame.is_none() || stack.is_none();
        });
        if let Some(frame) = innermost {
            stack = self.step(stack, frame);
        }
        match stack.filter(|_| !is_full) {
            Some(stack) => {
                self.count += 1;
                let of_kind = match sample.kind {
                    SampleKind::OnCpu => &mut self.on_cpu,
                    SampleKind::OffCpu => &mut self.off_cpu,
                };
                of_kind.entry((sample.pid, sample.tid)).or_default().push((sample.time, stack));
            }
            None => self.left_out += 1,
        }
    }

    fn step(&mut self, below: Option<StackId>, frame: u32) -> Option<StackId> {
        if let Some(known) = self.steps.get(&(below, frame)) {
            return Some(*known);
        }
        if self.nodes.len() >= MOST_NODES {
            return None;
        }
        let id = StackId(self.nodes.len() as u32); // at most MOST_NODES
        self.nodes.push(Node { below, frame });
        self.steps.insert((below, frame), id);
        Some(id)
    }

    fn frame(&mut self, frame: &StackFrame<'_>) -> Option<u32> {
        let module = self.module(frame.module, frame.build_id);
        // Inlined functions share an address, so the name is part of the key.
        let key = FrameKey { function: frame.function.to_owned(), module, address: frame.address };
        if let Some(id) = self.frame_ids.get(&key) {
            return Some(*id);
        }
        if self.frames.len() >= MOST_NODES {
            return None;
        }
        let id = self.frames.len() as u32;
        self.frames.push(key.clone());
        self.frame_ids.insert(key, id);
        Some(id)
    }

    fn module(&mut self, path: &str, build_id: &[u8]) -> u32 {
        let key = (path.to_owned(), build_id.to_owned());
        if let Some(id) = self.modules.get(&key) {
            return *id;
        }
        let id = self.module_names.len() as u32;
        if self.module_names.len() < MOST_SYMBOLS {
            self.module_names.push(path.to_owned());
            self.modules.insert(key, id);
        }
        id
    }

    fn symbols(&mut self, symbols: &Symbols<'_>) {
        if self.symbols.len() >= MOST_SYMBOLS {
            return;
        }
        let module = self.module(symbols.module, symbols.build_id);
        // The outermost function first, as in stacks.
        let names = symbols.lines.iter().rev().map(|line| line.function.clone()).collect();
        self.symbols.insert((module, symbols.address), names);
    }

    /// Sorts the samples. Call it before the first question.
    pub fn finish(&mut self) {
        let all = self.on_cpu.values_mut().chain(self.off_cpu.values_mut());
        all.for_each(|samples| samples.sort_by_key(|(time, _)| *time));
    }

    /// The number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The samples of a thread from `start` until before `end`, those in which it ran or those in which it
    /// left its processor. The thread is that of a process, which may be unknown (0) in its samples.
    #[must_use]
    pub fn of(&self, kind: SampleKind, thread: (u64, u64), start: i64, end: i64) -> &[(i64, StackId)] {
        let of_kind = match kind {
            SampleKind::OnCpu => &self.on_cpu,
            SampleKind::OffCpu => &self.off_cpu,
        };
        let all = of_kind.get(&thread).or_else(|| of_kind.get(&(0, thread.1)));
        let all = all.map_or(&[][..], |all| all);
        let (from, to) =
            (all.partition_point(|(time, _)| *time < start), all.partition_point(|(time, _)| *time < end));
        &all[from..to.max(from)]
    }

    /// All samples in which a thread ran: threads and stacks.
    pub fn all_on_cpu(&self) -> impl Iterator<Item = (u64, StackId)> {
        self.on_cpu.iter().flat_map(|((_, tid), samples)| samples.iter().map(|(_, stack)| (*tid, *stack)))
    }

    /// Shows all samples of a kind: process and thread, time and stack. A thread's samples follow each other.
    pub fn each(&self, kind: SampleKind, show: &mut dyn FnMut((u64, u64), i64, StackId)) {
        let of_kind = match kind {
            SampleKind::OnCpu => &self.on_cpu,
            SampleKind::OffCpu => &self.off_cpu,
        };
        let mut threads: Vec<_> = of_kind.iter().collect();
        threads.sort_unstable_by_key(|(thread, _)| **thread);
        for (thread, samples) in threads {
            samples.iter().for_each(|(time, stack)| show(*thread, *time, *stack));
        }
    }

    /// The build id of the program or library with a file name, if any sample is in it.
    #[must_use]
    pub fn build_id(&self, file: &str) -> Option<&[u8]> {
        let is_it = |path: &str| path.rsplit('/').next() == Some(file);
        let known = self.modules.keys().filter(|(path, id)| is_it(path) && !id.is_empty());
        known.map(|(_, id)| id.as_slice()).min()
    }

    /// The names of the functions of a stack, the outermost first.
    #[must_use]
    pub fn names(&self, stack: StackId) -> Vec<String> {
        let mut frames = Vec::new();
        let mut next = Some(stack);
        while let Some(StackId(id)) = next {
            let node = &self.nodes[id as usize];
            frames.push(node.frame);
            next = node.below;
        }
        frames.iter().rev().flat_map(|frame| self.frame_names(*frame)).collect()
    }

    /// The function of a frame, with the functions that are inlined in it.
    fn frame_names(&self, frame: u32) -> Vec<String> {
        let FrameKey { function, module, address } = &self.frames[frame as usize];
        if !function.is_empty() {
            return vec![function.clone()];
        }
        match self.symbols.get(&(*module, *address)) {
            Some(names) if !names.is_empty() => names.to_vec(),
            _ => {
                let path = self.module_names.get(*module as usize).map_or("", |name| name);
                let file = path.rsplit('/').next().filter(|file| !file.is_empty()).unwrap_or("?");
                vec![format!("{file}+{address:#x}")]
            }
        }
    }

    /// The innermost function of a stack.
    #[must_use]
    pub fn leaf(&self, stack: StackId) -> String {
        let frame = self.nodes[stack.0 as usize].frame;
        self.frame_names(frame).pop().unwrap_or_default()
    }
}
