//! The committed bytes of a dead process's chunks.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::abi::CHUNK_HEADER_SIZE;
use crate::platform;
use crate::recover::chunk::{Damaged, Entry, Header, Part, chunk_offset, keep_whole_runs};
use crate::recover::error::RecoverError;
use crate::recover::header::{Facts, SessionState};

/// A piece of one sequence: the bytes of one chunk.
#[derive(Debug)]
pub struct Fragment<'f> {
    /// The sequence.
    pub sequence: u32,
    /// The index of the chunk in the sequence.
    pub index: u32,
    /// The thread that wrote the bytes.
    pub tid: u32,
    /// The event records in the bytes.
    pub records: u32,
    /// The bytes. The chunk's context comes first if the fragment before is of another sequence.
    pub bytes: &'f [u8],
}

/// The fragments of a region, one after the other. Made by
/// [`DeadRegion::fragments`](crate::recover::DeadRegion::fragments).
#[derive(Debug)]
pub struct Fragments<'r> {
    file: &'r File,
    path: &'r Path,
    facts: &'r Facts,
    entries: std::vec::IntoIter<Entry>,
    damaged: u32,
    last_sequence: Option<u32>,
    buffer: Vec<u8>,
}

impl<'r> Fragments<'r> {
    pub(super) fn new(file: &'r File, path: &'r Path, facts: &'r Facts, part: Part) -> io::Result<Self> {
        let mut entries = Vec::new();
        let mut damaged = 0;
        // A session has bytes to recover only between its start and its end.
        let count = if facts.state == SessionState::Active { facts.chunk_count } else { 0 };
        for number in 0..count {
            match Header::read(file, facts, number)?.entry(facts, number, part) {
                Ok(Some(entry)) => entries.push(entry),
                Ok(None) => {}
                Err(Damaged) => damaged += 1,
            }
        }
        entries.sort_unstable_by_key(|e| (e.sequence, e.index, e.number));
        // If two chunks have the same place, one of their headers is wrong.
        let before = entries.len();
        entries.dedup_by_key(|e| e.place());
        damaged += u32::try_from(before - entries.len()).unwrap_or(u32::MAX);
        keep_whole_runs(&mut entries, facts.overwrites());
        Ok(Self {
            file,
            path,
            facts,
            entries: entries.into_iter(),
            damaged,
            last_sequence: None,
            buffer: Vec::new(),
        })
    }

    /// The number of chunks that were left out because their headers contradict themselves.
    #[must_use]
    pub fn damaged(&self) -> u32 {
        self.damaged
    }

    /// Returns the next fragment, or `None` after the last one.
    ///
    /// # Errors
    /// If the file cannot be read.
    #[allow(clippy::should_implement_trait)] // it lends its buffer
    pub fn next(&mut self) -> Result<Option<Fragment<'_>>, RecoverError> {
        let (file, facts) = (self.file, self.facts);
        let failed = |source| RecoverError::File { path: self.path.to_owned(), source };
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
        platform::read_exact_at(file, head, payload).map_err(failed)?;
        platform::read_exact_at(file, body, payload + u64::from(entry.from)).map_err(failed)?;
        Ok(Some(Fragment {
            sequence: entry.sequence,
            index: entry.index,
            tid: header.tid,
            records: entry.records,
            bytes: &self.buffer,
        }))
    }
}
