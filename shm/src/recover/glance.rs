//! Copies the region of a living process, from outside and without its help.
//!
//! This process cannot pin a chunk, as `window.rs` does in the process itself. So each chunk is copied
//! between two looks at its header (`looks.rs`). A field is never torn: fields are aligned words, and the
//! kernel copies an aligned word in one piece on all supported machines.
//!
//! All chunks are listed, from the youngest to the oldest in the order in which threads overwrite them. A
//! thread that moves to another chunk meanwhile takes the oldest one, which is listed last: so each thread is
//! listed, unless the others go round the whole ring during the list.
//!
//! Then the chunks are copied in the order of the window: first those that threads are writing, and the
//! youngest first. So of two chunks of a sequence the later one is copied first, and the earlier one is
//! complete when it is copied. Of each sequence, the chunks after the last gap are kept. Meanwhile threads
//! overwrite the oldest chunks. If a thread's newest chunk is missed, or threads went round the ring during
//! the list, the whole look is repeated, up to `LOOKS` times.
//!
//! Of a region with an output, only the bytes that the output does not have are copied. Each batch changes
//! which bytes those are. So a look counts only if no batch was done during it. The result is the same as
//! after a kill at that moment.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::abi::{CHUNK_HEADER_SIZE, State, TAPES};
use crate::bitmap::from_youngest;
use crate::looks::copy_between_looks;
use crate::platform;
use crate::recover::chunk::{Damaged, Entry, Header, Part, chunk_offset, keep_whole_runs, lost_by_owners};
use crate::recover::error::RecoverError;
use crate::recover::fragments::Fragment;
use crate::recover::header::{Facts, SessionState, facts_of, next_oldest};
use crate::recover::tape;

/// The most looks at a ring that is overwritten.
const LOOKS: usize = 16;
/// The most looks at a ring that is drained. Each batch during a look makes another one necessary.
const LOOKS_BETWEEN_BATCHES: usize = 1000;

/// The content of a region at one moment.
///
/// ```
/// use hairline_shm::recover::RegionFile;
/// use hairline_shm::{Backing, BackingChoice, ChunkInfo, Region, RegionConfig};
///
/// let config = RegionConfig { backing: BackingChoice::File, ..RegionConfig::small() };
/// let region = Region::create(&config)?;
/// region.activate(None);
/// let info = ChunkInfo { sequence: region.new_sequence(), ..ChunkInfo::default() };
/// let mut chunk = region.claim(info, b"").unwrap();
/// assert!(chunk.append(b"a record", 1)); // the thread still writes the chunk
///
/// let Backing::File(path) = region.backing() else { panic!() };
/// let (glance, mut bytes) = (RegionFile::open(path.as_ref())?.glance()?, Vec::new());
/// glance.each(|fragment| {
///     bytes.extend_from_slice(fragment.bytes);
///     Ok::<(), std::io::Error>(())
/// })?;
/// assert_eq!((&bytes[..], glance.missed()), (&b"a record"[..], 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Glance {
    facts: Facts,
    bytes: Vec<u8>,
    copies: Vec<Copied>,
    /// Sorted by sequence. Their numbers are indices in `copies`.
    entries: Vec<Entry>,
    /// Sequences whose newest chunk was overwritten before it was copied. In a region with an output: chunks.
    missed: usize,
    /// Threads went round the whole ring while the chunks were listed.
    has_gone_round: bool,
    tapes: [Vec<u8>; TAPES],
}

/// The committed payload of one chunk.
#[derive(Debug)]
struct Copied {
    header: Header,
    start: usize,
}

impl Glance {
    pub(super) fn take(file: &File, path: &Path) -> Result<Self, RecoverError> {
        let failed = |source| RecoverError::File { path: path.to_owned(), source };
        let facts_now = || match facts_of(file, path) {
            Ok(facts) if facts.state != SessionState::Active => {
                Err(RecoverError::NotARegion { path: path.to_owned(), what: "no session goes on in it" })
            }
            facts => facts,
        };
        let mut facts = facts_now()?;
        let mut best: Option<Self> = None;
        let looks = if facts.overwrites() { LOOKS } else { LOOKS_BETWEEN_BATCHES };
        for _ in 0..looks {
            let look = Self::look(file, facts.clone()).map_err(failed)?;
            // A session that ended meanwhile has freed its chunks. The look may have seen only some of them.
            let now = facts_now()?;
            // A chunk that is missed in a region with an output would be a gap in the trace.
            let is_of_one_moment =
                facts.overwrites() || now.batches_done == facts.batches_done && look.missed == 0;
            facts = now;
            if !is_of_one_moment {
                continue;
            }
            let is_whole = look.missed == 0 && !look.has_gone_round;
            if best.as_ref().is_none_or(|best| look.rank() > best.rank()) {
                best = Some(look);
            }
            if is_whole {
                break;
            }
        }
        let mut best =
            best.ok_or_else(|| RecoverError::Changing { path: path.to_owned(), pid: facts.pid })?;
        // After the chunks: each thread that the tape names has its records in them, or has none.
        for (number, tape) in best.tapes.iter_mut().enumerate() {
            *tape = tape::read(file, &facts_now()?, number).map_err(failed)?;
        }
        Ok(best)
    }

    /// Compares looks: the greater rank is the better look.
    fn rank(&self) -> (Reverse<bool>, Reverse<usize>, usize) {
        (Reverse(self.has_gone_round), Reverse(self.missed), self.bytes.len())
    }

    fn look(file: &File, facts: Facts) -> io::Result<Self> {
        let first = next_oldest(file)?;
        let mut listed = list(first, facts.chunk_count, |number| Header::read(file, &facts, number))?;
        let has_gone_round = next_oldest(file)?.wrapping_sub(first) >= u64::from(facts.chunk_count);
        listed.sort_unstable_by_key(|(_, h)| Reverse((h.state == State::Writing, h.claim)));
        let mut facts = facts;
        facts.add_lost_to_full_ring(lost_by_owners(file, &facts)?);
        let mut look = Self {
            facts,
            bytes: Vec::new(),
            copies: Vec::new(),
            entries: Vec::new(),
            missed: 0,
            has_gone_round,
            tapes: Default::default(),
        };
        let mut chunks_missed = 0;
        // The sequences that were seen; those that have ended, or whose newest chunk was copied.
        let (mut seen, mut newest) = (HashSet::new(), HashSet::new());
        for (number, header) in listed {
            let is_copied = look.copy(file, number, header.generation)?;
            chunks_missed += usize::from(!is_copied);
            seen.insert(header.sequence);
            if is_copied && header.state == State::Writing || header.is_last {
                newest.insert(header.sequence);
            }
        }
        look.missed = if look.facts.overwrites() { seen.difference(&newest).count() } else { chunks_missed };
        look.entries.sort_unstable_by_key(Entry::place);
        look.entries.dedup_by_key(|e| e.place());
        keep_whole_runs(&mut look.entries, look.facts.overwrites());
        Ok(look)
    }

    /// Copies a chunk. Returns `false` if it changes during the copy, or is damaged.
    fn copy(&mut self, file: &File, number: u32, generation: u32) -> io::Result<bool> {
        let part = if self.facts.overwrites() { Part::All } else { Part::NotInOutput };
        let place = u32::try_from(self.copies.len()).unwrap_or(u32::MAX);
        let start = self.bytes.len();
        let look = || {
            let header = Header::read(file, &self.facts, number)?;
            Ok::<_, io::Error>((header.state, header.generation, header.retractions, header))
        };
        let bytes = &mut self.bytes;
        let copied = copy_between_looks(generation, look, |header| {
            let entry = header.entry(&self.facts, place, part);
            bytes.truncate(start); // of an earlier attempt
            if let Ok(Some(entry)) = &entry {
                bytes.resize(start + entry.to as usize, 0);
                let payload = chunk_offset(&self.facts, number) + CHUNK_HEADER_SIZE as u64;
                platform::read_exact_at(file, &mut bytes[start..], payload)?;
            }
            Ok((*header, entry))
        })?;
        match copied {
            Some((header, Ok(Some(entry)))) => {
                self.copies.push(Copied { header, start });
                self.entries.push(entry);
                Ok(true)
            }
            Some((_, Ok(None))) => Ok(true), // it has no bytes to read
            // Another thread has taken it, or it changed while the header was read.
            Some((_, Err(Damaged))) | None => {
                self.bytes.truncate(start);
                Ok(false)
            }
        }
    }

    /// The content of the region's header. The first [`output_len`](Facts::output_len) bytes of the output
    /// and the fragments are the whole trace.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The number of threads whose newest records were overwritten before they were copied.
    #[must_use]
    pub fn missed(&self) -> usize {
        self.missed
    }

    /// Whether the threads may have overwritten the whole ring while its chunks were listed. Then threads may
    /// be missing that are not counted in [`missed`](Self::missed).
    #[must_use]
    pub fn has_gone_round(&self) -> bool {
        self.has_gone_round
    }

    /// The entries of this [tape](crate::Tape), for [`tape_entries`](crate::tape_entries).
    #[must_use]
    pub fn tape(&self, number: usize) -> &[u8] {
        &self.tapes[number]
    }

    /// Calls `visit` for each fragment, in the order of each sequence.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn each<E>(&self, mut visit: impl FnMut(&Fragment<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut buffer = Vec::new();
        let mut last_sequence = None;
        for entry in &self.entries {
            let Copied { header, start } = &self.copies[entry.number as usize];
            let payload = &self.bytes[*start..*start + entry.to as usize];
            let goes_on = last_sequence.replace(entry.sequence) == Some(entry.sequence);
            let context = if goes_on { 0 } else { header.context_len.min(entry.from) };
            buffer.clear();
            buffer.extend_from_slice(&payload[..context as usize]);
            buffer.extend_from_slice(&payload[entry.from as usize..]);
            visit(&Fragment {
                sequence: entry.sequence,
                index: entry.index,
                tid: header.tid,
                records: entry.records,
                bytes: &buffer,
            })?;
        }
        Ok(())
    }
}

/// Lists the chunks that threads have or had, from the youngest: the next one to be overwritten is read last.
fn list(
    next_oldest: u64,
    count: u32,
    mut read: impl FnMut(u32) -> io::Result<Header>,
) -> io::Result<Vec<(u32, Header)>> {
    let (mut listed, mut not_begun) = (Vec::new(), Vec::new());
    for number in from_youngest(next_oldest, count) {
        let header = read(number)?;
        if header.state == State::Free { not_begun.push(number) } else { listed.push((number, header)) }
    }
    // A thread may have taken one of them before the list, and begun it since.
    for number in not_begun {
        let header = read(number)?;
        if header.state != State::Free {
            listed.push((number, header));
        }
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backing, BackingChoice, ChunkInfo, Region, RegionConfig};

    // thread A  |has the chunk n-1 before the list |moves to the oldest chunk
    // thread B                                     |   goes on until that of A is overwritten
    // reader      list .......... k chunks ........           ......................
    #[test]
    fn a_thread_that_moves_during_the_list_is_listed() {
        let config = RegionConfig { overwrite: true, backing: BackingChoice::File, ..RegionConfig::small() };
        for chunks_before in 16..48 {
            for moment in 0..16 {
                let region = Region::create(&config).expect("a region");
                region.activate(None);
                let info = || ChunkInfo { sequence: region.new_sequence(), ..ChunkInfo::default() };
                let (of_a, of_b) = (info(), info());
                let claim = |info| region.claim(info, b"").expect("a chunk");
                (0..chunks_before).for_each(|_| drop(claim(of_b)));
                let mut chunk = Some(claim(of_a));
                let last_of_b = claim(of_b);
                let Backing::File(path) = region.backing() else { panic!("a file") };
                let file = File::open(path).expect("the region");
                let facts = facts_of(&file, path.as_ref()).expect("its header");
                let mut read = 0;
                let listed = list(next_oldest(&file).expect("read"), facts.chunk_count, |number| {
                    if read == moment {
                        let old = chunk.as_ref().expect("a chunk").number();
                        chunk = Some(claim(of_a));
                        while claim(of_b).number() != old {}
                    }
                    read += 1;
                    Header::read(&file, &facts, number)
                });
                let is_listed = listed.expect("read").iter().any(|(_, h)| h.sequence == of_a.sequence);
                assert!(is_listed, "{chunks_before} chunks before it, moved before the read of {moment}");
                drop(last_of_b);
            }
        }
    }
}
