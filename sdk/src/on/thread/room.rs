//! A thread's chunks, and the room in them.
//!
//! ```text
//! chunk being written                                     spares (deep recursion only)
//! [context | records ....... | free ...... | ends | 24 ]  [ends ......... ] [ends ......... ]
//!                            ^ commit      ^ limit ^ capacity
//! ```
//!
//! `limit` = capacity less one end for each open scope whose end is reserved in this chunk. If more scopes
//! are open than one chunk has room for ends, the other ends are reserved in spare chunks. Spares are claimed
//! beforehand, and the sequence continues in them in their order.
//!
//! # Notes
//!
//! Each begin leaves a note in the room of its end: its own offset in the chunk, its id, and what else its
//! format needs. No record is written there before that slice ends:
//!
//! ```text
//! [records ...... | free .... |<-limit   [note of the innermost] [..] [note of the outermost]]
//!                              24 bytes that a store may reach into; each note is at the start of its slot
//! ```
//!
//! By the id, an end finds whether its slice is the innermost one. A thread that moves to another chunk takes
//! the ids along. Only if the drain thread has recalled the chunk are they unknown: then every end counts as
//! in order.
//!
//! # Regions that overwrite
//!
//! In a region that overwrites, earlier chunks may be gone. So each chunk repeats everything that its records
//! need from earlier ones, and a thread does not move to its next chunk by itself: [`Room`] returns
//! [`NoRoom::ChunkFull`], and the chunk writer encodes the beginning of the next chunk. For that, it finds
//! the begins of all open slices by their notes.

use std::sync::Arc;

use hairline_shm::{ChunkInfo, Commit, Region, WriteChunk};

use crate::on::base::memory::{Bytes, List};
use crate::on::encode::begin::{Begin, Note};
use crate::on::encode::no_room::NoRoom;
use crate::on::session::room::{OVERHANG, empty_room};

/// Bytes of a note: the offset of a begin in its chunk, and the other facts about it.
const NOTE: usize = 4 + Note::LEN;

/// Offset of the id in a note.
pub(crate) const NOTE_ID: usize = 4;

/// The id of a begin that this thread does not know any more: its end counts as in order.
const UNKNOWN: u32 = 0;

/// The offset in the note of a begin that is not in this chunk.
const NOT_IN_CHUNK: u32 = u32::MAX;

/// The chunks of one thread, and the room in them.
#[derive(Debug)]
pub(crate) struct Room {
    region: Arc<Region>,
    chunk: WriteChunk,
    spares: List<WriteChunk>,
    /// Open scopes whose end is reserved in `spares`.
    ends_in_spares: i32,
    /// The ids of their begins, the outermost first.
    ids_in_spares: List<u32>,
    /// Set if the drain thread has recalled the chunk: the number of ends that lost their reserved room. The
    /// chunk must not be touched.
    ends_owed: Option<i32>,
    /// Offset in the chunk up to which records may reach.
    limit: i32,
    /// Bytes reserved for the end of one scope.
    end_size: i32,
    next: ChunkInfo,
    context: Bytes,
    /// Grows with each change of the chunk, and with each record that is no event: later events may need it.
    changes: u64,
}

impl Room {
    /// Claims the first chunk of the sequence. Returns `None` if no chunk is free. The
    /// [`changes`](Self::changes) are counted from `changes` on.
    #[inline(never)] // as `ChunkWriter::new`
    pub(crate) fn new(
        region: Arc<Region>,
        info: ChunkInfo,
        context: Bytes,
        end_size: i32,
        changes: u64,
    ) -> Option<Self> {
        let chunk = region.claim(info, &context)?;
        let next = ChunkInfo { index: info.index + 1, ..info };
        let mut room = Self {
            region,
            chunk,
            spares: List::new(),
            ends_in_spares: 0,
            ids_in_spares: List::new(),
            ends_owed: None,
            limit: 0,
            end_size,
            next,
            context,
            changes,
        };
        room.limit = room.capacity();
        Some(room)
    }

    pub(crate) fn chunk(&self) -> &WriteChunk {
        &self.chunk
    }

    /// Returns the bytes that are neither written nor reserved for ends.
    pub(crate) fn left(&self) -> i32 {
        self.limit - self.committed()
    }

    /// Sets the hot path's last commit in the chunk, and the bytes `left` there. Returns whether the commit
    /// is valid.
    pub(crate) fn set_used(&mut self, commit: Commit, left: i32) -> bool {
        let is_valid = self.chunk.set_committed(commit);
        self.limit = self.committed() + left;
        is_valid
    }

    /// Returns a number that grows when the chunk changes, and with each record that is no event.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes the records above `to` back: those of a slice without anything inside, whose end has released
    /// the room that its begin reserved. Returns `false` if a reader has them.
    #[cfg(feature = "subscriber")]
    pub(crate) fn retract(&mut self, to: Commit) -> bool {
        self.ends_owed.is_none() && self.chunk.retract(to)
    }

    /// Marks the chunk as recalled.
    pub(crate) fn set_recalled(&mut self) {
        self.changes += 1;
        self.ends_owed = Some(self.ends_here());
        self.chunk.set_recalled();
    }

    pub(crate) fn is_recalled(&self) -> bool {
        self.ends_owed.is_some()
    }

    /// Claims a chunk in place of the recalled one.
    pub(crate) fn resume(&mut self) -> Result<(), NoRoom> {
        let Some(open) = self.ends_owed else { return Ok(()) };
        self.chunk = self.region.claim(self.next, &self.context).ok_or(NoRoom::BufferFull)?;
        self.changes += 1;
        self.next.index += 1;
        self.ends_owed = None;
        self.limit = self.capacity() - open * self.end_size;
        // Another thread may have written into the old chunk since.
        self.note_ids(std::iter::repeat_n(UNKNOWN, open.cast_unsigned() as usize));
        Ok(())
    }

    /// Returns whether the chunk being written is this thread's only one.
    pub(crate) fn has_no_spares(&self) -> bool {
        self.spares.is_empty()
    }

    /// Returns the number of chunks that are reserved for the ends of open scopes alone.
    pub(crate) fn chunks_for_ends(&self) -> u32 {
        if self.ends_in_spares > 0 { self.spares.len() as u32 } else { 0 }
    }

    /// Returns whether the ends of all open scopes are reserved in the chunk being written.
    pub(crate) fn keeps_all_ends(&self) -> bool {
        self.ends_in_spares == 0
    }

    /// Returns the bytes that are reserved for the end of a scope.
    pub(crate) fn end_size(&self) -> i32 {
        self.end_size
    }

    /// Returns the offset in the chunk up to which records and ends may reach.
    pub(crate) fn capacity(&self) -> i32 {
        signed(empty_room(&self.region))
    }

    /// Returns the length of the longest record that an empty chunk holds, its end included.
    pub(crate) fn largest(&self) -> i32 {
        self.capacity() - self.context.len() as i32
    }

    /// Returns the length of the longest record that the next chunk holds for sure, its end included.
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

    /// Writes whole records, `events` of which are events. With `begins`, the first record begins a scope,
    /// and `begins` is its note.
    pub(crate) fn append(&mut self, bytes: &[u8], events: u32, begins: Option<Note>) -> Result<(), NoRoom> {
        let end = self.find_room(bytes.len(), begins.is_some())?;
        let at = self.chunk.committed().bytes();
        self.chunk.append(bytes, events);
        self.changes += u64::from(events == 0);
        self.limit -= end;
        if let Some(note) = begins {
            self.note(self.limit, Begin { at: Some(at), note });
        }
        Ok(())
    }

    /// Finds room for records of `len` bytes: the next [`append`](Self::append) of as many succeeds. Returns
    /// the bytes for the end if the first record `begins` a scope.
    pub(crate) fn find_room(&mut self, len: usize, begins: bool) -> Result<i32, NoRoom> {
        let end = if begins { self.end_size } else { 0 };
        let need = i32::try_from(len).ok().and_then(|n| n.checked_add(end)).ok_or(NoRoom::TooLarge)?;
        if need > self.limit - self.committed() {
            if self.region.overwrites() {
                return Err(if need > self.largest() { NoRoom::TooLarge } else { NoRoom::ChunkFull });
            }
            self.next_chunk(need)?;
        }
        Ok(end)
    }

    /// Returns whether records of `len` bytes, none of which begins a scope, fit into the chunk.
    pub(crate) fn has_room_for(&self, len: usize) -> bool {
        i32::try_from(len).is_ok_and(|len| len <= self.left())
    }

    /// Stores the note of the begin whose end is reserved at `limit`.
    fn note(&mut self, limit: i32, begin: Begin) {
        let mut note = [0; NOTE];
        note[..4].copy_from_slice(&begin.at.unwrap_or(NOT_IN_CHUNK).to_le_bytes());
        note[4..].copy_from_slice(&begin.note.bytes());
        self.chunk.note(note_at(limit), &note);
    }

    /// Returns the open slices of a region that overwrites, the outermost first. All their ends are reserved
    /// in this chunk.
    pub(crate) fn begins(&self) -> impl Iterator<Item = Begin> + '_ {
        (1..=self.ends_here()).map(|n| {
            let note = self.chunk.noted(note_at(self.capacity() - n * self.end_size));
            let [a, b, c, d, bytes @ ..]: [u8; NOTE] = note.unwrap_or([0xff; NOTE]);
            let at = u32::from_le_bytes([a, b, c, d]);
            Begin { at: (at != NOT_IN_CHUNK).then_some(at), note: Note::from_bytes(bytes) }
        })
    }

    /// Stores the ids of the begins whose ends are reserved in this chunk, the outermost first. Of these
    /// begins nothing else is known, since they are in earlier chunks.
    fn note_ids(&mut self, ids: impl IntoIterator<Item = u32>) {
        for (n, id) in (1..).zip(ids) {
            let note = Note { id, ..Note::default() };
            self.note(self.capacity() - n * self.end_size, Begin { at: None, note });
        }
    }

    /// Returns the id of the innermost open slice. `None` if it is not known.
    pub(crate) fn innermost(&self) -> Option<u32> {
        if self.is_recalled() {
            return None;
        }
        let id = if self.ends_here() > 0 { self.noted_id(self.limit) } else { *self.ids_in_spares.last()? };
        (id != UNKNOWN).then_some(id)
    }

    fn noted_id(&self, limit: i32) -> u32 {
        self.chunk.noted(note_at(limit) + NOTE_ID as u32).map_or(UNKNOWN, u32::from_le_bytes)
    }

    /// Copies the committed bytes of the chunk to `out`.
    pub(crate) fn copy_written(&self, out: &mut Bytes) {
        out.resize(self.committed().cast_unsigned() as usize, 0);
        self.chunk.copy_committed(out);
    }

    /// Returns the bytes that the next chunk's beginning may use, beside the ends of all open scopes, so that
    /// half of the chunk stays free. Returns `None` if too many scopes are open.
    pub(crate) fn room_to_begin(&self) -> Option<usize> {
        usize::try_from(self.largest() / 2 - self.open() * self.end_size).ok()
    }

    /// Moves to a new chunk. It begins with `recovery`, which has the begins of all open slices at the
    /// offsets in `begins`, and with `start`.
    pub(crate) fn begin_next_chunk(
        &mut self,
        recovery: &[u8],
        begins: &[Begin],
        start: &[u8],
    ) -> Result<(), NoRoom> {
        let open = self.open();
        let mut chunk = self.region.claim(self.next, &self.context).ok_or(NoRoom::BufferFull)?;
        let is_written = chunk.append_recovery(recovery) && chunk.append(start, 0);
        debug_assert!(is_written, "within `room_to_begin`");
        self.next.index += 1;
        self.chunk = chunk; // the old one is complete by its drop
        self.changes += 1;
        self.ends_owed = None;
        self.limit = self.capacity() - open * self.end_size;
        let context_len = self.context.len() as u32;
        for (n, begin) in (1..=open).zip(begins) {
            let at = begin.at.map(|at| at + context_len);
            self.note(self.capacity() - n * self.end_size, Begin { at, ..*begin });
        }
        Ok(())
    }

    /// Writes the end of a recorded scope. The room for it is always there.
    pub(crate) fn append_end(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.end_size as usize);
        // The end is reserved in a spare. This chunk may have room for it all the same.
        if self.ends_here() == 0 && self.committed() + bytes.len() as i32 > self.capacity() {
            self.move_to_spare();
        }
        self.release_end();
        let written = self.chunk.append(bytes, 1);
        debug_assert!(written, "the begin reserved this room");
    }

    /// Releases the room of one end, which was written elsewhere.
    pub(crate) fn release_end(&mut self) {
        if let Some(owed) = &mut self.ends_owed {
            *owed -= 1;
        } else if self.ends_here() > 0 {
            self.limit += self.end_size;
        } else {
            self.ends_in_spares -= 1;
            self.ids_in_spares.pop();
        }
    }

    /// Moves to a chunk with room for `need` bytes and for the ends of all open scopes. On an error, keeps
    /// the current chunk.
    fn next_chunk(&mut self, need: i32) -> Result<(), NoRoom> {
        if need > self.largest() {
            return Err(NoRoom::TooLarge);
        }
        // Reserved ends may take half of the chunk. If they could take all of it, deep recursion would need a
        // new chunk for each begin. They may take all of it if there are too few free chunks.
        self.claim_for(need, self.largest() / 2).or_else(|_| self.claim_for(need, self.largest()))?;
        self.rotate(self.open());
        Ok(())
    }

    /// Claims a chunk to continue in, and spares for the ends that do not fit, with `need`, into `share`
    /// bytes of it.
    fn claim_for(&mut self, need: i32, share: i32) -> Result<(), NoRoom> {
        let elsewhere = (self.open() - (share - need).max(0) / self.end_size).max(0);
        let wanted = 1 + elsewhere.cast_unsigned().div_ceil(self.ends_per_spare().cast_unsigned());
        while self.spares.len() < wanted as usize {
            self.claim_spare()?;
        }
        Ok(())
    }

    /// Returns the number of open scopes.
    pub(crate) fn open(&self) -> i32 {
        self.ends_owed.unwrap_or_else(|| self.ends_here() + self.ends_in_spares)
    }

    fn claim_spare(&mut self) -> Result<(), NoRoom> {
        let chunk = self.region.claim(self.next, &self.context).ok_or(NoRoom::BufferFull)?;
        self.next.index += 1;
        self.spares.push(chunk);
        Ok(())
    }

    /// Moves to the first spare, to write an end that is reserved there.
    fn move_to_spare(&mut self) {
        self.rotate(self.ends_in_spares);
    }

    /// Gives the chunk back and moves to the first spare, with `open` ends to reserve.
    fn rotate(&mut self, open: i32) {
        let Some(chunk) = self.spares.shift() else { return };
        let mut ids = std::mem::take(&mut self.ids_in_spares);
        ids.extend((1..=self.ends_here()).map(|n| self.noted_id(self.capacity() - n * self.end_size)));
        self.chunk = chunk; // the old one is complete by its drop
        self.changes += 1;
        self.ends_in_spares = open.min(self.spares.len() as i32 * self.ends_per_spare());
        self.limit = self.capacity() - (open - self.ends_in_spares) * self.end_size;
        let kept = (self.ends_in_spares.cast_unsigned() as usize).min(ids.len());
        self.note_ids(ids[kept..].iter().copied());
        ids.truncate(kept);
        self.ids_in_spares = ids;
    }

    /// Ends the sequence. If it owns no chunk to record the end in, returns the `ChunkInfo` of its next
    /// chunk, so that the drain thread can record the end.
    pub(crate) fn finish(self) -> Option<ChunkInfo> {
        if self.is_recalled() {
            // A new chunk might be the last free one, or overwrite content that is still wanted.
            return Some(self.next);
        }
        let Self { chunk, mut spares, .. } = self;
        // The sequence's last chunk records the end. An unused spare is an empty chunk.
        match spares.pop() {
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

/// Returns the offset of the note of the slice whose end is reserved at `limit`: out of reach of the stores
/// below it.
fn note_at(limit: i32) -> u32 {
    limit.cast_unsigned() + OVERHANG as u32
}

/// Converts a length within a chunk, which is at most 2^24.
fn signed(n: u32) -> i32 {
    n as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use hairline_shm::{Drain, Output, RegionConfig};
    use std::io::{self, IoSlice};

    const END: i32 = 16;

    struct Written(Vec<u8>);
    impl Output for Written {
        fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
            parts.iter().for_each(|p| self.0.extend_from_slice(p));
            Ok(())
        }
    }

    fn room(chunks: u64) -> (Arc<Region>, Room) {
        let config = RegionConfig { buffer_size: chunks * 4096, ..RegionConfig::small() };
        let region = Region::create(&config).unwrap();
        let info = ChunkInfo { sequence: 1, ..Default::default() };
        let room = Room::new(region.clone(), info, Bytes::new(), END, 0).unwrap();
        (region, room)
    }

    fn begin(room: &mut Room, n: u64) -> Result<(), NoRoom> {
        let mut record = [0u8; 16];
        record[..8].copy_from_slice(&n.to_le_bytes());
        room.append(&record, 1, Some(Note::default()))
    }

    fn end(room: &mut Room, n: u64) {
        let mut record = [1u8; 16];
        record[..8].copy_from_slice(&n.to_le_bytes());
        room.append_end(&record);
    }

    /// Begins scopes until one is refused, and ends all of them. Every end must be there, in order.
    fn fill_and_unwind(chunks: u64) -> u64 {
        let (region, mut room) = room(chunks);
        let mut open = 0;
        while begin(&mut room, open).is_ok() {
            open += 1;
        }
        (0..open).rev().for_each(|n| end(&mut room, n));
        room.finish();
        let mut out = Written(Vec::new());
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
        // 4096 - 64 - 8 - 24 = 4000 bytes a chunk: 125 begins with their ends, 250 records, a chunk.
        for chunks in [4, 5, 9, 64] {
            let open = fill_and_unwind(chunks);
            // A chunk holds 125 begins; their ends need another half of a chunk.
            assert!(open >= (chunks - 1) * 125 * 2 / 3, "{chunks} chunks: {open}");
        }
    }

    #[test]
    fn recursion_deeper_than_one_chunk_of_ends_can_be_repeated_after_unwinding() {
        let (region, mut room) = room(16);
        let mut drain = Drain::new(region);
        let mut out = Written(Vec::new());
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
    fn a_record_larger_than_a_chunk_is_too_large_and_changes_nothing() {
        let (_region, mut room) = room(4);
        let largest = room.largest() as usize;
        assert_eq!(room.append(&vec![0; largest + 1], 1, None), Err(NoRoom::TooLarge));
        assert_eq!(
            room.append(&vec![0; largest - END as usize + 1], 1, Some(Note::default())),
            Err(NoRoom::TooLarge)
        );
        assert_eq!(room.append(&vec![0; largest], 1, None), Ok(()));
        assert_eq!(room.append(&[0; 1], 1, None), Ok(())); // in the next chunk
        assert_eq!(room.chunk().committed().bytes(), 1);
    }

    #[test]
    fn refused_begins_leave_the_room_of_ends_reserved() {
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

    /// Ends that are shorter than their reserved room leave spares unused. These then hold the room of all
    /// open ends.
    #[test]
    fn the_reserved_room_matches_the_open_scopes_at_every_step_of_a_deep_recursion() {
        let (_region, mut room) = room(64);
        room.end_size = 25;
        let check = |room: &Room, open: i32| {
            assert_eq!(room.open(), open);
            assert!(room.limit <= room.capacity() && room.ends_in_spares >= 0, "{open} open: {}", room.limit);
        };
        for _ in 0..3 {
            for n in 0..400 {
                room.append(&[0; 31], 1, Some(Note::default())).unwrap();
                check(&room, n + 1);
            }
            for n in (0..400).rev() {
                room.append_end(&[0; 17]);
                check(&room, n);
            }
        }
    }
}
