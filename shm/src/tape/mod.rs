//! A tape: a ring of bytes behind the chunks. The session's own thread writes on it what a recovery needs
//! and no chunk has, such as the samples of a flight recorder.
//!
//! ```text
//!  0                                                   len
//!  |..entry|entry|entry|          |entry|entry|entry|en|      entry: length (u32), bytes
//!                      ^end       ^begin                      positions only grow; the place is position % len
//! ```
//!
//! One [`Tape`] writes. It raises `begin` over the entries that it will overwrite, then writes the bytes,
//! then raises `end`. So after a kill at any moment, the entries from `begin` to `end` are whole. A reader
//! from outside reads `begin` again after its copy: what is older may be overwritten.
//!
//! The pages are allocated as the tape grows, in its first round. If the system has no more, the tape wraps
//! where it is: its length in the header is then that.

#![allow(unsafe_code)] // copies bytes of the mapping

use std::sync::Arc;

use crate::region::Region;
use crate::step::step;
use crate::sync::{Ordering, fence};
use crate::uncancelled::Uncancelled;

/// Bytes of an entry's length.
const LENGTH: usize = size_of::<u32>();

/// Bytes that are allocated at a time.
const STEP: u64 = 256 << 10;

/// The one writer of a region's tape.
///
/// ```
/// use hairline_shm::{Region, RegionConfig, Tape, tape_entries};
///
/// let region = Region::create(&RegionConfig { tapes: [4096, 0, 0], ..RegionConfig::small() })?;
/// let mut tape = Tape::of(&region, 0).unwrap();
/// assert!(tape.append(b"one") && tape.append(b"two"));
/// let second = tape.end() - 7; // its length has 4 bytes
/// assert_eq!(tape_entries(&tape.read(0)).collect::<Vec<_>>(), [b"one", b"two"]);
/// assert_eq!(tape_entries(&tape.read(second)).collect::<Vec<_>>(), [b"two"]);
/// assert!(!tape.append(&[0; 2000]), "larger than a quarter of the tape");
/// # Ok::<(), hairline_shm::RegionError>(())
/// ```
#[derive(Debug)]
pub struct Tape {
    region: Arc<Region>,
    number: usize,
    /// Here, since other processes can write the header's.
    begin: u64,
    end: u64,
    len: u64,
    allocated: u64,
}

impl Tape {
    /// Returns this tape of a region, below [`TAPES`](crate::abi::TAPES), at the first call, and `None`
    /// later, or if the region has none.
    #[must_use]
    pub fn of(region: &Arc<Region>, number: usize) -> Option<Self> {
        region.take_tape(number).then(|| Self::new(Arc::clone(region), number))
    }

    fn new(region: Arc<Region>, number: usize) -> Self {
        let len = region.tape_len(number) as u64;
        let allocated = if region.is_whole() { len } else { 0 };
        Self { region, number, begin: 0, end: 0, len, allocated }
    }

    /// Appends an entry, over the oldest ones if there is no room. Returns `false` if it is larger than a
    /// quarter of the tape.
    pub fn append(&mut self, entry: &[u8]) -> bool {
        let Ok(length) = u32::try_from(entry.len()) else { return false };
        let needed = LENGTH as u64 + u64::from(length);
        self.allocate(needed);
        if needed > self.len / 4 {
            return false;
        }
        let begin = self.begin();
        let mut to = begin;
        while self.end + needed - to > self.len {
            to = self.after(to);
        }
        self.forget(to);
        self.write(self.end, &length.to_le_bytes());
        self.write(self.end + LENGTH as u64, entry);
        step();
        self.end += needed;
        // Release: a reader that sees the end sees the bytes before it.
        self.region.header().tape_end[self.number].store(self.end, Ordering::Release);
        step();
        true
    }

    /// Returns a copy of the entries from this position on, or from the oldest one. The position is one that
    /// [`end`](Self::end) has returned.
    #[must_use]
    pub fn read(&self, from: u64) -> Vec<u8> {
        let from = from.clamp(self.begin(), self.end);
        let mut bytes = vec![0; usize::try_from(self.end - from).unwrap_or(0)];
        self.copy(from, &mut bytes);
        bytes
    }

    /// Returns the position of the next entry.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the bytes of the tape that have entries, and those that may have.
    #[must_use]
    pub fn filled(&self) -> (u64, u64) {
        (self.end - self.begin(), self.len)
    }

    /// The position of the oldest entry. [`Region::forget_tape`] may have raised it.
    fn begin(&self) -> u64 {
        self.region.header().tape_begin[self.number].load(Ordering::Relaxed).clamp(self.begin, self.end)
    }

    /// The position after the entry at this one. Another process may have changed the length.
    fn after(&self, position: u64) -> u64 {
        let mut length = [0; LENGTH];
        self.copy(position, &mut length);
        (position + LENGTH as u64 + u64::from(u32::from_le_bytes(length))).min(self.end)
    }

    fn forget(&mut self, to: u64) {
        if to == self.begin {
            return;
        }
        self.begin = to;
        self.region.forget_tape(self.number, to);
        step();
        // Release: no byte is overwritten before the begin is above it.
        fence(Ordering::Release);
    }

    fn allocate(&mut self, needed: u64) {
        let wanted = (self.end + needed).min(self.len);
        if wanted <= self.allocated {
            return;
        }
        let to = wanted.next_multiple_of(STEP).min(self.len);
        let _uncancelled = Uncancelled::new();
        if self.region.allocate_tape(self.number, self.allocated..to) {
            self.allocated = to;
        } else {
            // All positions so far are below, so each keeps its place.
            self.len = self.allocated;
            self.region.header().tape_len[self.number].store(self.len, Ordering::Release);
        }
    }

    /// The pieces of the tape that have `length` bytes from this position on: places and lengths.
    fn pieces(&self, position: u64, length: usize) -> [(usize, usize); 2] {
        let whole = usize::try_from(self.len).unwrap_or(usize::MAX);
        let place = usize::try_from(position % self.len.max(1)).unwrap_or(0);
        let first = length.min(whole - place);
        [(place, first), (0, length - first)]
    }

    fn write(&self, position: u64, bytes: &[u8]) {
        let mut rest = bytes;
        for (place, length) in self.pieces(position, bytes.len()) {
            let (piece, after) = rest.split_at(length);
            rest = after;
            let to = self.region.tape_at(self.number, place..place + length);
            // SAFETY: `tape_at` has checked the range. Only this value writes there: a region gives its tape
            // once, and `&mut` of the callers excludes other threads. Nothing has a reference to these bytes.
            unsafe { to.as_ptr().copy_from_nonoverlapping(piece.as_ptr(), length) };
        }
    }

    fn copy(&self, position: u64, bytes: &mut [u8]) {
        let mut rest = bytes;
        for (place, length) in self.pieces(position, rest.len()) {
            let (piece, after) = rest.split_at_mut(length);
            rest = after;
            let from = self.region.tape_at(self.number, place..place + length);
            // SAFETY: `tape_at` has checked the range. No thread writes there meanwhile, as in `write`.
            // Another process may, and then these are any bytes.
            unsafe { piece.as_mut_ptr().copy_from_nonoverlapping(from.as_ptr(), length) };
        }
    }
}

/// Returns the entries of a copy of a tape, up to the first one that is cut. Another process may have written
/// them.
pub fn tape_entries(tape: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = tape;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let (entry, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        Some(entry)
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
