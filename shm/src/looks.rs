//! The copy between two looks: reads a chunk of another process, which cannot be pinned.
//!
//! ```text
//!  1  look: not free, of the generation that was listed; the number of retractions
//!  2  look: the commit
//!  3  copy                                     committed bytes change only with one of the two numbers
//!  4  look: the same generation                otherwise a thread has taken the chunk: no copy
//!           the same number of retractions     otherwise the owner has taken bytes back: from 1 again
//! ```
//!
//! *A byte of a later owner is never seen without a later state.* A thread that overwrites a chunk stores
//! Free before the first byte, with a Release fence in between (`take_oldest` in `bitmap.rs`). A thread that
//! claims a free chunk does so after the drain has stored Free and set the bit with Release. The fence
//! between steps 3 and 4 is an Acquire. So if the copy has a byte of a later owner, step 4 finds Free or a
//! later generation.
//!
//! *A byte that the owner wrote after a retraction is not seen below an earlier commit.* The owner stores the
//! lower commit, then the number of retractions (Release), then the byte, with a Release fence in between. If
//! step 1 saw that number, step 2 sees the lower commit or a later one. If it did not, and the copy has the
//! byte, step 4 finds another number.
//!
//! `models/tests/glance.rs` runs this function with loads in place of reads from the region's file.

use crate::abi::State;
use crate::sync::{Ordering, fence};

/// The most copies of a chunk whose owner takes bytes back meanwhile. A copy takes some microseconds.
const COPIES: usize = if cfg!(loom) { 1 } else { 64 };

/// A look at a chunk's header: the state, the generation, the number of retractions, and the argument for the
/// copy.
#[allow(unreachable_pub)] // the models call it
pub type Look<L> = (State, u32, u32, L);

/// Copies a chunk that was listed in `generation`. Returns the result of `copy`, or `None` if a thread has
/// taken the chunk meanwhile, or if its owner takes bytes back all the time.
///
/// # Errors
/// Those of `look` and `copy`.
#[cfg_attr(not(loom), allow(unreachable_pub))] // the models call it
pub fn copy_between_looks<L, C, E>(
    generation: u32,
    look: impl Fn() -> Result<Look<L>, E>,
    mut copy: impl FnMut(&L) -> Result<C, E>,
) -> Result<Option<C>, E> {
    let same = |(state, now, retractions, seen)| {
        (state != State::Free && now == generation).then_some((retractions, seen))
    };
    for _ in 0..COPIES {
        // The owner wrote the header before the state, which this process has read when it listed the chunk.
        fence(Ordering::SeqCst);
        let Some((retractions, _)) = look().map(same)? else { return Ok(None) };
        fence(Ordering::SeqCst);
        let Some((_, seen)) = look().map(same)? else { return Ok(None) };
        fence(Ordering::SeqCst);
        let copied = copy(&seen)?;
        fence(Ordering::SeqCst);
        match look().map(same)? {
            Some((now, _)) if now == retractions => return Ok(Some(copied)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(None)
}
