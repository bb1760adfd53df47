//! Stack samples of a whole trace: a tree of functions, and the samples of each thread in order of time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;

use hairline_formats::truncate_utf8;

use crate::strings::{StringId, Strings};
use crate::{Item, Sample, SampleKind, StackFrame, Symbols};

/// The limit for samples, 16 bytes each.
const MOST_SAMPLES: usize = 1 << 22;
/// The limit for different stacks, some 60 bytes each.
const MOST_STACKS: u32 = 1 << 20;
/// The limit for symbols and modules.
const MOST_SYMBOLS: u32 = 1 << 20;
/// The limit for frames of one stack: the outermost ones, and the innermost.
const MOST_FRAMES: usize = 512;
/// The limit for the names of functions and modules together, and the bytes that are kept of one.
const MOST_TEXT: usize = 64 << 20;
const MOST_NAME: usize = 4 << 10;
/// The limit for the bytes of a module's build id.
const MOST_BUILD_ID: usize = 64;

/// A stack: the number of its innermost frame in the tree, from 0 without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// The samples of a trace.
#[derive(Debug, Default)]
pub struct Samples {
    /// By process and thread.
    on_cpu: HashMap<(u64, u64), Vec<(i64, StackId)>>,
    off_cpu: HashMap<(u64, u64), Vec<(i64, StackId)>>,
    stacks: Numbered<Stack>,
    frames: Numbered<Frame>,
    modules: Numbered<Module>,
    symbols: HashMap<(u32, u64), Box<[StringId]>>,
    texts: Texts,
    count: usize,
    /// The number of samples for which there was no room.
    pub left_out: u64,
}

/// Different values, numbered from 0 in the order in which they came.
#[derive(Debug)]
struct Numbered<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// Returns the number of a value; `None` if it is new and there are `most` values already.
    fn number(&mut self, value: T, most: u32) -> Option<u32> {
        if let Some(known) = self.numbers.get(&value) {
            return Some(*known);
        }
        let number = u32::try_from(self.values.len()).ok().filter(|number| *number < most)?;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        Some(number)
    }

    /// Returns the value with a number that [`number`](Self::number) gave.
    fn get(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

/// A frame, and the stack of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stack {
    below: Option<StackId>,
    frame: u32,
}

/// A function in a module. Inlined functions share an address, so the name is a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Frame {
    function: StringId,
    module: u32,
    address: u64,
}

/// A program or library.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Module {
    path: StringId,
    build_id: Box<[u8]>,
}

/// The names of functions and modules.
#[derive(Debug)]
struct Texts(Strings);

impl Default for Texts {
    fn default() -> Self {
        Self(Strings::with_limit(MOST_TEXT))
    }
}

impl Texts {
    /// Returns the number of a name, of which a long one is cut; `None` if there is no room.
    fn number(&mut self, name: &str) -> Option<StringId> {
        self.0.number(truncate_utf8(name, MOST_NAME))
    }
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
        self.stacks.number(Stack { below, frame }, MOST_STACKS).map(StackId)
    }

    fn frame(&mut self, frame: &StackFrame<'_>) -> Option<u32> {
        let module = self.module(frame.module, frame.build_id)?;
        let function = self.texts.number(frame.function)?;
        self.frames.number(Frame { function, module, address: frame.address }, MOST_STACKS)
    }

    fn module(&mut self, path: &str, build_id: &[u8]) -> Option<u32> {
        let path = self.texts.number(path)?;
        let build_id = build_id[..build_id.len().min(MOST_BUILD_ID)].into();
        self.modules.number(Module { path, build_id }, MOST_SYMBOLS)
    }

    fn symbols(&mut self, symbols: &Symbols<'_>) {
        if self.symbols.len() >= MOST_SYMBOLS as usize {
            return;
        }
        let Some(module) = self.module(symbols.module, symbols.build_id) else { return };
        // The outermost function first, as in stacks. Without room for its names, a frame has its address.
        let lines = symbols.lines.iter().rev().take(MOST_FRAMES);
        let names = lines.map(|line| self.texts.number(&line.function)).collect::<Option<_>>();
        names.map(|names| self.symbols.insert((module, symbols.address), names));
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
        let is_it = |path: StringId| self.text(path).rsplit('/').next() == Some(file);
        let known = self.modules.values.iter().filter(|module| is_it(module.path));
        known.map(|module| &*module.build_id).filter(|id| !id.is_empty()).min()
    }

    /// The names of the functions of a stack, the outermost first.
    #[must_use]
    pub fn names(&self, stack: StackId) -> Vec<Cow<'_, str>> {
        let mut frames = Vec::new();
        let mut next = Some(stack);
        while let Some(StackId(id)) = next {
            let Stack { below, frame } = *self.stacks.get(id);
            frames.push(frame);
            next = below;
        }
        frames.iter().rev().flat_map(|frame| self.frame_names(*frame)).collect()
    }

    /// The function of a frame, with the functions that are inlined in it.
    fn frame_names(&self, frame: u32) -> Vec<Cow<'_, str>> {
        let Frame { function, module, address } = *self.frames.get(frame);
        let function = self.text(function);
        if !function.is_empty() {
            return vec![function.into()];
        }
        match self.symbols.get(&(module, address)) {
            Some(names) if !names.is_empty() => names.iter().map(|name| self.text(*name).into()).collect(),
            _ => {
                let path = self.text(self.modules.get(module).path);
                let file = path.rsplit('/').next().filter(|file| !file.is_empty()).unwrap_or("?");
                vec![format!("{file}+{address:#x}").into()]
            }
        }
    }

    /// The program or library, by its file name, in which most samples of a kind have no name for their
    /// innermost function, with the number of these samples.
    #[must_use]
    pub fn unnamed(&self, kind: SampleKind) -> Option<(&str, usize)> {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        self.each(kind, &mut |_, _, stack| {
            let Frame { function, module, address } = *self.frames.get(self.stacks.get(stack.0).frame);
            let has_symbol = self.symbols.get(&(module, address)).is_some_and(|names| !names.is_empty());
            if self.text(function).is_empty() && !has_symbol {
                *counts.entry(module).or_default() += 1;
            }
        });
        let name = |module: u32| self.text(self.modules.get(module).path).rsplit('/').next();
        let known = counts.into_iter().filter_map(|(module, count)| Some((count, name(module)?)));
        // What is no file has no symbols that a user could add: "[vdso]".
        let files = known.filter(|(_, name)| !name.is_empty() && !name.starts_with('['));
        files.max().map(|(count, name)| (name, count))
    }

    fn text(&self, id: StringId) -> &str {
        self.texts.0.get(id)
    }

    /// The innermost function of a stack.
    #[must_use]
    pub fn leaf(&self, stack: StackId) -> String {
        let Stack { frame, .. } = *self.stacks.get(stack.0);
        self.frame_names(frame).pop().map_or_else(String::new, Cow::into_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_with_many_addresses_is_kept_once_and_cut() {
        let name = "x".repeat(30 << 20);
        let mut samples = Samples::default();
        let mut last = None;
        for address in 0..10_000 {
            last = samples.frame(&StackFrame {
                function: &name,
                module: "lib",
                address,
                ..StackFrame::default()
            });
        }
        assert_eq!(samples.frame_names(last.expect("room"))[0].len(), MOST_NAME);
        assert_eq!(samples.texts.0.len(), 2);
    }

    #[test]
    fn a_frame_without_room_for_its_name_leaves_its_sample_out() {
        let mut samples = Samples::default();
        let mut number = |n: usize| {
            let name = format!("{n}{}", "x".repeat(MOST_NAME));
            samples.frame(&StackFrame { function: &name, ..StackFrame::default() })
        };
        assert!((0..MOST_TEXT / MOST_NAME).any(|n| number(n).is_none()));
    }
}
