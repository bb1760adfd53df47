//! Reads the region of a dead process, or, from outside, that of a living one ([`RegionFile::glance`]).
//!
//! After SIGKILL, an abort or a crash the region's file is still in `/dev/shm`. The file names the process,
//! the path of the output, the length up to which the output is complete, and the bytes that the output does
//! not have yet:
//!
//! ```no_run
//! # #[cfg(feature = "recovery")] {
//! use hairline_shm::recover::{DeadRegion, Part, find};
//!
//! for found in find()? {
//!     let region = DeadRegion::open(&found.path)?;            // an error if the process is alive
//!     println!("{}: {:?}", region.facts().pid, region.facts().output);
//!     let mut fragments = region.fragments(Part::NotInOutput)?;
//!     while let Some(fragment) = fragments.next()? {
//!         println!("{} bytes, {} records", fragment.bytes.len(), fragment.records);
//!     }
//! }
//! # }
//! # Ok::<(), hairline_shm::recover::RecoverError>(())
//! ```
//!
//! # What is trusted
//!
//! Only what was checked. The file must be a regular file of this user. Every offset, length and index is
//! compared with the file before use. Chunks whose headers contradict themselves are left out and counted.
//! The file is read and never mapped, so a file that shrinks meanwhile causes an error and no SIGBUS. The
//! memory needed is the head of the stream (at most 1 MiB), the tape (at most 64 MiB), one chunk (at most 16
//! MiB), and 28 bytes for each chunk that is not free.
//!
//! The payload is *not* checked, and neither are the entries of the tape: a process that can write the region
//! can write the trace.

#[cfg(feature = "recovery")]
mod chunk;
mod dead;
mod error;
mod file;
mod find;
#[cfg(feature = "recovery")]
mod fragments;
#[cfg(feature = "recovery")]
mod glance;
mod header;
#[cfg(feature = "recovery")]
mod tape;

pub use crate::process::Life;
#[cfg(feature = "recovery")]
pub use chunk::Part;
pub use dead::DeadRegion;
pub use error::RecoverError;
pub use file::RegionFile;
pub use find::{Found, Search, find, other_user_of, room};
#[cfg(feature = "recovery")]
pub use fragments::{Fragment, Fragments};
#[cfg(feature = "recovery")]
pub use glance::Glance;
pub use header::{Facts, NextOutput, SessionState};
