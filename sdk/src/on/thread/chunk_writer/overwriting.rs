//! The parts of a chunk writer for regions that overwrite.
//!
//! Each chunk begins with everything that its records need from earlier chunks. A slice on a track is written
//! when it ends.

use std::sync::Arc;

use hairline_shm::LossReason;

use crate::on::base::memory::Bytes;
use crate::on::base::this_thread::Hot;
use crate::on::encode::fit;
use crate::on::encode::no_room::NoRoom;
use crate::on::event::Event;
use crate::on::event::extras::NewFlows;
use crate::on::thread::chunk_writer::ChunkWriter;

impl ChunkWriter {
    /// Begins the next chunk. Repeats there the state of the earlier chunks: the sequence's first records,
    /// and the begins of open slices.
    pub(crate) fn begin_next_chunk(&mut self, hot: &Hot) -> Result<(), NoRoom> {
        let now = self.tick(hot).now;
        self.scratch.clear();
        self.sequence.put_start(&mut self.scratch, now);
        let room = self.room.room_to_begin().and_then(|room| room.checked_sub(self.scratch.len()));
        let room = room.ok_or(NoRoom::BufferFull)?;
        self.repeat_begins(room);
        if self.again.len() > room {
            return Err(NoRoom::BufferFull); // even the names of the open slices are too long
        }
        self.room.begin_next_chunk(&self.again, &self.begins, &self.scratch)?;
        self.sequence.forget_all();
        hot.clear_seen();
        hot.lease().set_last(now);
        Ok(())
    }

    /// Encodes the begins of the open slices again. If they take more than `room` bytes, leaves out the
    /// outermost.
    fn repeat_begins(&mut self, room: usize) {
        let Self { again, begins, sequence, chunk_copy, .. } = self;
        if self.room.open() > 0 {
            self.room.copy_written(chunk_copy);
        }
        begins.clear();
        begins.extend(self.room.begins());
        sequence.repeat_begins(again, chunk_copy, begins, room);
    }

    /// Begins a slice on a track: keeps its begin until its end. Returns whether the slice will be recorded.
    pub(crate) fn defer_begin(&mut self, hot: &Hot, event: &Event<'_>) -> bool {
        let now = event.past.unwrap_or(self.tick(hot).after(event.after).now);
        let room = self.room.largest_at_least() as usize / 2;
        let Self { scratch, sequence, .. } = self;
        let mut put = |event: &Event<'_>| {
            scratch.clear();
            sequence
                .put_self_contained(scratch, event, now)
                .and_then(|dropped| if scratch.len() > room { Err(NoRoom::TooLarge) } else { Ok(dropped) })
        };
        let mut dropped = put(event);
        if dropped == Err(NoRoom::TooLarge) {
            dropped = Ok(0);
            let shortened = fit::shortened(event, room, |shorter| put(shorter).map(|_| ()));
            if shortened.is_err() {
                self.refuse(hot, LossReason::TooLarge);
                return false;
            }
        }
        if let Ok(n @ 1..) = dropped {
            self.shared.region().count_lost(LossReason::Argument, n);
        }
        let (Some(track), Some(recorder)) = (event.track, self.shared.recorder()) else { return false };
        recorder.open().begin(track.uuid(), &self.scratch);
        self.sequence.set_event_written(event);
        // A snapshot repairs a flow that another thread has begun at the same moment.
        let (mut new, mut own) = (event.extras.new_flows(self.epoch()).0, NewFlows::default());
        event.extras.begin_flows(self.epoch(), now, &mut new, &mut own);
        true
    }

    /// Ends a slice on a track. Returns the time of the end; `None` if there is no room.
    pub(crate) fn end_on_track(&mut self, hot: &Hot, event: &Event<'_>) -> Option<u64> {
        if self.shared.recorder().is_none() {
            return self.try_fitting(hot, event).ok().map(|()| hot.lease().last());
        }
        let mut begin = std::mem::take(&mut self.deferred_begin);
        let ended = self.end_deferred(hot, event, &mut begin);
        self.deferred_begin = begin;
        ended
    }

    /// Writes the deferred begin of a slice, and its end. If there is no room for both, the slice is lost.
    /// `begin` is scratch space.
    fn end_deferred(&mut self, hot: &Hot, event: &Event<'_>, begin: &mut Bytes) -> Option<u64> {
        let (shared, track) = (Arc::clone(&self.shared), event.track?.uuid());
        let open = shared.recorder()?.open();
        loop {
            let serial = open.last(track, begin)?;
            // Both records, and the room for them, first. An argument's value may come from code of the
            // program, and that code may itself end this slice.
            let put = self.put_deferred(hot, event, begin);
            let ended = open.end(track, serial, || match put {
                Some(now) => self.room.append(&self.scratch, 2, None).is_ok().then_some(now),
                None => None,
            });
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Encodes the end after the begin, and finds a chunk with room for both. Returns the time of the end;
    /// `None` if there is no such chunk.
    fn put_deferred(&mut self, hot: &Hot, event: &Event<'_>, begin: &[u8]) -> Option<u64> {
        let now = self.tick(hot).after(event.after).now;
        self.scratch.clear();
        self.scratch.extend_from_slice(begin);
        let whole = self.sequence.put_self_contained(&mut self.scratch, event, now);
        if whole.is_err() || self.scratch.len() > self.room.largest_at_least() as usize {
            // The arguments are too long: write the end without them.
            self.scratch.truncate(begin.len());
            self.sequence.put_self_contained(&mut self.scratch, &event.with_values(&[], &[]), now).ok()?;
            self.shared.region().count_lost(LossReason::Argument, event.arguments().count() as u64);
        }
        if !self.room.has_room_for(self.scratch.len()) {
            let both = std::mem::take(&mut self.scratch); // `begin_next_chunk` uses `scratch`
            let begun = self.begin_next_chunk(hot);
            self.scratch = both;
            if begun.is_err() || !self.room.has_room_for(self.scratch.len()) {
                self.refuse(hot, LossReason::BufferFull);
                return None;
            }
        }
        Some(now)
    }
}
