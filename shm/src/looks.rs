//! A copy between two looks: how a chunk is read that cannot be pinned, since another process owns it.
//!
//! ```text
//!  1  look: not free, of the generation in which it was listed
//!  2  copy                                     what is committed is never written again in that generation
//!  3  look: the same                           else the chunk was taken by somebody in between: no copy
//! ```
//!
//! *What a later owner writes is seen with its mark.* Who takes a chunk to overwrite it stores Free before
//! the first byte, with a Release fence between (`claim.rs`). Who claims a free one does so after the drain
//! has stored Free and set the bit with Release. So where the copy has a byte of a later owner, the look of
//! step 3 finds Free or a later generation: the fence between the two is an Acquire.
//!
//! `tests/loom/glance.rs` runs this function with loads in the place of reads from the region's file.

use crate::abi::State;
use crate::sync::{Ordering, fence};

/// What `copy` makes of the chunk that was listed in this generation; `None` if the chunk was taken
/// meanwhile. `look` gives the chunk's state, its generation, and what `copy` needs to know.
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
    // Whoever claimed it had its header written before the state that was read when it was listed.
    fence(Ordering::SeqCst);
    let Some(seen) = look().map(same)? else { return Ok(None) };
    fence(Ordering::SeqCst);
    let copied = copy(&seen)?;
    fence(Ordering::SeqCst);
    Ok(look().map(same)?.map(|_| copied))
}
