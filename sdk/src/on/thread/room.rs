//! A thread's chunks, and the room in them.
//!
//! ```text
//! chunk being written                                     spares (deep recursion only)
//! [context | records ....... | free ...... | ends | 32 ]  [ends ......... ] [ends ......... ]
//!                            ^ commit      ^ limit ^ capacity
//! ```
//!
//! `limit` = capacity less one end for each open scope whose end is kept in this chunk. When more scopes are
//! open than one chunk has room for ends, the rest is kept in spare chunks, claimed beforehand, that the
//! sequence goes on into in their order.
//!
//! # Where the chunk before may be gone
//!
//! In a region that overwrites, a chunk says what it needs of the one before it, so a thread does not go on in the next by
//! itself: [`Room`] says [`NoRoom::ChunkFull`], and the writer puts the next chunk's beginning together. For that the begins of
//! all open slices have to be found again. Each begin leaves a note of where it stands in the room of its own end, where no
//! record comes before that slice has ended:
//!
//! ```text
//! [records ...... | free .... |<-limit   [note of the innermost] [..] [note of the outermost]]
//!                              32 bytes that a store may reach into; each note at the start of its slot of `end_size`
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use hairline_shm::{ChunkInfo, Commit, Region, WriteChunk};

use crate::on::encode::again::Begin;
use crate::on::encode::no_room::NoRoom;
use crate::on::session::room::{OVERHANG, empty_room};

/// Spares that need no allocation.
const SPARES: usize = 4;

/// Bytes of a note: the offset of a begin in its chunk, and what else is known of it.
const NOTE: usize = 4 + 8;

/// In place of an offset: the begin is not in this chunk.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Room {
    region: Arc<Region>,
    chunk: WriteChunk,
    spares: VecDeque<WriteChunk>,
    /// Open scopes whose end is kept in `spares`.
    ends_in_spares: i32,
    /// The chunk was taken back while the thread was idle: it is not to be touched, and no room is kept for so many ends.
    ends_owed: Option<i32>,
    limit: i32,
    end_size: i32,
    next: ChunkInfo,
    context: Vec<u8>,
}

impl Room {
    /// The first chunk of `sequence`; None when there is none.
    pub(crate) fn new(region: Arc<Region>, info: ChunkInfo, context: Vec<u8>, end_size: i32) -> Option<Self> {
        let chunk = region.claim(info, &context)?;
        let next = ChunkInfo { index: info.index + 1, ..info };
        let mut room = Self {
            region,
            chunk,
            spares: VecDeque::with_capacity(SPARES),
            ends_in_spares: 0,
            ends_owed: None,
            limit: 0,
            end_size,
            next,
            context,
        };
        room.limit = room.capacity();
        Some(room)
    }

    pub(crate) fn chunk(&self) -> &WriteChunk {
        &self.chunk
    }

    /// Bytes neither written nor kept for ends.
    pub(crate) fn left(&self) -> i32 {
        self.limit - self.committed()
    }

    /// The hot path has come so far in the chunk, and has left so much of it. Returns whether that can be so.
    pub(crate) fn set_used(&mut self, commit: Commit, left: i32) -> bool {
        let is_valid = self.chunk.set_committed(commit);
        self.limit = self.committed() + left;
        is_valid
    }

    /// The chunk was taken back.
    pub(crate) fn set_recalled(&mut self) {
        self.ends_owed = Some(self.ends_here());
        self.chunk.set_recalled();
    }

    pub(crate) fn is_recalled(&self) -> bool {
        self.ends_owed.is_some()
    }

    /// Goes on in another chunk after the one that was taken back.
    pub(crate) fn resume(&mut self) -> Result<(), NoRoom> {
        let Some(open) = self.ends_owed else { return Ok(()) };
        self.chunk = self.region.claim(self.next, &self.context).ok_or(NoRoom::BufferFull)?;
        self.next.index += 1;
        self.ends_owed = None;
        self.limit = self.capacity() - open * self.end_size;
        Ok(())
    }

    /// Whether this thread has no other chunk than the one that it writes.
    pub(crate) fn has_no_spares(&self) -> bool {
        self.spares.is_empty()
    }

    /// Chunks that are kept for the ends of open scopes, and that nothing else is written into.
    pub(crate) fn chunks_for_ends(&self) -> u32 {
        if self.ends_in_spares > 0 { self.spares.len() as u32 } else { 0 }
    }

    /// Whether the ends of all open scopes are kept in the chunk that is written.
    pub(crate) fn keeps_all_ends(&self) -> bool {
        self.ends_in_spares == 0
    }

    /// Offset up to which records and ends may reach.
    pub(crate) fn capacity(&self) -> i32 {
        signed(empty_room(&self.region))
    }

    /// The longest record that an empty chunk takes, its end included.
    pub(crate) fn largest(&self) -> i32 {
        self.capacity() - self.context.len() as i32
    }

    /// The longest record that the next chunk takes for sure, its end included.
    pub(crate) fn largest_at_least(&self) -> i32 {
        if self.region.overwrites() { self.largest() / 2 } else { self.largest() }
    }

    fn committed(&self) -> i32 {
        signed(self.chunk.committed().bytes())
    }

    fn ends_per_spare(&self) -> i32 {
        self.largest() / self.end_size
    }

    fn ends_here(&self) -> i32 {
        (self.capacity() - self.limit) / self.end_size
    }

    /// Writes whole records, `events` of which are events. `begins`: the first of them opens a scope, of which that is
    /// [known](Begin::known).
    pub(crate) fn append(&mut self, bytes: &[u8], events: u32, begins: Option<u64>) -> Result<(), NoRoom> {
        let end = if begins.is_some() { self.end_size } else { 0 };
        let need =
            i32::try_from(bytes.len()).ok().and_then(|n| n.checked_add(end)).ok_or(NoRoom::TooLarge)?;
        if self.committed() + need > self.limit {
            if self.region.overwrites() {
                return Err(if need > self.largest() { NoRoom::TooLarge } else { NoRoom::ChunkFull });
            }
            self.next_chunk(need)?;
        }
        let at = self.chunk.committed().bytes();
        self.chunk.append(bytes, events);
        self.limit -= end;
        if let Some(known) = begins {
            self.note(self.limit, Begin { at: Some(at), known });
        }
        Ok(())
    }

    /// Whether records of so many bytes, of which none opens a scope, fit into the chunk.
    pub(crate) fn has_room_for(&self, len: usize) -> bool {
        i32::try_from(len).is_ok_and(|len| len <= self.left())
    }

    /// Notes where the begin stands whose end is kept from `limit` on.
    fn note(&mut self, limit: i32, begin: Begin) {
        let mut note = [0; NOTE];
        note[..4].copy_from_slice(&begin.at.unwrap_or(NOWHERE).to_le_bytes());
        note[4..].copy_from_slice(&begin.known.to_le_bytes());
        self.chunk.note(note_at(limit), &note);
    }

    /// The open slices, the outermost first, in a region that overwrites: none of their ends is kept elsewhere.
    pub(crate) fn begins(&self) -> impl Iterator<Item = Begin> + '_ {
        (1..=self.ends_here()).map(|n| {
            let note = self.chunk.noted(note_at(self.capacity() - n * self.end_size));
            let [a, b, c, d, known @ ..]: [u8; NOTE] = note.unwrap_or([0xff; NOTE]);
            let at = u32::from_le_bytes([a, b, c, d]);
            Begin { at: (at != NOWHERE).then_some(at), known: u64::from_le_bytes(known) }
        })
    }

    /// Copies what was written into the chunk.
    pub(crate) fn copy_written(&self, out: &mut Vec<u8>) {
        self.chunk.copy_committed(out);
    }

    /// Bytes that the beginning of the next chunk may take beside the ends of all open scopes, so that half of it is left.
    /// None: too many are open.
    pub(crate) fn room_to_begin(&self) -> Option<usize> {
        usize::try_from(self.largest() / 2 - self.open() * self.end_size).ok()
    }

    /// Goes on in a chunk that begins with `recovery`, in which the begins of all open slices stand at `begins`, and `start`.
    pub(crate) fn turn(&mut self, recovery: &[u8], begins: &[Begin], start: &[u8]) -> Result<(), NoRoom> {
        let open = self.open();
        let mut chunk = self.region.claim(self.next, &self.context).ok_or(NoRoom::BufferFull)?;
        let is_written = chunk.append_recovery(recovery) && chunk.append(start, 0);
        debug_assert!(is_written, "within `room_to_begin`");
        self.next.index += 1;
        self.chunk = chunk; // the old one is complete by its drop
        self.ends_owed = None;
        self.limit = self.capacity() - open * self.end_size;
        let context_len = self.context.len() as u32;
        for (n, begin) in (1..=open).zip(begins) {
            let at = begin.at.map(|at| at + context_len);
            self.note(self.capacity() - n * self.end_size, Begin { at, ..*begin });
        }
        Ok(())
    }

    /// Writes the end of a recorded scope, for which there always is room.
    pub(crate) fn append_end(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.end_size as usize);
        // Kept in a spare. This chunk may have room all the same.
        if self.ends_here() == 0 && self.committed() + bytes.len() as i32 > self.capacity() {
            self.move_to_spare();
        }
        self.release_end();
        let written = self.chunk.append(bytes, 1);
        debug_assert!(written, "the begin kept this room");
    }

    /// The end that a begin kept room for was written elsewhere.
    pub(crate) fn release_end(&mut self) {
        if let Some(owed) = &mut self.ends_owed {
            *owed -= 1;
        } else if self.ends_here() > 0 {
            self.limit += self.end_size;
        } else {
            self.ends_in_spares -= 1;
        }
    }

    /// Goes on in a chunk with room for `need` bytes and for the ends of all open scopes. Where that cannot be
    /// had, stays.
    fn next_chunk(&mut self, need: i32) -> Result<(), NoRoom> {
        if need > self.largest() {
            return Err(NoRoom::TooLarge);
        }
        // Ends may take half of the chunk; were it all of it, deep recursion would take a new chunk for each
        // begin. If there are no chunks for that, all of it.
        self.claim_for(need, self.largest() / 2).or_else(|_| self.claim_for(need, self.largest()))?;
        self.rotate(self.open());
        Ok(())
    }

    /// Has one chunk to go on in, and spares for the ends that do not fit with `need` into `share` bytes of it.
    fn claim_for(&mut self, need: i32, share: i32) -> Result<(), NoRoom> {
        let elsewhere = (self.open() - (share - need).max(0) / self.end_size).max(0);
        let wanted = 1 + elsewhere.cast_unsigned().div_ceil(self.ends_per_spare().cast_unsigned());
        while self.spares.len() < wanted as usize {
            self.claim_spare()?;
        }
        Ok(())
    }

    /// Open scopes.
    pub(crate) fn open(&self) -> i32 {
        self.ends_owed.unwrap_or_else(|| self.ends_here() + self.ends_in_spares)
    }

    fn claim_spare(&mut self) -> Result<(), NoRoom> {
        let chunk = self.region.claim(self.next, &self.context).ok_or(NoRoom::BufferFull)?;
        self.next.index += 1;
        self.spares.push_back(chunk);
        Ok(())
    }

    /// Goes on in the first spare, to write an end that is kept there.
    fn move_to_spare(&mut self) {
        self.rotate(self.ends_in_spares);
    }

    /// Gives the chunk back and goes on in the first spare, with `open` ends to keep.
    fn rotate(&mut self, open: i32) {
        let Some(chunk) = self.spares.pop_front() else { return };
        self.chunk = chunk; // the old one is complete by its drop
        self.ends_in_spares = open.min(self.spares.len() as i32 * self.ends_per_spare());
        self.limit = self.capacity() - (open - self.ends_in_spares) * self.end_size;
    }

    /// Ends the sequence. Where it has no chunk in which that could be said, gives what would have been its next one.
    pub(crate) fn finish(self) -> Option<ChunkInfo> {
        if self.is_recalled() {
            return Some(self.next); // another one might be the last free one, or the oldest that somebody wants to keep
        }
        let Self { chunk, mut spares, .. } = self;
        // The sequence's last chunk says so; an unused spare is a chunk of no bytes.
        match spares.pop_back() {
            Some(last) => {
                drop(chunk);
                drop(spares);
                last.finish_sequence();
            }
            None => chunk.finish_sequence(),
        }
        None
    }
}

/// Where the note of the slice stands whose end is kept from `limit` on: beyond the reach of stores below.
fn note_at(limit: i32) -> u32 {
    limit.cast_unsigned() + OVERHANG as u32
}

/// A length within a chunk, which is at most 2^24.
fn signed(n: u32) -> i32 {
    n as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use hairline_shm::{Drain, Output, RegionConfig};
    use std::io::{self, IoSlice};

    const END: i32 = 16;

    struct Bytes(Vec<u8>);
    impl Output for Bytes {
        fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
            parts.iter().for_each(|p| self.0.extend_from_slice(p));
            Ok(())
        }
    }

    fn room(chunks: u64) -> (Arc<Region>, Room) {
        let config = RegionConfig { buffer_size: chunks * 4096, ..RegionConfig::small() };
        let region = Region::create(&config).unwrap();
        let info = ChunkInfo { sequence: 1, ..Default::default() };
        let room = Room::new(region.clone(), info, Vec::new(), END).unwrap();
        (region, room)
    }

    fn begin(room: &mut Room, n: u64) -> Result<(), NoRoom> {
        let mut record = [0u8; 16];
        record[..8].copy_from_slice(&n.to_le_bytes());
        room.append(&record, 1, Some(0))
    }

    fn end(room: &mut Room, n: u64) {
        let mut record = [1u8; 16];
        record[..8].copy_from_slice(&n.to_le_bytes());
        room.append_end(&record);
    }

    /// Begins until refused, ends all; every end must be there, in order.
    fn fill_and_unwind(chunks: u64) -> u64 {
        let (region, mut room) = room(chunks);
        let mut open = 0;
        while begin(&mut room, open).is_ok() {
            open += 1;
        }
        (0..open).rev().for_each(|n| end(&mut room, n));
        room.finish();
        let mut out = Bytes(Vec::new());
        let mut drain = Drain::new(region.clone());
        drain.pass(&mut out).unwrap();
        let order: Vec<u64> =
            out.0.chunks_exact(16).map(|r| u64::from_le_bytes(r[..8].try_into().unwrap())).collect();
        let expected: Vec<u64> = (0..open).chain((0..open).rev()).collect();
        assert_eq!(order, expected);
        assert_eq!(region.free_chunks(), region.chunk_count());
        open
    }

    #[test]
    fn every_recorded_begin_has_its_end_when_the_region_is_full() {
        // 4096 - 64 - 32 = 4000 bytes a chunk: 125 begins with their ends, 250 records, a chunk.
        for chunks in [4, 5, 9, 64] {
            let open = fill_and_unwind(chunks);
            // A chunk takes 125 begins; their ends move on to half a chunk more.
            assert!(open >= (chunks - 1) * 125 * 2 / 3, "{chunks} chunks: {open}");
        }
    }

    #[test]
    fn a_scope_deeper_than_a_chunk_of_ends_goes_on_after_unwinding() {
        let (region, mut room) = room(16);
        let mut drain = Drain::new(region);
        let mut out = Bytes(Vec::new());
        for round in 0..10 {
            for n in 0..800 {
                begin(&mut room, n).unwrap_or_else(|e| panic!("round {round}, depth {n}: {e:?}"));
            }
            (0..800).rev().for_each(|n| end(&mut room, n));
            assert_eq!((room.ends_here(), room.ends_in_spares), (0, 0));
            drain.pass(&mut out).unwrap();
        }
        assert_eq!(out.0.len(), 10 * 2 * 800 * 16);
    }

    #[test]
    fn a_record_that_no_chunk_holds_is_too_large_and_changes_nothing() {
        let (_region, mut room) = room(4);
        let largest = room.largest() as usize;
        assert_eq!(room.append(&vec![0; largest + 1], 1, None), Err(NoRoom::TooLarge));
        assert_eq!(room.append(&vec![0; largest - END as usize + 1], 1, Some(0)), Err(NoRoom::TooLarge));
        assert_eq!(room.append(&vec![0; largest], 1, None), Ok(()));
        assert_eq!(room.append(&[0; 1], 1, None), Ok(())); // in the next chunk
        assert_eq!(room.chunk().committed().bytes(), 1);
    }

    #[test]
    fn refused_begins_leave_the_room_for_ends() {
        let (_region, mut room) = room(4);
        let mut open = 0;
        while begin(&mut room, open).is_ok() {
            open += 1;
        }
        for _ in 0..3 {
            assert_eq!(begin(&mut room, 0), Err(NoRoom::BufferFull));
        }
        (0..open).rev().for_each(|n| end(&mut room, n));
    }

    /// Ends shorter than the room that is kept for them leave spares over, which then keep all ends there are.
    #[test]
    fn what_is_kept_adds_up_at_every_step_of_a_deep_recursion() {
        let (_region, mut room) = room(64);
        room.end_size = 25;
        let check = |room: &Room, open: i32| {
            assert_eq!(room.open(), open);
            assert!(room.limit <= room.capacity() && room.ends_in_spares >= 0, "{open} open: {}", room.limit);
        };
        for _ in 0..3 {
            for n in 0..400 {
                room.append(&[0; 31], 1, Some(0)).unwrap();
                check(&room, n + 1);
            }
            for n in (0..400).rev() {
                room.append_end(&[0; 17]);
                check(&room, n);
            }
        }
    }
}
