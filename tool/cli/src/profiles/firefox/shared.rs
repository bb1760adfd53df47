//! The tables that all threads share: stacks, frames, functions, programs and libraries, texts.

use std::collections::HashMap;
use std::io::{self, Write};

use hairline_convert::sampled::{Place, Samples, StackId};
use serde_json::{Value, json};

use crate::profiles::firefox::columns::column;
use crate::profiles::texts::Texts;

/// The limit for rows of the table of stacks. Without it, a small trace could have a profile of gigabytes: an
/// address with hundreds of inlined functions may be in each stack.
const MOST_ROWS: u64 = 1 << 23;

/// The rows of the tables of stacks and frames: one for each function, also for inlined ones.
pub(super) struct Stacks<'s> {
    places: Vec<Place<'s>>,
    /// The first row of each frame in the table of frames.
    frames: Vec<u32>,
    /// The last row of each stack in the table of stacks: its innermost function.
    stacks: Vec<u32>,
    /// The rows beyond the limit: then no stack has the functions around an inlined one.
    pub(super) left_out: u64,
}

/// The number of rows of a frame.
fn rows(place: &Place<'_>) -> u32 {
    place.functions.len().max(1) as u32 // the samples have limits
}

impl<'s> Stacks<'s> {
    pub(super) fn of(samples: &'s Samples) -> Self {
        let mut places: Vec<_> = samples.places().collect();
        let all = || (0..samples.stacks()).map(StackId);
        let frame = |stack: StackId| samples.top(stack).1.0 as usize;
        let needed: u64 = all().map(|stack| u64::from(rows(&places[frame(stack)]))).sum();
        let mut left_out = 0;
        if needed > MOST_ROWS {
            left_out = needed - u64::from(samples.stacks());
            for place in &mut places {
                place.functions.drain(..place.functions.len().saturating_sub(1));
            }
        }
        let sums = |sum: &mut u32, rows: u32| {
            *sum += rows;
            Some(*sum)
        };
        let frames = places.iter().scan(0, |sum, place| sums(sum, rows(place)).map(|end| end - rows(place)));
        let stacks = all().scan(0, |sum, stack| sums(sum, rows(&places[frame(stack)])).map(|end| end - 1));
        let (frames, stacks) = (frames.collect(), stacks.collect());
        Self { places, frames, stacks, left_out }
    }

    /// The row of a stack.
    pub(super) fn row(&self, stack: StackId) -> u32 {
        self.stacks[stack.0 as usize]
    }

    /// Writes the tables, the texts last: all others refer to them.
    pub(super) fn write(
        &self,
        samples: &Samples,
        texts: &mut Texts,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        self.write_stacks(samples, output)?;
        let mut functions = Functions::default();
        self.write_frames(samples, &mut functions, texts, output)?;
        functions.write(output)?;
        let modules: Vec<_> = samples.modules().map(|(path, _)| texts.number(file_name(path))).collect();
        let count = modules.len();
        output.write_all(br#""resourceTable":{"#)?;
        column(output, "lib", (0..count).map(Value::from))?;
        column(output, "name", modules.into_iter().map(Value::from))?;
        column(output, "host", (0..count).map(|_| Value::Null))?;
        column(output, "type", (0..count).map(|_| LIBRARY.into()))?;
        write!(output, r#""length":{count}}},"#)?;
        let symbols = json!({"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0});
        write!(output, r#""nativeSymbols":{symbols},"#)?;
        output.write_all(br#""stringArray":["#)?;
        for (n, text) in texts.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(output, "{comma}{}", Value::from(text))?;
        }
        output.write_all(b"]")
    }

    fn write_stacks(&self, samples: &Samples, output: &mut dyn Write) -> io::Result<()> {
        // Each row: its frame, and how far it is in the stack.
        let each = || {
            (0..samples.stacks()).map(StackId).flat_map(|stack| {
                let (below, frame) = samples.top(stack);
                let frame = frame.0 as usize;
                let last = self.row(stack);
                let first = last + 1 - rows(&self.places[frame]);
                let caller = below.map(|below| self.row(below));
                (first..=last).map(move |row| {
                    let caller = if row == first { caller } else { Some(row - 1) };
                    (self.frames[frame] + (row - first), caller)
                })
            })
        };
        output.write_all(br#""stackTable":{"#)?;
        column(output, "frame", each().map(|(frame, _)| frame.into()))?;
        column(output, "prefix", each().map(|(_, caller)| caller.into()))?;
        write!(output, r#""length":{}}},"#, self.stacks.last().map_or(0, |last| last + 1))
    }

    fn write_frames(
        &self,
        samples: &Samples,
        functions: &mut Functions,
        texts: &mut Texts,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let each = || self.places.iter().flat_map(|place| (0..rows(place)).map(move |n| (place, n as usize)));
        let lines =
            |(place, n): (&Place<'_>, usize)| place.functions.get(n).map(|f| f.line).filter(|l| *l > 0);
        let mut numbers = Vec::new();
        for (place, n) in each() {
            let (name, file) = match place.functions.get(n) {
                Some(function) => (texts.number(function.name), texts.number(function.file)),
                None => (texts.number(&samples.address_name(place)), texts.number("")),
            };
            numbers.push(functions.number([name, file, place.module], texts));
        }
        let count = numbers.len();
        let constant = |value: Value| (0..count).map(move |_| value.clone());
        output.write_all(br#""frameTable":{"#)?;
        column(output, "address", each().map(|(place, _)| place.address.into()))?;
        column(output, "inlineDepth", each().map(|(_, n)| n.into()))?;
        column(output, "category", constant(0.into()))?;
        column(output, "subcategory", constant(0.into()))?;
        column(output, "func", numbers.into_iter().map(Value::from))?;
        column(output, "nativeSymbol", constant(Value::Null))?;
        column(output, "innerWindowID", constant(Value::Null))?;
        column(output, "line", each().map(|row| lines(row).into()))?;
        column(output, "column", constant(Value::Null))?;
        write!(output, r#""length":{count}}},"#)
    }
}

/// The type of a resource that is a program or library.
const LIBRARY: u32 = 1;

/// Functions by the numbers of their name, their file and their module.
#[derive(Default)]
struct Functions {
    numbers: HashMap<[u32; 3], u32>,
    all: Vec<[u32; 3]>,
    /// The texts of different files, by their number.
    sources: HashMap<u32, u32>,
    files: Vec<u32>,
}

impl Functions {
    fn number(&mut self, function: [u32; 3], texts: &mut Texts) -> u32 {
        let [_, file, _] = function;
        if file != texts.number("") && !self.sources.contains_key(&file) {
            self.sources.insert(file, self.files.len() as u32);
            self.files.push(file);
        }
        let next = self.all.len() as u32; // the samples have limits
        *self.numbers.entry(function).or_insert_with(|| {
            self.all.push(function);
            next
        })
    }

    fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let constant = |value: Value| self.all.iter().map(move |_| value.clone());
        output.write_all(br#""funcTable":{"#)?;
        column(output, "name", self.all.iter().map(|[name, ..]| (*name).into()))?;
        column(output, "isJS", constant(false.into()))?;
        column(output, "relevantForJS", constant(false.into()))?;
        column(output, "resource", self.all.iter().map(|[.., module]| (*module).into()))?;
        column(output, "source", self.all.iter().map(|[_, file, _]| self.sources.get(file).copied().into()))?;
        column(output, "lineNumber", constant(Value::Null))?;
        column(output, "columnNumber", constant(Value::Null))?;
        write!(output, r#""length":{}}},"sources":{{"#, self.all.len())?;
        column(output, "uuid", self.files.iter().map(|_| Value::Null))?;
        column(output, "filename", self.files.iter().map(|file| (*file).into()))?;
        write!(output, r#""length":{}}},"#, self.files.len())
    }
}

/// The programs and libraries.
pub(super) fn libs(samples: &Samples) -> Value {
    let lib = |(path, build_id): (&str, &[u8])| {
        let name = file_name(path);
        let id: String = build_id.iter().map(|byte| format!("{byte:02X}")).collect();
        json!({
            "arch": "", "name": name, "path": path, "debugName": name, "debugPath": path,
            "breakpadId": breakpad_id(build_id), "codeId": (!id.is_empty()).then(|| id.to_lowercase()),
        })
    };
    samples.modules().map(lib).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The first 16 bytes of a build id as a GUID, whose first three numbers are little-endian, and an age of 0.
fn breakpad_id(build_id: &[u8]) -> String {
    let mut guid = [0; 16];
    guid.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
    guid[..4].reverse();
    guid[4..6].reverse();
    guid[6..8].reverse();
    guid.iter().map(|byte| format!("{byte:02X}")).chain(["0".to_owned()]).collect()
}
