//! The committed bytes of a dead process's chunks.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use super::header::{Facts, SessionState};
use super::{DeadRegion, RecoverError};
use crate::abi::{CHUNK_HEADER_SIZE, ChunkHeader, Commit, FLAG_LAST, State, generation};
use crate::ledger::in_output;

/// What is wanted of the chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// What the output does not have: to be appended to it.
    NotInOutput,
    /// All that is left, for an output that is gone. What was in chunks that were freed is not among it.
    All,
}

/// A piece of one sequence.
#[derive(Debug)]
pub struct Fragment<'f> {
    /// Whose it is.
    pub sequence: u32,
    /// Place of its chunk in the sequence.
    pub index: u32,
    /// The thread that wrote it.
    pub tid: u32,
    /// Event records in it.
    pub records: u32,
    /// The bytes, led by their context if the fragment before them was another sequence's.
    pub bytes: &'f [u8],
}

/// A chunk that holds something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) sequence: u32,
    pub(super) index: u32,
    /// The chunk, or where else its bytes are.
    pub(super) number: u32,
    /// Read from here to there.
    pub(super) from: u32,
    pub(super) to: u32,
    /// Bytes from `from` on that only a reader without the chunk before needs.
    recovery_len: u32,
    pub(super) records: u32,
}

/// The fragments, one after the other. Made by [`DeadRegion::fragments`](super::DeadRegion::fragments).
#[derive(Debug)]
pub struct Fragments<'r> {
    region: &'r DeadRegion,
    entries: std::vec::IntoIter<Entry>,
    damaged: u32,
    headless: u32,
    last_sequence: Option<u32>,
    buffer: Vec<u8>,
}

impl<'r> Fragments<'r> {
    pub(super) fn new(region: &'r DeadRegion, part: Part) -> io::Result<Self> {
        let (file, facts) = (&region.file, &region.facts);
        let mut entries = Vec::new();
        let mut damaged = 0;
        // Before it begins and after it has ended a session has nothing to give.
        let count = if facts.state == SessionState::Active { facts.chunk_count } else { 0 };
        for number in 0..count {
            match Header::read(file, facts, number)?.entry(facts, number, part) {
                Ok(Some(entry)) => entries.push(entry),
                Ok(None) => {}
                Err(Damaged) => damaged += 1,
            }
        }
        entries.sort_unstable_by_key(|e| (e.sequence, e.index, e.number));
        // Of two chunks that claim one place, one lies.
        let before = entries.len();
        entries.dedup_by_key(|e| (e.sequence, e.index));
        damaged += u32::try_from(before - entries.len()).unwrap_or(u32::MAX);
        keep_whole_runs(&mut entries, facts.overwrites());
        let begins_late =
            |(i, e): &(usize, &Entry)| e.index > 0 && (*i == 0 || entries[i - 1].sequence != e.sequence);
        let headless = entries.iter().enumerate().filter(begins_late).count();
        Ok(Self {
            region,
            headless: u32::try_from(headless).unwrap_or(u32::MAX),
            entries: entries.into_iter(),
            damaged,
            last_sequence: None,
            buffer: Vec::new(),
        })
    }

    /// Chunks whose numbers made no sense, so that they were left out.
    #[must_use]
    pub fn damaged(&self) -> u32 {
        self.damaged
    }

    /// Sequences whose first chunk is not here: where the output is gone too, their records lack what came before.
    #[must_use]
    pub fn headless(&self) -> u32 {
        self.headless
    }

    /// The next one; None after the last.
    ///
    /// # Errors
    /// When the file cannot be read.
    #[allow(clippy::should_implement_trait)] // it lends its buffer
    pub fn next(&mut self) -> Result<Option<Fragment<'_>>, RecoverError> {
        let DeadRegion { file, path, facts } = self.region;
        let failed = |source| RecoverError::File { path: path.clone(), source };
        let Some(entry) = self.entries.next() else { return Ok(None) };
        let header = Header::read(file, facts, entry.number).map_err(failed)?;
        let context =
            if self.last_sequence == Some(entry.sequence) { 0 } else { header.context_len.min(entry.from) };
        self.last_sequence = Some(entry.sequence);
        let len = context as usize + (entry.to - entry.from) as usize;
        self.buffer.clear();
        self.buffer.resize(len, 0);
        let payload = chunk_offset(facts, entry.number) + CHUNK_HEADER_SIZE as u64;
        let (head, body) = self.buffer.split_at_mut(context as usize);
        file.read_exact_at(head, payload).map_err(failed)?;
        file.read_exact_at(body, payload + u64::from(entry.from)).map_err(failed)?;
        Ok(Some(Fragment {
            sequence: entry.sequence,
            index: entry.index,
            tid: header.tid,
            records: entry.records,
            bytes: &self.buffer,
        }))
    }
}

/// Of each sequence in a ring that overwrites, the chunks up to its youngest without one missing between them, as
/// `window.rs` shows it; what stands before a hole goes. The first one says what it needs of those that are gone. Of one that does
/// not, all.
pub(super) fn keep_whole_runs(entries: &mut Vec<Entry>, overwrites: bool) {
    if !overwrites {
        return;
    }
    let mut next: Option<(u32, u32)> = None;
    let mut broken = None;
    entries.reverse();
    entries.retain(|e| {
        let follows =
            next.is_none_or(|(sequence, index)| sequence != e.sequence || index == e.index.wrapping_add(1));
        if !follows {
            broken = Some(e.sequence);
        }
        next = Some((e.sequence, e.index));
        broken != Some(e.sequence)
    });
    entries.reverse();
    let mut before = None;
    for e in entries.iter_mut() {
        if before.replace(e.sequence) == Some(e.sequence) {
            e.from += e.recovery_len;
        }
    }
}

/// In bounds of the file: `header::read` compared the last chunk's end with its length.
pub(super) fn chunk_offset(facts: &Facts, number: u32) -> u64 {
    facts.chunks_offset + u64::from(number) * u64::from(facts.chunk_size)
}

/// A chunk's numbers make no sense.
pub(super) struct Damaged;

/// A chunk's header, as it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) state: State,
    /// Grows with each claim of the chunk.
    pub(super) generation: u32,
    pub(super) claim: u32,
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
        file.read_exact_at(&mut raw, chunk_offset(facts, number))?;
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| raw[at + i]));
        let commit_at = |at: usize| Commit(u64::from_le_bytes(std::array::from_fn(|i| raw[at + i])));
        Ok(Self {
            state: State::of(u32_at(offset_of!(ChunkHeader, state))),
            generation: generation(u32_at(offset_of!(ChunkHeader, state))),
            claim: u32_at(offset_of!(ChunkHeader, claim)),
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

    /// What is to be read of the chunk, if anything.
    pub(super) fn entry(&self, facts: &Facts, number: u32, part: Part) -> Result<Option<Entry>, Damaged> {
        if self.state == State::Free {
            return Ok(None); // nobody's, or not yet begun
        }
        let in_output = in_output(self.batch, self.taking, self.drained, facts.batches_done);
        let payload = facts.chunk_size - CHUNK_HEADER_SIZE as u32; // a chunk is 4 KiB at least
        let orderly = self.context_len <= in_output.bytes()
            && in_output.bytes() <= self.commit.bytes()
            && self.commit.bytes() <= payload
            && in_output.records() <= self.commit.records()
            && self.commit.records() <= payload; // a record has a byte at least
        if !orderly || facts.overwrites() && self.recovery_len > self.commit.bytes() - in_output.bytes() {
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
