//! The header of a chunk in a region's file, and the committed bytes that it describes.

use std::fs::File;
use std::io;
use std::mem::offset_of;

use crate::abi::{CHUNK_HEADER_SIZE, CHUNK_LOST_SIZE, ChunkHeader, Commit, FLAG_LAST, State, generation};
use crate::ledger::in_output;
use crate::platform;
use crate::recover::header::{Facts, SessionState};
use crate::runs::{self, Place};

/// Which bytes of the chunks to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The bytes that the output does not have. They belong at its end.
    NotInOutput,
    /// All bytes that are left, for an output that is gone. The bytes of freed chunks are lost.
    All,
}

/// The bytes to be read of one chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) sequence: u32,
    pub(super) index: u32,
    /// The number of the chunk, or of its copy.
    pub(super) number: u32,
    /// The range to read, in bytes of the payload.
    pub(super) from: u32,
    pub(super) to: u32,
    /// Bytes from `from` on that are needed only if the chunk before is missing.
    recovery_len: u32,
    pub(super) records: u32,
}

impl Entry {
    /// Orders the entries by sequence, then by index.
    pub(super) fn place(&self) -> Place {
        (self.sequence, self.index)
    }
}

/// Keeps the chunks of each sequence in a ring that overwrites from the last gap on, as `window.rs` does. The
/// first chunk that is kept starts with the bytes that replace the chunks before it; the others are read
/// without those.
///
/// Keeps all chunks of a ring that does not overwrite.
pub(super) fn keep_whole_runs(entries: &mut Vec<Entry>, overwrites: bool) {
    if !overwrites {
        return;
    }
    runs::keep_whole_runs(entries, Entry::place);
    let mut before = None;
    for entry in entries.iter_mut() {
        if before.replace(entry.sequence) == Some(entry.sequence) {
            entry.from += entry.recovery_len;
        }
    }
}

/// The offset of a chunk in the file. In bounds: `header::read` compared the end of the last chunk with the
/// file.
pub(super) fn chunk_offset(facts: &Facts, number: u32) -> u64 {
    facts.chunks_offset + u64::from(number) * u64::from(facts.chunk_size)
}

/// Reads how many events the owners of all chunks have lost to a full ring. A closed region has them in its
/// header, and the ring of one that overwrites is never full.
pub(super) fn lost_by_owners(file: &File, facts: &Facts) -> io::Result<u64> {
    let is_counted = facts.state == SessionState::Active && !facts.overwrites();
    (0..if is_counted { facts.chunk_count } else { 0 }).try_fold(0, |sum: u64, number| {
        let mut lost = [0; CHUNK_LOST_SIZE];
        let end = chunk_offset(facts, number) + u64::from(facts.chunk_size); // 4 KiB at least
        platform::read_exact_at(file, &mut lost, end - CHUNK_LOST_SIZE as u64)?;
        Ok(sum.saturating_add(u64::from_le_bytes(lost)))
    })
}

/// The numbers in a chunk's header contradict each other.
pub(super) struct Damaged;

/// The fields of a chunk's header at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) state: State,
    /// Grows with each claim of the chunk.
    pub(super) generation: u32,
    pub(super) claim: u32,
    pub(super) retractions: u32,
    pub(super) is_last: bool,
    pub(super) sequence: u32,
    index: u32,
    pub(super) tid: u32,
    pub(super) context_len: u32,
    recovery_len: u32,
    batch: u32,
    commit: Commit,
    drained: Commit,
    taking: Commit,
}

impl Header {
    pub(super) fn read(file: &File, facts: &Facts, number: u32) -> io::Result<Self> {
        let mut raw = [0; CHUNK_HEADER_SIZE];
        platform::read_exact_at(file, &mut raw, chunk_offset(facts, number))?;
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| raw[at + i]));
        let commit_at = |at: usize| Commit(u64::from_le_bytes(std::array::from_fn(|i| raw[at + i])));
        Ok(Self {
            state: State::of(u32_at(offset_of!(ChunkHeader, state))),
            generation: generation(u32_at(offset_of!(ChunkHeader, state))),
            claim: u32_at(offset_of!(ChunkHeader, claim)),
            retractions: u32_at(offset_of!(ChunkHeader, retractions)),
            is_last: u32_at(offset_of!(ChunkHeader, flags)) & FLAG_LAST != 0,
            sequence: u32_at(offset_of!(ChunkHeader, sequence)),
            index: u32_at(offset_of!(ChunkHeader, index)),
            tid: u32_at(offset_of!(ChunkHeader, tid)),
            context_len: u32_at(offset_of!(ChunkHeader, context_len)),
            recovery_len: u32_at(offset_of!(ChunkHeader, recovery_len)),
            batch: u32_at(offset_of!(ChunkHeader, batch)),
            commit: commit_at(offset_of!(ChunkHeader, commit)),
            drained: commit_at(offset_of!(ChunkHeader, drained)),
            taking: commit_at(offset_of!(ChunkHeader, taking)),
        })
    }

    /// The bytes to be read of the chunk; `None` if there are none.
    pub(super) fn entry(&self, facts: &Facts, number: u32, part: Part) -> Result<Option<Entry>, Damaged> {
        if self.state == State::Free {
            return Ok(None); // or claimed and not yet begun
        }
        let in_output = in_output(self.batch, self.taking, self.drained, facts.batches_done);
        // A chunk has at least 4 KiB.
        let payload = facts.chunk_size - (CHUNK_HEADER_SIZE + CHUNK_LOST_SIZE) as u32;
        let is_sound = self.context_len <= in_output.bytes()
            && in_output.bytes() <= self.commit.bytes()
            && self.commit.bytes() <= payload
            && in_output.records() <= self.commit.records()
            && self.commit.records() <= payload; // a record has at least one byte
        if !is_sound || facts.overwrites() && self.recovery_len > self.commit.bytes() - in_output.bytes() {
            return Err(Damaged);
        }
        let from = match part {
            Part::NotInOutput => in_output,
            Part::All => Commit::new(self.context_len, 0),
        };
        let entry = Entry {
            sequence: self.sequence,
            index: self.index,
            number,
            from: from.bytes(),
            to: self.commit.bytes(),
            recovery_len: if facts.overwrites() { self.recovery_len } else { 0 },
            records: self.commit.records() - from.records(),
        };
        Ok((entry.from < entry.to).then_some(entry))
    }
}
