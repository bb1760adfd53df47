//! A reader from outside (`recover/glance.rs`), which pins nothing: it looks at a chunk's state, copies, and looks again.
//!
//! That reader reads a file. Here the same loads stand for its reads. The fields that the owner sets at a claim stand for what it copies:
//! they are stored at the same place in the order as the first bytes of the payload, after the chunk was taken.

use super::*;
use hairline_shm::abi::State;
use loom::sync::atomic::{Ordering, fence};

/// The sequence of the chunk's first owner, and of its next one.
const OLD: u32 = 1;
const NEW: u32 = 2;

// reader: state, [fields], state          of one chunk that is complete
// owner:  takes it to overwrite it, and writes its own fields
#[test]
fn what_is_copied_between_two_looks_at_the_same_state_is_of_one_owner() {
    let (same, changed) = (Seen::default(), Seen::default());
    let (seen_same, seen_changed) = (same.clone(), changed.clone());
    explore_most(move || {
        let config = RegionConfig { buffer_size: 4 * 4096, overwrite: true, ..RegionConfig::small() };
        let region = Region::create(&config).unwrap();
        claim(&region, OLD, 0, b"").unwrap().finish_sequence();
        let _held: Vec<_> = (0..3).map(|n| claim(&region, 100 + n, 0, b"").unwrap()).collect();
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || claim(&region, NEW, 0, b"").map(WriteChunk::finish_sequence))
        };
        let header = region.chunk_header(0);
        let before = header.state_word();
        fence(Ordering::SeqCst);
        let copied = header.info().sequence;
        fence(Ordering::SeqCst);
        let after = header.state_word();
        let is_same = State::of(before) != State::Free && before == after;
        if is_same && State::of(before) == State::Complete {
            assert!(copied == OLD || copied == NEW);
            let first = header.state_word() == before && copied == NEW;
            // Of the first generation only the old fields may be seen; of the second only the new ones.
            assert!(!(first && before >> 3 == 1), "the next owner's field in the former owner's life");
            assert!(!(copied == OLD && before >> 3 > 1), "the former owner's field in the next owner's life");
        }
        same.note_if(is_same);
        changed.note_if(!is_same);
        owner.join().unwrap();
    });
    assert!(seen_same.happened() && seen_changed.happened());
}
