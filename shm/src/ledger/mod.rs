//! Which bytes the output has, wherever the process is killed.
//!
//! A file and a ring cannot change together. So each write to the output is a *batch* with a number, in two phases:
//!
//! ```text
//!  1  each chunk of batch n:  batch = n, then taking = the commit up to which it is read
//!  2  the output is written
//!  3  output_len[n & 1] = its length;  batches_done = n          <- the one store that makes it done
//!  4  each chunk:  drained = taking; free, if it was read to its end
//! ```
//!
//! A recoverer believes of a chunk that is not free: `taking` where `batch == batches_done`, else `drained`; and of
//! the output the first `output_len[batches_done & 1]` bytes, for what lies behind them is of a batch that was not done.
//!
//! | killed            | `batch == batches_done`? | the recoverer takes | and the output has                        |
//! |-------------------|--------------------------|---------------------|-------------------------------------------|
//! | before 1          | perhaps                  | either: they agree  | what `drained` says                       |
//! | in 1, in 2, before 3 | no: it is one ahead   | `drained`           | that, and a tail that will be cut         |
//! | after 3, in 4     | yes                      | `taking`            | what `taking` says                        |
//! | after 4           | yes                      | either: they agree  | what `drained` says                       |
//!
//! * *Before 1 they agree*, since step 4, a failed batch (which puts `taking` back to `drained` while `batch` is still one
//!   ahead) and a claim all leave `taking == drained`. So it does no harm that a chunk keeps 32 bits of the number only.
//! * *In 1 the number goes first.* Were `taking` stored first, a chunk of the batch before would be believed to be in the
//!   output up to there.
//! * *Two lengths*, because the length and the number must change together: the slot that is written is never the
//!   one that counts.
//! * *A claim* resets both fields while the chunk is still Free, and a free chunk is nobody's business.
//!
//! Where the output goes on in another file ([`Region::announce_output`]), that file is announced for the
//! batch in hand: its words are taken back first, and the batch's number is stored last. So a kill between
//! them leaves no announcement.
//!
//! All these stores are one thread's. What a kill leaves behind is what the thread had executed: a processor gives up what
//! it has not retired, and it retires in program order. So only the compiler could reorder them, and each store is a
//! Release, which no earlier one may sink below.

use crate::abi::{ChunkHeader, Commit, NO_FILE, RegionHeader};
use crate::region::Region;
use crate::step::step;
use crate::sync::Ordering;

/// Numbers the batches of one region.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    done: u64,
}

/// What a chunk keeps of a batch's number.
#[allow(clippy::cast_possible_truncation)] // the low half is meant
pub(crate) const fn mark(number: u64) -> u32 {
    number as u32
}

impl Ledger {
    /// The number of the batch to be written: the same again until it is done.
    pub(crate) fn next(&self) -> u64 {
        self.done + 1
    }

    /// The output has batch [`next`](Self::next), and is `len` bytes long, if it is a file.
    pub(crate) fn done(&mut self, region: &Region, len: Option<u64>) {
        let number = self.next();
        let header = region.header();
        header.output_len[(number & 1) as usize].store(len.unwrap_or(NO_FILE), Ordering::Release);
        step();
        header.batches_done.store(number, Ordering::Release);
        self.done = number;
        step();
    }

    /// The output's length after the last batch.
    pub(crate) fn output_len(&self, region: &Region) -> Option<u64> {
        let len = region.header().output_len[(self.done & 1) as usize].load(Ordering::Relaxed); // our own store
        (len != NO_FILE).then_some(len)
    }
}

/// What the output has of a chunk whose header says `batch`, `taking` and `drained`, when `batches_done` are done.
pub(crate) fn in_output(batch: u32, taking: Commit, drained: Commit, batches_done: u64) -> Commit {
    if batch == mark(batches_done) { taking } else { drained }
}

impl ChunkHeader {
    /// What the output has of this chunk, as who recovers the region would say: of the process that has it open, only the
    /// drain can trust the answer to last.
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
