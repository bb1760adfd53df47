//! The copy between two looks: reads a chunk of another process, which cannot be pinned.
//!
//! ```text
//!  1  look: not free, and of the generation that was listed
//!  2  copy                                     committed bytes do not change in this generation
//!  3  look: the same                           otherwise a thread has taken the chunk: no copy
//! ```
//!
//! *A byte of a later owner is never seen without a later state.* A thread that overwrites a chunk stores
//! Free before the first byte, with a Release fence in between (`take_oldest` in `bitmap.rs`). A thread that
//! claims a free chunk does so after the drain has stored Free and set the bit with Release. The fence
//! between steps 2 and 3 is an Acquire. So if the copy has a byte of a later owner, step 3 finds Free or a
//! later generation.
//!
//! `tests/loom/glance.rs` runs this function with loads in place of reads from the region's file.

use crate::abi::State;
use crate::sync::{Ordering, fence};

/// Copies a chunk that was listed in `generation`. Returns the result of `copy`, or `None` if a thread has
/// taken the chunk meanwhile. `look` returns the state and the generation of the chunk, and the argument for
/// `copy`.
///
/// # Errors
/// Those of `look` and `copy`.
#[cfg_attr(not(loom), allow(unreachable_pub))] // the models call it
pub fn copy_between_looks<L, C, E>(
    generation: u32,
    look: impl Fn() -> Result<(State, u32, L), E>,
    copy: impl FnOnce(&L) -> Result<C, E>,
) -> Result<Option<C>, E> {
    let same = |(state, now, seen)| (state != State::Free && now == generation).then_some(seen);
    // The owner wrote the header before the state, which this process has read when it listed the chunk.
    fence(Ordering::SeqCst);
    let Some(seen) = look().map(same)? else { return Ok(None) };
    fence(Ordering::SeqCst);
    let copied = copy(&seen)?;
    fence(Ordering::SeqCst);
    Ok(look().map(same)?.map(|_| copied))
}
