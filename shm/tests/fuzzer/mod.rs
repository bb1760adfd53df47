//! A fuzzer for [`hairline_shm::recover`]. No region may make it panic, run without end, use more memory than
//! in proportion to the file, or return fragments out of order.
//!
//! ```text
//! seed, index -> the region of a killed process -> damage -> a file -> all fragments, of both parts
//! ```
//!
//! An input depends only on the seed and its index. So a failing input can be run again alone.

// Shared with the fuzzer of the decoders.
#[path = "../../../formats/tests/fuzzer/alloc.rs"]
#[allow(dead_code)]
mod alloc;
#[path = "../../../formats/tests/fuzzer/random.rs"]
#[allow(dead_code)]
mod random;
#[path = "../../../formats/tests/fuzzer/workers.rs"]
mod workers;

mod images;

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use hairline_shm::recover::{Facts, Part, RecoverError, RegionFile};
use images::{Image, damage};
use random::Random;

#[global_allocator]
static ALLOC: alloc::Meter = alloc::Meter;

/// Bytes that may be allocated for any file: paths, messages, the content of `/proc`.
const FIXED_MEMORY: usize = 64 * 1024;
/// Bytes that may be allocated for each byte of the file: the head of the stream and a chunk, each twice
/// while it is split or grows.
const MEMORY_PER_BYTE: usize = 4;

/// The results of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) inputs: u64,
    /// Regions that were read to their end.
    pub(crate) read: u64,
    /// Regions that were refused.
    pub(crate) refused: u64,
    pub(crate) fragments: u64,
    /// Chunks that were left out as damaged.
    pub(crate) damaged: u64,
    /// The most memory that was allocated beyond the part in proportion to the file.
    peak: usize,
}

impl workers::Tally for Tally {
    fn add(&mut self, other: &Self) {
        self.inputs += other.inputs;
        self.read += other.read;
        self.refused += other.refused;
        self.fragments += other.fragments;
        self.damaged += other.damaged;
        self.peak = self.peak.max(other.peak);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inputs, read, refused, fragments, damaged, peak } = self;
        write!(f, "{inputs} inputs, {read} read, {refused} refused, {fragments} fragments, ")?;
        write!(f, "{damaged} damaged chunks, at most {peak} bytes of memory")
    }
}

/// Runs the inputs with these indices. Stops at the first failure and describes it.
pub(crate) fn run(seed: u64, indices: Range<u64>) -> Result<Tally, String> {
    let images = images::all();
    let worker = |number| {
        let (mut place, images) = (Place::new(number), &images);
        move |index| one(images, seed, index, &mut place)
    };
    workers::run(&format!("recover, seed {seed}"), indices, worker).map_err(|(index, what)| {
        let again = format!("ci/fuzz.sh recover --seed {seed} --from {index} --inputs 1");
        format!("recover, seed {seed}, input {index}: {what}\nagain: {again}")
    })
}

/// A file for one input after the other.
struct Place {
    file: File,
    path: PathBuf,
}

impl Place {
    fn new(number: usize) -> Self {
        let path = PathBuf::from(format!("/dev/shm/recover-fuzz-{}-{number}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        Self { file, path }
    }

    fn region(&mut self, bytes: &[u8]) -> Result<RegionFile, RecoverError> {
        self.file.set_len(bytes.len() as u64).unwrap();
        self.file.write_all_at(bytes, 0).unwrap();
        // If a region has no header, its pid is read from this name.
        let name = PathBuf::from("/dev/shm/hairline-4294967295-0123456789abcdef");
        RegionFile::of(self.file.try_clone().unwrap(), name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn one(images: &[Image], seed: u64, index: u64, place: &mut Place) -> Result<Tally, String> {
    let mut random = Random::new(seed, index);
    let image: &Image = random.pick(images);
    let mut bytes = image.bytes.clone();
    let damages = [0, 1, 1, 2, 2, 3, 5, 9][random.below(8)];
    for _ in 0..damages {
        damage(&mut bytes, &random.pick(images).bytes, &mut random);
    }
    let opened = alloc::peak_during(|| -> Result<_, RecoverError> {
        let region = place.region(&bytes)?.lock(true)?;
        let mut read = Read::default();
        for (part, into) in [(Part::NotInOutput, 0), (Part::All, 1)] {
            let mut fragments = region.fragments(part)?;
            read.damaged += u64::from(fragments.damaged());
            let mut last = None;
            while let Some(fragment) = fragments.next()? {
                read.in_order &= last < Some((fragment.sequence, fragment.index));
                last = Some((fragment.sequence, fragment.index));
                read.bytes[into] += fragment.bytes.len();
                read.records[into] += u64::from(fragment.records);
                read.fragments += 1;
            }
        }
        Ok((read, region.facts().clone()))
    });
    let (result, peak) = opened;
    let limit = FIXED_MEMORY + MEMORY_PER_BYTE * bytes.len();
    if peak > limit {
        return Err(format!("{peak} bytes of memory, which is more than {limit}"));
    }
    let mut tally =
        Tally { inputs: 1, peak: peak.saturating_sub(MEMORY_PER_BYTE * bytes.len()), ..Tally::default() };
    match result {
        Ok((read, facts)) => {
            read.check(&facts, bytes.len())?;
            if damages == 0 && (read.damaged > 0 || read.records != image.records) {
                return Err(format!("a valid region gives {read:?}, not {:?}", image.records));
            }
            tally.read = 1;
            tally.fragments = read.fragments;
            tally.damaged = read.damaged;
        }
        Err(e) if damages == 0 => return Err(format!("a valid region is refused: {e}")),
        Err(_) => tally.refused = 1,
    }
    Ok(tally)
}

/// The outcome of one region.
#[derive(Debug)]
struct Read {
    /// The records that the output does not have, and all records.
    bytes: [usize; 2],
    records: [u64; 2],
    fragments: u64,
    damaged: u64,
    in_order: bool,
}

impl Default for Read {
    fn default() -> Self {
        Self { bytes: [0; 2], records: [0; 2], fragments: 0, damaged: 0, in_order: true }
    }
}

impl Read {
    fn check(&self, facts: &Facts, file_len: usize) -> Result<(), String> {
        if !self.in_order {
            return Err("a fragment is out of order or comes twice".to_owned());
        }
        // Each chunk once, and before it a context that is not longer than a chunk.
        if self.bytes.iter().any(|bytes| *bytes > 2 * file_len) {
            return Err(format!("{self:?} of {file_len} bytes"));
        }
        let chunks = u64::from(facts.chunk_count) * u64::from(facts.chunk_size);
        if chunks > file_len as u64 || facts.prelude.len() > file_len {
            return Err(format!("{facts:?} of {file_len} bytes"));
        }
        Ok(())
    }
}
