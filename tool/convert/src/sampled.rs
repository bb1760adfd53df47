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
/// The limit for functions of all symbols, 12 bytes each.
const MOST_LINES: usize = 1 << 22;
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

/// The samples of one kind: times and stacks by process and thread.
type ByThread = HashMap<(u64, u64), Vec<(i64, StackId)>>;

/// The samples of a trace.
#[derive(Debug, Default)]
pub struct Samples {
    /// Those of each kind, in the order of the kinds.
    by_kind: [ByThread; 4],
    stacks: Numbered<Stack>,
    frames: Numbered<Frame>,
    modules: Numbered<Module>,
    symbols: HashMap<(u32, u64), Box<[Line]>>,
    /// The number of functions in `symbols`.
    lines: usize,
    texts: Texts,
    count: usize,
    /// The period of the first sample on the CPU; 0 if others differ.
    period: Option<u64>,
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

/// A function at an address: its name, its file and the line.
#[derive(Clone, Copy, Debug)]
struct Line {
    function: StringId,
    file: StringId,
    line: u32,
}

/// A frame of a stack: an address in a program or library, from 0 without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// What is known of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'s> {
    /// The number of the program or library, from 0 without gaps.
    pub module: u32,
    /// The address relative to the module.
    pub address: u64,
    /// The function, before the functions that are inlined in it, the innermost last. Empty if it has no
    /// name.
    pub functions: Vec<Function<'s>>,
}

/// A function. Unknown properties are "" or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function<'s> {
    /// Its name.
    pub name: &'s str,
    /// The path of the source file.
    pub file: &'s str,
    /// The line in the file, at which the frame is.
    pub line: u32,
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

    /// Returns the number of a call stack; `None` if there are too many.
    pub fn stack(&mut self, of: &dyn crate::Stack) -> Option<StackId> {
        let (mut stack, mut depth, mut is_full) = (None, 0, self.count >= MOST_SAMPLES);
        let mut innermost = None;
        of.each(&mut |frame| {
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
        stack.filter(|_| !is_full)
    }

    fn add(&mut self, sample: &Sample<'_>) {
        match self.stack(sample.stack) {
            Some(stack) => {
                self.count += 1;
                if [SampleKind::OnCpu, SampleKind::Wall].contains(&sample.kind) {
                    let first = *self.period.get_or_insert(sample.period);
                    self.period = Some(if first == sample.period { first } else { 0 });
                }
                let of_kind = &mut self.by_kind[sample.kind as usize];
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
        // Symbols name what is no file as importers do: `[vdso]` is `/[vdso]` there.
        let path = path.strip_prefix('/').filter(|path| path.starts_with('[')).unwrap_or(path);
        let path = self.texts.number(path)?;
        let build_id = build_id[..build_id.len().min(MOST_BUILD_ID)].into();
        self.modules.number(Module { path, build_id }, MOST_SYMBOLS)
    }

    fn symbols(&mut self, symbols: &Symbols<'_>) {
        if self.symbols.len() >= MOST_SYMBOLS as usize || self.lines >= MOST_LINES {
            return;
        }
        let Some(module) = self.module(symbols.module, symbols.build_id) else { return };
        // The outermost function first, as in stacks. Without room for its names, a frame has its address.
        let lines = symbols.lines.iter().rev().take(MOST_FRAMES);
        let lines = lines.map(|of| {
            let (function, file) = (self.texts.number(&of.function)?, self.texts.number(&of.file)?);
            Some(Line { function, file, line: of.line })
        });
        let Some(lines) = lines.collect::<Option<Box<[_]>>>() else { return };
        self.lines += lines.len();
        self.symbols.insert((module, symbols.address), lines);
    }

    /// Sorts the samples. Call it before the first question.
    pub fn finish(&mut self) {
        let all = self.by_kind.iter_mut().flat_map(HashMap::values_mut);
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

    /// The samples of a thread from `start` until before `end`, of one kind. The thread is that of a process,
    /// which may be unknown (0) in its samples.
    #[must_use]
    pub fn of(&self, kind: SampleKind, thread: (u64, u64), start: i64, end: i64) -> &[(i64, StackId)] {
        let of_kind = &self.by_kind[kind as usize];
        let all = of_kind.get(&thread).or_else(|| of_kind.get(&(0, thread.1)));
        let all = all.map_or(&[][..], |all| all);
        let (from, to) =
            (all.partition_point(|(time, _)| *time < start), all.partition_point(|(time, _)| *time < end));
        &all[from..to.max(from)]
    }

    /// The samples that show where the time goes: those of running threads, or else those by the clock.
    #[must_use]
    pub fn of_time(&self) -> SampleKind {
        let has = |kind: SampleKind| !self.by_kind[kind as usize].is_empty();
        if has(SampleKind::Wall) && !has(SampleKind::OnCpu) { SampleKind::Wall } else { SampleKind::OnCpu }
    }

    /// The time that each sample [of time](Self::of_time) stands for, in nanoseconds. `None` if the trace
    /// does not have it, or several.
    #[must_use]
    pub fn period(&self) -> Option<u64> {
        self.period.filter(|period| *period > 0)
    }

    /// Shows all samples of a kind: process and thread, time and stack. A thread's samples follow each other.
    pub fn each(&self, kind: SampleKind, show: &mut dyn FnMut((u64, u64), i64, StackId)) {
        let of_kind = &self.by_kind[kind as usize];
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

    /// The frames of a stack, the innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = FrameId> {
        let above = move |stack: &StackId| self.stacks.get(stack.0).below;
        std::iter::successors(Some(stack), above).map(|stack| self.top(stack).1)
    }

    /// The stack of the callers of a stack's innermost frame, and that frame. The callers' stack has the
    /// smaller number.
    #[must_use]
    pub fn top(&self, stack: StackId) -> (Option<StackId>, FrameId) {
        let Stack { below, frame } = *self.stacks.get(stack.0);
        (below, FrameId(frame))
    }

    /// The number of different stacks.
    #[must_use]
    pub fn stacks(&self) -> u32 {
        self.stacks.values.len() as u32 // at most MOST_STACKS
    }

    /// What is known of all frames, in the order of their numbers.
    pub fn places(&self) -> impl Iterator<Item = Place<'_>> {
        (0..self.frames.values.len() as u32).map(|frame| self.place(FrameId(frame)))
    }

    /// The paths and the build ids of the programs and libraries, in the order of their numbers.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.modules.values.iter().map(|module| (self.text(module.path), &*module.build_id))
    }

    /// The path of the program or library with the number that a [`Place`] has.
    #[must_use]
    pub fn module_path(&self, module: u32) -> &str {
        self.text(self.modules.get(module).path)
    }

    /// What is known of a frame.
    #[must_use]
    pub fn place(&self, frame: FrameId) -> Place<'_> {
        let Frame { function, module, address } = *self.frames.get(frame.0);
        let name = self.text(function);
        let functions = match self.symbols.get(&(module, address)) {
            _ if !name.is_empty() => vec![Function { name, file: "", line: 0 }],
            Some(lines) => lines.iter().map(|line| self.function(*line)).collect(),
            None => Vec::new(),
        };
        Place { module, address, functions }
    }

    fn function(&self, Line { function, file, line }: Line) -> Function<'_> {
        Function { name: self.text(function), file: self.text(file), line }
    }

    /// The names of the functions of a stack, the outermost first.
    #[must_use]
    pub fn names(&self, stack: StackId) -> Vec<Cow<'_, str>> {
        let mut frames: Vec<_> = self.frames(stack).collect();
        frames.reverse();
        frames.into_iter().flat_map(|frame| self.frame_names(frame.0)).collect()
    }

    /// The function of a frame, with the functions that are inlined in it.
    fn frame_names(&self, frame: u32) -> Vec<Cow<'_, str>> {
        let place = self.place(FrameId(frame));
        if place.functions.is_empty() {
            return vec![self.address_name(&place).into()];
        }
        place.functions.iter().map(|function| function.name.into()).collect()
    }

    /// What stands for the function of a frame that has no name: file and address.
    #[must_use]
    pub fn address_name(&self, place: &Place<'_>) -> String {
        let path = self.text(self.modules.get(place.module).path);
        let file = path.rsplit('/').next().filter(|file| !file.is_empty()).unwrap_or("?");
        format!("{file}+{:#x}", place.address)
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
