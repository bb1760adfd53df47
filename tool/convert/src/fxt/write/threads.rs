//! The thread table with its 255 indices. If all are in use, the index assigned first is assigned again.

use hairline_formats::fxt::{self, MAX_THREAD_INDEX, ThreadRef};

use crate::TrackId;
use crate::fxt::write::tracks::{OutputTrack, OutputTrackKind, Tracks};

#[derive(Debug, Default)]
pub(super) struct Threads {
    /// The thread of each index, from 1.
    owner: Vec<TrackId>,
    /// The latest assigned index.
    last: u8,
}

impl Threads {
    /// The reference to a thread. Writes the record of a new index to `out`. Returns `None` for a track that
    /// is no thread.
    #[inline]
    pub(super) fn reference(
        &mut self,
        track: TrackId,
        tracks: &mut Tracks,
        out: &mut Vec<u8>,
    ) -> Option<ThreadRef> {
        match tracks.get(track)?.kind {
            OutputTrackKind::Thread { index: 0, pid, tid, .. } => {
                let index = self.give_out(track, tracks);
                fxt::thread_record(out, index, pid, tid);
                Some(ThreadRef::Index(index))
            }
            OutputTrackKind::Thread { index, .. } => Some(ThreadRef::Index(index)),
            _ => None,
        }
    }

    #[cold]
    fn give_out(&mut self, track: TrackId, tracks: &mut Tracks) -> u8 {
        self.last = if self.last == MAX_THREAD_INDEX { 1 } else { self.last + 1 };
        match self.owner.get_mut(usize::from(self.last) - 1) {
            Some(owner) => set_index(tracks, std::mem::replace(owner, track), 0),
            None => self.owner.push(track),
        }
        set_index(tracks, track, self.last);
        self.last
    }

    /// Clears the table.
    pub(super) fn clear(&mut self, tracks: &mut Tracks) {
        self.owner.drain(..).for_each(|track| set_index(tracks, track, 0));
        self.last = 0;
    }
}

fn set_index(tracks: &mut Tracks, track: TrackId, to: u8) {
    if let Some(OutputTrack { kind: OutputTrackKind::Thread { index, .. }, .. }) = tracks.get_mut(track) {
        *index = to;
    }
}
