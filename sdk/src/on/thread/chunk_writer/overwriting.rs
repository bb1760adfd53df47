//! What a thread does otherwise where the ring overwrites: each chunk begins with what it needs of those before it, and a slice on a
//! track is written when it ends.

use std::sync::Arc;

use hairline_shm::LossReason;

use crate::on::base::this_thread::Hot;
use crate::on::encode::fit;
use crate::on::encode::no_room::NoRoom;
use crate::on::event::Event;
use crate::on::thread::chunk_writer::Writer;

impl Writer {
    /// Goes on in the next chunk of a region that overwrites: what stood in the ones before is told anew there, the begins
    /// of open slices as well.
    pub(crate) fn turn(&mut self, hot: &Hot) -> Result<(), NoRoom> {
        let now = self.tick(hot).now;
        self.scratch.clear();
        self.sequence.put_start(&mut self.scratch, now);
        let room = self.room.room_to_begin().and_then(|room| room.checked_sub(self.scratch.len()));
        let room = room.ok_or(NoRoom::BufferFull)?;
        self.tell_begins(room);
        if self.again.strings.len() > room {
            return Err(NoRoom::BufferFull); // the names of open slices alone are too many
        }
        self.again.strings.extend_from_slice(&self.again.begins);
        self.room.turn(&self.again.strings, &self.begins, &self.scratch)?;
        self.sequence.forget_all();
        hot.clear_seen();
        hot.lease().set_last(now);
        Ok(())
    }

    /// Puts the begins of the open slices together, as far as `room` goes.
    fn tell_begins(&mut self, room: usize) {
        let Self { again, begins, sequence, chunk_copy, .. } = self;
        again.clear();
        begins.clear();
        if self.room.open() > 0 {
            self.room.copy_written(chunk_copy);
        }
        for begin in self.room.begins() {
            let written = begin.at.map(|at| chunk_copy.get(at as usize..).unwrap_or(&[]));
            begins.push(sequence.put_again(again, written, begin.known));
        }
        sequence.put_own_track_again(again);
        again.keep_innermost(begins, room);
    }

    /// Begins a slice on a track where the ring overwrites: it is kept until its end. Whether it was recorded.
    pub(crate) fn begin_kept(&mut self, hot: &Hot, event: &Event<'_>) -> bool {
        let now = event.past.unwrap_or(self.tick(hot).after(event.after).now);
        let room = self.room.largest_at_least() as usize / 2;
        let Self { scratch, sequence, .. } = self;
        let mut put = |event: &Event<'_>| {
            scratch.clear();
            sequence
                .put_alone(scratch, event, now)
                .and_then(|left_out| if scratch.len() > room { Err(NoRoom::TooLarge) } else { Ok(left_out) })
        };
        let mut left_out = put(event);
        if left_out == Err(NoRoom::TooLarge) {
            left_out = Ok(0);
            let shortened = fit::shortened(event, room, |shorter| put(shorter).map(|_| ()));
            if shortened.is_err() {
                self.refuse(LossReason::TooLarge);
                return false;
            }
        }
        if let Ok(n @ 1..) = left_out {
            self.shared.region().count_lost(LossReason::Argument, n);
        }
        let (Some(track), Some(recorder)) = (event.track, self.shared.recorder()) else { return false };
        recorder.open().begin(track.uuid(), &self.scratch);
        self.sequence.recorded(event);
        true
    }

    /// Ends a slice on a track. When it ended; None where there is no room.
    pub(crate) fn end_on_track(&mut self, hot: &Hot, event: &Event<'_>) -> Option<u64> {
        if self.shared.recorder().is_none() {
            return self.try_fitting(hot, event).ok().map(|()| hot.lease().last());
        }
        let mut begin = std::mem::take(&mut self.begin);
        let ended = self.end_kept(hot, event, &mut begin);
        self.begin = begin;
        ended
    }

    /// The same where the ring overwrites: the begin goes before the end. Where there is no room the slice is lost. `begin` is room to
    /// work in.
    fn end_kept(&mut self, hot: &Hot, event: &Event<'_>, begin: &mut Vec<u8>) -> Option<u64> {
        let (shared, track) = (Arc::clone(&self.shared), event.track?.uuid());
        let open = shared.recorder()?.open();
        loop {
            let serial = open.last(track, begin)?;
            // Both records and the room for them first: an argument's value may come from code of the program, which may even end
            // this slice.
            let put = self.put_kept(hot, event, begin);
            let ended = open.end(track, serial, || match put {
                Some(now) => self.room.append(&self.scratch, 2, None).is_ok().then_some(now),
                None => None,
            });
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Puts the begin and the end together, and goes on in a chunk with room for them. When it ended; None: there is no such chunk.
    fn put_kept(&mut self, hot: &Hot, event: &Event<'_>, begin: &[u8]) -> Option<u64> {
        let now = self.tick(hot).after(event.after).now;
        self.scratch.clear();
        self.scratch.extend_from_slice(begin);
        let whole = self.sequence.put_alone(&mut self.scratch, event, now);
        if whole.is_err() || self.scratch.len() > self.room.largest_at_least() as usize {
            // Without its arguments, which are too long.
            self.scratch.truncate(begin.len());
            self.sequence.put_alone(&mut self.scratch, &event.with_values(&[], &[]), now).ok()?;
            self.shared.region().count_lost(LossReason::Argument, event.arguments().count() as u64);
        }
        if !self.room.has_room_for(self.scratch.len()) {
            let both = std::mem::take(&mut self.scratch); // which `turn` uses
            let turned = self.turn(hot);
            self.scratch = both;
            if turned.is_err() || !self.room.has_room_for(self.scratch.len()) {
                self.refuse(LossReason::BufferFull);
                return None;
            }
        }
        Some(now)
    }
}
