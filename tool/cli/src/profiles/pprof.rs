//! Samples, and a heap profile, as pprof's `perftools.profiles.Profile`.
//!
//! A profile has a list of values, which each of its samples has: those of another kind are 0 in it.
//!
//! A location is a frame: an address of a program or library, with its function and those that are inlined in
//! it. Addresses are those of the file, so a mapping has no start: readers then take them as they are.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use hairline_convert::sampled::{Function, Place, Samples, StackId};
use hairline_convert::{BriefEvent, Item, Report, SampleKind, Strings};
use hairline_formats::proto::{PutMessages, put_bytes, put_str, put_uint, put_varint};
use hairline_formats::track_event::ALLOCATION;

use crate::aligned::zero;
use crate::folded::NO_SAMPLES;
use crate::heap_sums::HeapProfile;
use crate::profiles::made::{Made, Profile, settle};
use crate::profiles::texts::Texts;
use crate::trace::{ItemVisitor, TraceArguments};
use crate::track_names::TrackNames;

/// Field numbers, by message.
mod fields {
    pub(super) mod profile {
        pub(in super::super) const SAMPLE_TYPE: u32 = 1;
        pub(in super::super) const SAMPLE: u32 = 2;
        pub(in super::super) const MAPPING: u32 = 3;
        pub(in super::super) const LOCATION: u32 = 4;
        pub(in super::super) const FUNCTION: u32 = 5;
        pub(in super::super) const STRING_TABLE: u32 = 6;
        pub(in super::super) const TIME_NANOS: u32 = 9;
        pub(in super::super) const DURATION_NANOS: u32 = 10;
        pub(in super::super) const PERIOD_TYPE: u32 = 11;
        pub(in super::super) const PERIOD: u32 = 12;
        pub(in super::super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
    }
    pub(super) mod value_type {
        pub(in super::super) const KIND: u32 = 1;
        pub(in super::super) const UNIT: u32 = 2;
    }
    pub(super) mod sample {
        pub(in super::super) const LOCATION_ID: u32 = 1;
        pub(in super::super) const VALUE: u32 = 2;
        pub(in super::super) const LABEL: u32 = 3;
    }
    pub(super) mod label {
        pub(in super::super) const KEY: u32 = 1;
        pub(in super::super) const STR: u32 = 2;
    }
    pub(super) mod mapping {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const FILENAME: u32 = 5;
        pub(in super::super) const BUILD_ID: u32 = 6;
        /// Functions, file names, line numbers, inlined frames.
        pub(in super::super) const HAS: [u32; 4] = [7, 8, 9, 10];
    }
    pub(super) mod location {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const MAPPING_ID: u32 = 2;
        pub(in super::super) const ADDRESS: u32 = 3;
        pub(in super::super) const LINE: u32 = 4;
    }
    pub(super) mod line {
        pub(in super::super) const FUNCTION_ID: u32 = 1;
        pub(in super::super) const LINE: u32 = 2;
    }
    pub(super) mod function {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
        pub(in super::super) const FILENAME: u32 = 4;
    }
}

const NO_PERIOD: &str = "traces without the CPU time of a sample: the profile has numbers of samples only";

/// Makes a profile of a trace.
pub(super) fn make(trace: &TraceArguments) -> Result<Made, String> {
    let mut collected = Collected::default();
    let summary = trace.show(false, &mut collected)?;
    let mut report = std::mem::take(&mut collected.report);
    settle(&mut collected.samples, &mut report);
    collected.heap.end_dump();
    report.add_many(
        "call stacks of the heap profile left out, because there are too many",
        collected.heap.left_out,
    );
    collected.samples.each(collected.samples.of_time(), &mut |_, _, _| collected.has_samples = true);
    if !collected.has_samples && collected.heap.is_empty() {
        let end = summary.stopped.as_ref().map(|e| format!("; {e}")).unwrap_or_default();
        return Err(format!("{}: {NO_SAMPLES}{end}", summary.name));
    }
    let has_no_period = collected.has_samples && collected.samples.period().is_none();
    report.add_many(NO_PERIOD, has_no_period.into());
    Ok(Made { summary, profile: Box::new(collected), report })
}

/// What the profile has of a trace.
#[derive(Default)]
struct Collected {
    samples: Samples,
    has_samples: bool,
    heap: HeapProfile,
    names: TrackNames,
    since_1970: Option<i64>,
    report: Report,
}

impl ItemVisitor for Collected {
    const TAKES_BRIEFS: bool = true;

    fn briefs(&mut self, briefs: &[BriefEvent], _: &Strings) {
        self.report.add_many(EVENTS, briefs.len() as u64);
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Track(track) => self.names.set(track),
            Item::Trace(trace) => self.since_1970 = self.since_1970.or_else(|| zero(trace)),
            Item::Event(_) => self.report.add(EVENTS),
            Item::Scheduling(_) => self.report.add("records of the scheduler left out"),
            Item::Loss(_) => self.report.add("places where events are missing"),
            Item::Heap(new) => self.heap.add(new, &mut self.samples),
            _ => self.samples.item(item),
        }
    }
}

const EVENTS: &str = "events left out: pprof has samples only";

impl Collected {
    /// The time that a sample stands for, if there are samples and the trace has it.
    fn period(&self) -> Option<u64> {
        self.samples.period().filter(|_| self.has_samples)
    }
}

impl Profile for Collected {
    fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let mut writer = Writer { output, message: Vec::new(), texts: Texts::default() };
        writer.texts.number(""); // the format demands it
        writer.head(self)?;
        writer.samples(self)?;
        writer.heap(self)?;
        let resolved = writer.locations(&self.samples)?;
        writer.mappings(self, &resolved)?;
        writer.text_table()
    }
}

struct Writer<'o> {
    output: &'o mut dyn Write,
    message: Vec<u8>,
    texts: Texts,
}

/// How much is known of each frame of a module: functions, file names, line numbers, inlined frames.
type Resolved = BTreeMap<u32, [bool; 4]>;

impl Writer<'_> {
    /// Writes a message of the profile.
    fn put(&mut self, field: u32, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.message.clear();
        self.message.message(field, write);
        self.output.write_all(&self.message)
    }

    fn number(&mut self, field: u32, value: u64) -> io::Result<()> {
        self.message.clear();
        put_uint(&mut self.message, field, value);
        self.output.write_all(&self.message)
    }

    fn value_type(&mut self, field: u32, kind: &str, unit: &str) -> io::Result<()> {
        let (kind, unit) = (self.texts.number(kind), self.texts.number(unit));
        self.put(field, |out| {
            put_uint(out, fields::value_type::KIND, kind.into());
            put_uint(out, fields::value_type::UNIT, unit.into());
        })
    }

    fn head(&mut self, of: &Collected) -> io::Result<()> {
        use fields::profile as field;
        if of.has_samples {
            self.value_type(field::SAMPLE_TYPE, "samples", "count")?;
        }
        if let Some(period) = of.period() {
            let name = if of.samples.of_time() == SampleKind::Wall { "wall" } else { "cpu" };
            self.value_type(field::SAMPLE_TYPE, name, "nanoseconds")?;
            self.value_type(field::PERIOD_TYPE, name, "nanoseconds")?;
            self.number(field::PERIOD, period)?;
        }
        if !of.heap.is_empty() {
            self.value_type(field::SAMPLE_TYPE, "alloc_space", "bytes")?;
            self.value_type(field::SAMPLE_TYPE, "inuse_space", "bytes")?;
            // Readers show the last one otherwise.
            let first = self.texts.number(if of.has_samples { "samples" } else { "inuse_space" });
            self.number(field::DEFAULT_SAMPLE_TYPE, first.into())?;
        }
        let (mut first, mut last) = of.heap.dumps().unwrap_or((i64::MAX, i64::MIN));
        of.samples
            .each(of.samples.of_time(), &mut |_, time, _| (first, last) = (first.min(time), last.max(time)));
        self.number(field::DURATION_NANOS, last.saturating_sub(first).max(0).cast_unsigned())?;
        let start = of.since_1970.and_then(|zero| first.checked_add(zero)).unwrap_or(0);
        self.number(field::TIME_NANOS, start.max(0).cast_unsigned())
    }

    fn samples(&mut self, of: &Collected) -> io::Result<()> {
        let (keys, mut counts) = (["thread", "process"], HashMap::<_, u64>::new());
        let keys = keys.map(|key| self.texts.number(key));
        of.samples.each(of.samples.of_time(), &mut |thread, _, stack| {
            *counts.entry((thread, stack)).or_default() += 1;
        });
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable();
        let mut owner = None;
        for ((thread, stack), count) in counts {
            let (_, labels) = match owner {
                Some(known @ (of, _)) if of == thread => known,
                _ => (thread, self.labels(&of.names, thread)),
            };
            owner = Some((thread, labels));
            let time = of.period().map(|period| count.saturating_mul(period));
            let of_heap = [0; 2].into_iter().filter(|_| !of.heap.is_empty());
            let values = [count].into_iter().chain(time).chain(of_heap);
            self.sample(locations(&of.samples, stack), values, keys.into_iter().zip(labels))?;
        }
        Ok(())
    }

    /// Writes the heap profile: what was allocated, and what is live at the last dump.
    fn heap(&mut self, of: &Collected) -> io::Result<()> {
        let key = self.texts.number("process");
        let others = usize::from(of.has_samples) + usize::from(of.period().is_some());
        let mut sums: Vec<_> =
            of.heap.sums().filter_map(|(pid, sums)| Some((pid, sums.stack?, sums))).collect();
        sums.sort_unstable_by_key(|(pid, stack, _)| (*pid, *stack));
        for (pid, stack, sums) in sums {
            let process = of.names.process(pid);
            let name = process.map_or_else(|| format!("process {pid}"), |process| of.names.name(process));
            let label = (key, self.texts.number(&name));
            let is_call = of.samples.names(stack).last().is_some_and(|name| name == ALLOCATION);
            let values = std::iter::repeat_n(0, others).chain([sums.allocated, sums.live()]);
            self.sample(locations(&of.samples, stack).skip(is_call.into()), values, [label].into_iter())?;
        }
        Ok(())
    }

    fn sample(
        &mut self,
        locations: impl Iterator<Item = u64>,
        values: impl Iterator<Item = u64>,
        labels: impl Iterator<Item = (u32, u32)>,
    ) -> io::Result<()> {
        self.put(fields::profile::SAMPLE, |out| {
            put_packed(out, fields::sample::LOCATION_ID, locations);
            let most = i64::MAX.cast_unsigned(); // values are signed
            put_packed(out, fields::sample::VALUE, values.map(|value| value.min(most)));
            for (key, text) in labels {
                out.message(fields::sample::LABEL, |out| {
                    put_uint(out, fields::label::KEY, key.into());
                    put_uint(out, fields::label::STR, text.into());
                });
            }
        })
    }

    /// The names of the thread and the process.
    fn labels(&mut self, names: &TrackNames, thread: (u64, u64)) -> [u32; 2] {
        let (pid, tid) = thread;
        let (process, track) = names.sampled(thread);
        let track = track.map_or_else(|| format!("thread {tid}"), |track| names.name(track));
        let process = process.map_or_else(|| format!("process {pid}"), |process| names.name(process));
        [track, process].map(|name| self.texts.number(&name))
    }

    /// Writes locations and functions.
    fn locations(&mut self, samples: &Samples) -> io::Result<Resolved> {
        let (mut functions, mut resolved) = (HashMap::new(), Resolved::new());
        for (place, id) in samples.places().zip(1..) {
            note(resolved.entry(place.module).or_insert([true, false, false, false]), &place);
            let mut lines = Vec::new();
            for function in place.functions.iter().rev() {
                lines.push((self.function(*function, &mut functions)?, function.line));
            }
            self.put(fields::profile::LOCATION, |out| {
                put_uint(out, fields::location::ID, id);
                put_uint(out, fields::location::MAPPING_ID, u64::from(place.module) + 1);
                put_uint(out, fields::location::ADDRESS, place.address);
                for (function, line) in lines {
                    out.message(fields::location::LINE, |out| {
                        put_uint(out, fields::line::FUNCTION_ID, function);
                        put_uint(out, fields::line::LINE, line.into());
                    });
                }
            })?;
        }
        Ok(resolved)
    }

    /// Returns the id of a function, and writes it if it is new.
    fn function(&mut self, function: Function<'_>, known: &mut HashMap<(u32, u32), u64>) -> io::Result<u64> {
        let (name, file) = (self.texts.number(function.name), self.texts.number(function.file));
        let next = known.len() as u64 + 1;
        let id = *known.entry((name, file)).or_insert(next);
        if id == next {
            // A system name that is equal to the name would mean that it is mangled: pprof would then cut
            // what is in angle brackets.
            self.put(fields::profile::FUNCTION, |out| {
                put_uint(out, fields::function::ID, id);
                put_uint(out, fields::function::NAME, name.into());
                put_uint(out, fields::function::FILENAME, file.into());
            })?;
        }
        Ok(id)
    }

    /// Writes the programs and libraries, the main program first.
    fn mappings(&mut self, of: &Collected, resolved: &Resolved) -> io::Result<()> {
        let mut modules: Vec<_> = of.samples.modules().zip(0..).collect();
        let program = main_program(of);
        let is_other = |path: &str| program.as_ref().is_none_or(|name| path.rsplit('/').next() != Some(name));
        modules.sort_by_key(|((path, _), _)| is_other(path)); // keeps the order of others
        for ((path, build_id), module) in modules {
            let hexadecimal: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let (path, build_id) = (self.texts.number(path), self.texts.number(&hexadecimal));
            self.put(fields::profile::MAPPING, |out| {
                put_uint(out, fields::mapping::ID, u64::from(module) + 1);
                put_uint(out, fields::mapping::FILENAME, path.into());
                put_uint(out, fields::mapping::BUILD_ID, build_id.into());
                let has = resolved.get(&module).copied().unwrap_or_default();
                for (field, has) in fields::mapping::HAS.into_iter().zip(has) {
                    put_uint(out, field, has.into());
                }
            })?;
        }
        Ok(())
    }

    /// Writes the texts, which all messages before it refer to.
    fn text_table(self) -> io::Result<()> {
        let mut message = Vec::new();
        self.texts.iter().try_for_each(|text| {
            message.clear();
            put_str(&mut message, fields::profile::STRING_TABLE, text);
            self.output.write_all(&message)
        })
    }
}

/// Without a function for each address, readers look for functions themselves.
fn note(has: &mut [bool; 4], place: &Place<'_>) {
    has[0] &= !place.functions.is_empty();
    has[1] |= place.functions.iter().any(|function| !function.file.is_empty());
    has[2] |= place.functions.iter().any(|function| function.line > 0);
    has[3] |= place.functions.len() > 1;
}

/// The ids of the locations of a stack, the innermost first.
fn locations(samples: &Samples, stack: StackId) -> impl Iterator<Item = u64> {
    samples.frames(stack).map(|frame| u64::from(frame.0) + 1)
}

/// The file name of the program with the most samples: that of its process.
fn main_program(of: &Collected) -> Option<String> {
    let mut counts = BTreeMap::<_, u64>::new();
    of.samples.each(of.samples.of_time(), &mut |thread, _, _| *counts.entry(thread).or_default() += 1);
    let (thread, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    of.names.sampled(thread).0.map(|process| of.names.name_without_id(process))
}

fn put_packed(out: &mut Vec<u8>, field: u32, values: impl Iterator<Item = u64>) {
    let mut packed = Vec::new();
    values.for_each(|value| put_varint(&mut packed, value));
    put_bytes(out, field, &packed);
}
