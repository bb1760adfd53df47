//! The ring under [Hairline](https://docs.rs/hairline): a region of shared memory that is divided into
//! chunks. One thread at a time writes a chunk, and one drain reads all of them. Neither takes a lock for
//! that.
//!
//! This crate moves bytes. It knows no trace format, starts no thread and does not open the output: the
//! caller implements [`Output`]. The header of a region has the path, the length and the inode of the output,
//! so that [`recover`] can complete the file after a kill.
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
//! let info = ChunkInfo { sequence: region.new_sequence(), ..Default::default() };
//! let mut chunk = region.claim(info, b"").unwrap();
//! assert!(chunk.append(b"a record", 1));
//!
//! let mut out = Bytes(Vec::new());
//! let pass = drain.pass(&mut out)?;          // takes the committed bytes of a chunk that is not complete
//! assert_eq!((out.0.as_slice(), pass.records), (&b"a record"[..], 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The feature `recovery` (on by default) adds functions that read the records of a region from outside.
//! Without it, [`recover`] only finds regions and removes them.
//!
//! # Layers
//!
//! ```text
//! lease  drain  window  recover       the right to write a chunk; the readers
//!        claim                        a thread claims a chunk
//!   chunk  ledger                     a chunk for its owner and its readers; the bytes that the output has
//!   bitmap  looks                     a chunk changes hands
//!        region                       header, bitmap and chunks
//! abi  backing  owner  turn  process  wait   layout, memory, and the parts of a region
//! platform                           the operating system
//! ```
//!
//! # Why no byte is read before it is written
//!
//! The argument is six pairs of atomic operations. The code names the pair at each of them.
//!
//! 1. **Claim.** The `fetch_and` (Acquire) that finds a bit of the bitmap set reads from the drain's
//!    `fetch_or` (Release) that set it. Only one `fetch_and` can find the bit set, so only one thread owns
//!    the chunk. All reads of the drain in the chunk's previous life happen before the first store of the new
//!    owner.
//! 2. **Begin.** The owner stores Writing (Release). The drain loads the state (Acquire) before it reads the
//!    fields of the header or `commit`. A chunk that is claimed and not yet begun is still Free for the
//!    drain.
//! 3. **Commit.** The owner writes a record above `commit`, then stores `commit` (Release). The drain loads
//!    `commit` (Acquire) and reads below it. The owner never writes below it, except by pair 6. So the two
//!    never access the same byte, and neither waits for the other.
//! 4. **Complete.** The owner stores Complete (Release) after its last commit. The drain loads the state
//!    *first* and `commit` second. If it sees Complete, the commit is the last one, and it may free the
//!    chunk.
//! 5. **Take.** In a region that overwrites, a thread takes a chunk by a compare-and-swap (Acquire) from
//!    Complete. It reads from the last owner's Complete (Release) and from the end of the last pin (Release).
//!    The window pins a chunk by a compare-and-swap (Acquire) of the whole word that it has seen, with the
//!    generation. Only one of the two succeeds, so no thread writes the bytes that the window reads.
//! 6. **Turn.** An owner may take its last records back, by a lower commit (`turn.rs`). It begins its turn by
//!    a compare-and-swap (Acquire), which reads from the end of a reader's turn (Release), and so sees how
//!    far that reader reads. A reader begins its turn by a `fetch_or` (Acquire), which reads from the begin
//!    or from the end of the owner's turn (Release), and so sees to where the owner goes back, or the lower
//!    commit. Neither waits. So no byte that a reader reads is taken back.
//!
//! `lease/` explains how the drain thread recalls the chunk of an idle thread at no cost for busy threads.
//! `wait.rs` has the only lock: a thread that waits for a chunk holds it, and so does the drain when it wakes
//! such threads.
//!
//! `models/tests` tries the interleavings of each pair, up to the number of preemptions that
//! docs/reliability.md lists.
//!
//! # Why a killed process loses nothing
//!
//! The stores of the drain have an order of their own. The chunks say which bytes a batch takes *before* the
//! output is written. One store says that the output has the batch. Only after that store do the chunks say
//! so too, or become free. One thread does these stores, each with Release, so a kill leaves a prefix of them
//! in the region. So [`recover`] knows for each byte whether the output has it. `ledger/` lists the cases.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod abi;
mod awaited;
mod backing;
mod bitmap;
mod chunk;
mod claim;
mod config;
mod drain;
mod error;
mod lease;
mod ledger;
#[cfg(any(feature = "recovery", loom))]
mod looks;
mod loss;
#[cfg(not(loom))]
mod memory;
mod owner;
mod platform;
mod process;
#[cfg(not(loom))]
pub mod recover;
mod region;
mod runs;
mod step;
mod sync;
mod tape;
mod turn;
mod uncancelled;
mod user;
mod wait;
mod window;

pub use abi::{ChunkHeader, ChunkInfo, Commit, State};
pub use awaited::Awaited;
pub use backing::{Backing, BackingChoice, folder};
pub use bitmap::FullSince;
pub use chunk::WriteChunk;
pub use config::{About, RegionConfig};
pub use drain::{Drain, OTHER_SEQUENCES, Output, Pass};
pub use error::RegionError;
pub use lease::{Lease, Recall};
#[cfg(not(loom))]
pub use lease::{all_leases, claim_lease, lost_to_fork, release_lease, start_pool_in_child};
#[cfg(loom)]
pub use looks::copy_between_looks;
pub use loss::{LOSS_REASONS, LossReason};
#[cfg(not(loom))]
pub use memory::{map_memory, release_memory, unmap_memory};
pub use region::Region;
pub use sync::fence_all_threads;
#[cfg(loom)]
pub use sync::interrupts::{may_be_interrupted, model_interrupts, now_idle};
pub use tape::{Tape, tape_entries};
pub use uncancelled::Uncancelled;
pub use user::is_one_user;
pub use window::{Piece, Window};
