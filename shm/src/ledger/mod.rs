//! The ledger: it says which bytes the output has, at whatever moment the process is killed.
//!
//! A file and a ring cannot change in one step. So each write to the output is a *batch* with a number, in
//! two phases:
//!
//! ```text
//!  1  each chunk of batch n:  batch = n, then taking = the commit up to which the batch reads it
//!  2  the output is written
//!  3  output_len[n & 1] = its length;  batches_done = n          <- this store makes the batch done
//!  4  each chunk:  drained = taking; free, if it was read to its end
//! ```
//!
//! Recovery decides for each chunk that is not free: the output has the bytes up to `taking` if `batch ==
//! batches_done`, else up to `drained`. Of the output it keeps the first `output_len[batches_done & 1]`
//! bytes; the bytes after that are of a batch that was not done.
//!
//! | killed               | `batch == batches_done`? | recovery uses | and the output has                  |
//! |----------------------|--------------------------|---------------|-------------------------------------|
//! | before 1             | perhaps                  | either: equal | the bytes up to `drained`           |
//! | in 1, in 2, before 3 | no: it is one ahead      | `drained`     | these, and bytes that recovery cuts |
//! | after 3, in 4        | yes                      | `taking`      | the bytes up to `taking`            |
//! | after 4              | yes                      | either: equal | the bytes up to `drained`           |
//!
//! * *Before 1 the two are equal.* Step 4 and a claim leave `taking == drained`. So does a failed batch,
//!   which sets `taking` back to `drained` while `batch` is still one ahead. So the low 32 bits of the number
//!   are enough.
//! * *In 1 the number is stored first.* If `taking` were stored first, and the chunk had been in the batch
//!   before, recovery would believe that the output has the new bytes.
//! * *There are two lengths*, because the length and the number must change in one step. The slot that is
//!   written is never the one that counts.
//! * *A claim* sets both fields while the chunk is still Free, and recovery does not read a free chunk.
//!
//! If the output continues in another file ([`Region::announce_output`]), that file is announced for the
//! present batch: the number of the last announcement is cleared first, and the number of the batch is stored
//! last. So a kill in between leaves no announcement.
//!
//! One thread does all these stores. After a kill, memory has the stores that the thread had executed: a
//! processor discards the instructions that are not retired, and retires them in program order. So only the
//! compiler could reorder the stores. Each is a Release, below which no earlier store can sink.

use crate::abi::{ChunkHeader, Commit, NO_FILE, RegionHeader};
use crate::region::Region;
use crate::step::step;
use crate::sync::Ordering;

/// Numbers the batches of one region.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    done: u64,
}

/// The part of a batch's number that a chunk stores.
#[allow(clippy::cast_possible_truncation)] // the low half is meant
pub(crate) const fn mark(number: u64) -> u32 {
    number as u32
}

impl Ledger {
    /// The number of the next batch. Grows when the batch is done.
    pub(crate) fn next(&self) -> u64 {
        self.done + 1
    }

    /// Stores that batch [`next`](Self::next) is done, and that the output has `len` bytes, if it is a file.
    pub(crate) fn done(&mut self, region: &Region, len: Option<u64>) {
        let number = self.next();
        let header = region.header();
        header.output_len[(number & 1) as usize].store(len.unwrap_or(NO_FILE), Ordering::Release);
        step();
        header.batches_done.store(number, Ordering::Release);
        self.done = number;
        step();
    }

    /// The length of the output after the last batch.
    pub(crate) fn output_len(&self, region: &Region) -> Option<u64> {
        // Relaxed: this thread has stored it.
        let len = region.header().output_len[(self.done & 1) as usize].load(Ordering::Relaxed);
        (len != NO_FILE).then_some(len)
    }
}

/// The commit up to which the output has a chunk, by three fields of the chunk and the number of the last
/// batch.
pub(crate) fn in_output(batch: u32, taking: Commit, drained: Commit, batches_done: u64) -> Commit {
    if batch == mark(batches_done) { taking } else { drained }
}

impl ChunkHeader {
    /// The commit up to which the output has this chunk, by the rule of recovery. In the process that writes
    /// the region, the result can be outdated at once, except on the drain thread.
    #[must_use]
    pub fn in_output(&self, region: &RegionHeader) -> Commit {
        let done = region.batches_done.load(Ordering::Acquire);
        let batch = self.batch.load(Ordering::Acquire);
        let (taking, drained) = (self.taking.load(Ordering::Acquire), self.drained.load(Ordering::Acquire));
        in_output(batch, Commit(taking), Commit(drained), done)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
