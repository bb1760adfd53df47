//! The ring under [Hairline](https://docs.rs/hairline): a region of shared memory, cut into chunks, each
//! written by one thread at a time and read by one drain, with no lock anywhere.
//!
//! This crate moves bytes. It knows no trace format, no thread and no file to write to.
//!
//! ```
//! use hairline_shm::{ChunkInfo, Drain, Output, Region, RegionConfig};
//! # use std::io::{self, IoSlice};
//! # struct Bytes(Vec<u8>);
//! # impl Output for Bytes {
//! #     fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
//! #         parts.iter().for_each(|p| self.0.extend_from_slice(p));
//! #         Ok(())
//! #     }
//! # }
//! let region = Region::create(&RegionConfig::small())?;
//! let mut drain = Drain::new(region.clone());
//!
//! let mut chunk = region.claim(ChunkInfo { sequence: region.new_sequence(), ..Default::default() }, b"").unwrap();
//! assert!(chunk.append(b"a record", 1));
//!
//! let mut out = Bytes(Vec::new());
//! let pass = drain.pass(&mut out)?;          // the chunk is still being written: what is committed is taken
//! assert_eq!((out.0.as_slice(), pass.records), (&b"a record"[..], 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why no byte is read before it is written
//!
//! Five pairs carry the whole argument; each is named again where it stands.
//!
//! 1. **Claim.** The bitmap's `fetch_and` (Acquire) that finds a bit set reads from the drain's `fetch_or`
//!    (Release) that set it. One `fetch_and` only can find it set, so one thread only owns the chunk, and
//!    whatever the drain read of the chunk's former life happened before the owner's first store.
//! 2. **Begin.** The owner's store of Writing (Release) is read by the drain (Acquire) before it looks at the
//!    header's fields or `commit`: a chunk whose bit is cleared but which is not begun reads as Free and is left alone.
//! 3. **Commit.** The owner writes a record above `commit`, then stores `commit` (Release). The drain loads it
//!    (Acquire) and reads below it. The owner never writes below it. So the two never touch the same
//!    byte, though neither waits for the other.
//! 4. **Complete.** The owner stores Complete (Release) after its last commit. The drain loads the state
//!    *first* and `commit` second: if it saw Complete, then the commit it saw is the last, and it may free the chunk.
//! 5. **Take.** In a region that overwrites, a chunk changes hands by a compare-and-swap (Acquire) from Complete, which reads
//!    from its last owner's Complete (Release) and from the end of the last pin (Release). The window pins a chunk by a
//!    compare-and-swap (Acquire) of the very word it saw, generation included. One of the two only succeeds, so bytes that
//!    the window reads are not written again while it reads.
//!
//! How the drain thread takes a chunk back from an idle thread, at no cost to busy ones: `lease.rs`.
//!
//! Who waits for a chunk, and is woken when the drain frees one, does so under a lock: `wait.rs`.
//!
//! `tests/loom` tries the interleavings of each pair, up to a number of preemptions that docs/reliability.md
//! lists.
//!
//! # Why a killed process loses nothing
//!
//! There is one more order to keep, of the drain's stores among themselves: the chunks say what a batch takes *before* the
//! output is written, one store says that it is written, and only after it does a chunk say so too, or is given to
//! somebody else. Each is a Release store of one thread, so the region of a process that was killed holds a prefix of
//! them, and [`recover`] knows of every byte whether the output has it. The cases are numbered in `ledger.rs`.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod abi;
mod backing;
mod bitmap;
mod chunk;
mod claim;
mod drain;
mod error;
mod lease;
mod ledger;
mod looks;
mod loss;
mod owner;
mod process;
#[cfg(not(loom))]
pub mod recover;
mod region;
mod runs;
mod step;
mod sync;
mod wait;
mod window;

pub use abi::{ChunkHeader, ChunkInfo, Commit, State};
pub use backing::{Backing, BackingChoice};
pub use chunk::WriteChunk;
pub use drain::{Drain, OTHER_SEQUENCES, Output, Pass};
pub use error::RegionError;
pub use lease::{Lease, Recall};
#[cfg(not(loom))]
pub use lease::{all_leases, claim_lease, lost_to_fork, release_lease, start_pool_in_child};
#[cfg(loom)]
pub use looks::copy_between_looks;
pub use loss::{LOSS_REASONS, LossReason};
pub use region::{About, Region, RegionConfig};
pub use sync::fence_all_threads;
#[cfg(loom)]
pub use sync::interrupts::{may_be_interrupted, model_interrupts, now_idle};
pub use window::{Piece, Window};
