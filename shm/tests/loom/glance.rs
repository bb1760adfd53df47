//! A reader from outside (`recover/glance.rs`), which pins nothing: it looks at a chunk's state, copies, and looks again.
//!
//! The looks and the fences between them are that reader's own (`looks.rs`). It reads a file, and here loads
//! stand for its reads. The fields that the owner sets at a claim stand for what it copies: they are stored
//! at the same place in the order as the first bytes of the payload, after the chunk was taken.

use super::*;
use hairline_shm::abi::State;
use hairline_shm::copy_between_looks;

/// The sequence of the chunk's first owner, and of its next one.
const OLD: u32 = 1;
const NEW: u32 = 2;

// reader: state, [fields], state          of one chunk that is complete
// owner:  takes it to overwrite it, and writes its own fields
#[test]
fn what_is_copied_between_two_looks_at_the_same_state_is_of_one_owner() {
    let (old, new, taken) = (Seen::default(), Seen::default(), Seen::default());
    let seen = (old.clone(), new.clone(), taken.clone());
    explore_most(move || {
        let config = RegionConfig { buffer_size: 4 * 4096, overwrite: true, ..RegionConfig::small() };
        let region = Region::create(&config).unwrap();
        claim(&region, OLD, 0, b"").unwrap().finish_sequence();
        let _held: Vec<_> = (0..3).map(|n| claim(&region, 100 + n, 0, b"").unwrap()).collect();
        let header = region.chunk_header(0);
        let (_, first) = header.look();
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || claim(&region, NEW, 0, b"").map(WriteChunk::finish_sequence))
        };
        let (state, listed) = header.look();
        let look = || {
            let (state, generation) = header.look();
            Ok::<_, std::convert::Infallible>((state, generation, ()))
        };
        let Ok(copied) = copy_between_looks(listed, look, |()| Ok(header.info().sequence));
        match copied {
            Some(sequence) if listed == first => {
                assert_eq!(sequence, OLD, "the next owner's, in the first life")
            }
            Some(sequence) => assert_eq!(sequence, NEW, "the first owner's, in the next life"),
            None => {}
        }
        seen.0.note_if(copied == Some(OLD));
        seen.1.note_if(copied == Some(NEW));
        seen.2.note_if(state != State::Free && copied.is_none());
        owner.join().unwrap();
    });
    assert!(old.happened() && new.happened() && taken.happened());
}
