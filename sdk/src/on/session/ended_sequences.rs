//! Sequences that ended while their thread had no chunk to record the end in.

use hairline_shm::ChunkInfo;

use crate::on::base::lock::Mutex;
use crate::on::base::memory::List;

/// Sequences that ended without a chunk. The drain thread records their ends.
#[derive(Debug, Default)]
pub(crate) struct EndedSequences(Mutex<List<ChunkInfo>>);

impl EndedSequences {
    /// Adds a sequence, by the `ChunkInfo` that its next chunk would have had.
    pub(crate) fn add(&self, next_chunk: ChunkInfo) {
        let ended = self.0.lock_unless_lost_with_room(|ended| (ended, 1));
        ended.into_iter().for_each(|mut ended| ended.push(next_chunk));
    }

    /// Takes the sequences that were added since the last call.
    pub(crate) fn take(&self) -> List<ChunkInfo> {
        std::mem::take(&mut self.0.lock())
    }
}
