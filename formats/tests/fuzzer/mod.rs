//! A fuzzer for the decoders. No input may make a decoder panic, run for ever, report an offset outside of
//! the input, hold more memory than a multiple of the input, or read differently when the input comes in
//! pieces.
//!
//! ```text
//! seed, index -> units of the corpus in a row -> damage -> walk in one piece -> walk in tiny pieces: same result?
//! ```
//!
//! It uses no coverage and needs only this crate. An input depends only on the seed and its index, so that a
//! failing input can be run alone.

mod alloc;
mod fxt;
mod mutate;
mod random;
mod trace_event_json;
mod track_event;
mod walk;
mod workers;

use std::fmt::{self, Write};
use std::io::Read;
use std::ops::Range;

use random::Random;
use walk::{ERRORS, Outcome, Pieces, Walk};

pub(crate) use fxt::Fxt;
pub(crate) use trace_event_json::TraceEventJson;
pub(crate) use track_event::TrackEvent;

#[global_allocator]
static ALLOC: alloc::Meter = alloc::Meter;

/// A decoder under test.
pub(crate) trait Format {
    const NAME: &'static str;
    /// Whether the reader decides by what follows where something is wrong.
    const READS_AHEAD: bool = false;
    /// The smallest size of a record or packet in bytes.
    const MIN_ITEM: usize;
    /// The bytes that the decoder may hold for each byte of input: its buffer grows twofold, and exists twice
    /// while it grows.
    const MEMORY_PER_BYTE: usize = 4;
    /// Functions that write valid records or packets. Any row of these, framed, is a valid trace.
    const UNITS: &'static [fn(Units<'_>)];
    /// Adds the frame that makes a row of units a trace.
    fn frame(row: Vec<u8>, _random: &mut Random) -> Vec<u8> {
        row
    }
    /// Damages bytes according to the format, so that the decoder fails deep inside.
    fn mutate(bytes: &mut Vec<u8>, random: &mut Random);
    /// Reads the whole input.
    fn walk(reader: impl Read, walk: &mut Walk) -> Result<(), String>;
}

/// Receives functions that write one record or packet each.
pub(crate) type Units<'a> = &'a mut dyn FnMut(&dyn Fn(&mut Vec<u8>));

/// The records or packets of a format, one by one.
fn units<F: Format>() -> Vec<Vec<u8>> {
    let mut units = Vec::new();
    for write in F::UNITS {
        write(&mut |write| {
            let mut out = Vec::new();
            write(&mut out);
            units.push(out);
        });
    }
    units
}

/// The bytes that a decoder may hold for any input: its buffer, and some more.
const FIXED_MEMORY: usize = 128 * 1024;

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    inputs: u64,
    bytes: u64,
    pub(crate) items: u64,
    pub(crate) parts: u64,
    pub(crate) errors: [u64; ERRORS.len()],
    /// The most memory above the part that is proportional to the input.
    peak: usize,
}

impl workers::Tally for Tally {
    fn add(&mut self, other: &Self) {
        self.inputs += other.inputs;
        self.bytes += other.bytes;
        self.items += other.items;
        self.parts += other.parts;
        self.errors.iter_mut().zip(other.errors).for_each(|(to, from)| *to += from);
        self.peak = self.peak.max(other.peak);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inputs, bytes, items, parts, errors, peak } = self;
        write!(f, "{inputs} inputs, {bytes} bytes, {items} items, {parts} parts; errors:")?;
        for (name, count) in ERRORS.iter().zip(errors) {
            write!(f, " {name} {count},")?;
        }
        write!(f, " at most {peak} bytes of memory")
    }
}

/// An input that a decoder read wrongly.
#[derive(Debug)]
pub(crate) struct Failure {
    decoder: &'static str,
    seed: u64,
    index: u64,
    what: String,
    input: Vec<u8>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { decoder, seed, index, what, input } = self;
        let hex = input.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        writeln!(f, "{decoder}, seed {seed}, input {index}: {what}")?;
        writeln!(f, "again: ci/fuzz.sh {decoder} --seed {seed} --from {index} --inputs 1")?;
        write!(f, "{} bytes: {hex}", input.len())
    }
}

/// Runs the inputs with these indices. Stops at the first failure.
pub(crate) fn run<F: Format>(seed: u64, indices: Range<u64>) -> Result<Tally, Box<Failure>> {
    let units = units::<F>();
    let one = |index| {
        let (mut random, input, damaged) = input::<F>(&units, seed, index);
        check::<F>(&input, damaged, &mut random)
    };
    workers::run(&format!("{}, seed {seed}", F::NAME), indices, |_| one).map_err(|(index, what)| {
        let (_, input, _) = input::<F>(&units, seed, index);
        Box::new(Failure { decoder: F::NAME, seed, index, what, input })
    })
}

/// Returns an input, whether it is damaged, and the random choices that remain.
fn input<F: Format>(units: &[Vec<u8>], seed: u64, index: u64) -> (Random, Vec<u8>, bool) {
    let mut random = Random::new(seed, index);
    let mut bytes = Vec::new();
    // Sometimes more than the reader's buffer holds.
    let least = if random.one_in(1024) { 60_000 + random.below(100_000) } else { 0 };
    for _ in 0..=random.below(6) {
        bytes.extend_from_slice(random.pick::<Vec<u8>>(units));
    }
    while bytes.len() < least {
        bytes.extend_from_slice(random.pick::<Vec<u8>>(units));
    }
    let mut bytes = F::frame(bytes, &mut random);
    let damages = [0, 1, 1, 2, 2, 3, 5, 9][random.below(8)];
    for _ in 0..damages {
        if random.one_in(2) {
            let other = random.pick(units);
            mutate::mutate(&mut bytes, other, &mut random);
        } else {
            F::mutate(&mut bytes, &mut random);
        }
    }
    bytes.truncate(mutate::MAX_INPUT);
    (random, bytes, damages > 0)
}

fn check<F: Format>(input: &[u8], damaged: bool, random: &mut Random) -> Result<Tally, String> {
    // Only a part of the runs hashes all items: printing them takes longer than reading them.
    let hashed = random.one_in(4);
    let read = |bytes: &[u8], reader: &mut dyn Read| -> Result<(Outcome, usize), String> {
        let mut walk = Walk::new(bytes.len(), F::MIN_ITEM, hashed);
        let (walked, peak) = alloc::peak_during(|| F::walk(reader, &mut walk));
        walked?;
        let limit = FIXED_MEMORY + F::MEMORY_PER_BYTE * bytes.len();
        if peak > limit {
            return Err(format!("{peak} bytes of memory, which is more than {limit}"));
        }
        Ok((walk.end(), peak))
    };
    let (outcome, peak) = read(input, &mut &input[..])?;
    let errors = outcome.errors;
    if !damaged && errors.iter().any(|count| *count > 0) {
        return Err(format!("a valid trace has errors: {outcome:?}"));
    }
    if hashed {
        let pieces = Random::new(random.next(), 0);
        let (slow, _) = read(input, &mut Pieces { bytes: input, random: pieces })?;
        if slow != outcome {
            return Err(format!("in pieces it is {slow:?}, in one piece {outcome:?}"));
        }
    }
    // The bytes before a truncation are a trace. Where something was passed over, its end may be beyond them.
    if let Some((offset, hash)) = outcome.truncated.filter(|_| !F::READS_AHEAD || outcome.skipped == 0) {
        let kept = &input[..offset as usize];
        let (prefix, _) = read(kept, &mut &kept[..])?;
        if prefix.truncated.is_some() || prefix.hash != hash {
            return Err(format!("cut at {offset} it is {prefix:?}, whole {outcome:?}"));
        }
    }
    let Outcome { items, parts, .. } = outcome;
    Ok(Tally {
        inputs: 1,
        bytes: input.len() as u64,
        items,
        parts,
        errors,
        peak: peak.saturating_sub(F::MEMORY_PER_BYTE * input.len()),
    })
}
