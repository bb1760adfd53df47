//! A reader from outside (`recover/glance.rs`), which cannot pin a chunk: it looks at the state, copies, and
//! looks again.
//!
//! The model runs the looks and the fences of that reader (`looks.rs`). Loads stand for its reads of the
//! file. The fields that the owner sets at a claim stand for the bytes that the reader copies: the owner
//! stores both after it has taken the chunk.

use super::*;
use hairline_shm::abi::State;
use hairline_shm::copy_between_looks;
use std::sync::atomic::Ordering::Relaxed;

/// The sequence of the chunk's first owner, and of the next one.
const OLD: u32 = 1;
const NEW: u32 = 2;

// reader: state, [fields], state          of one complete chunk
// owner:  takes it to overwrite it, and writes its own fields
#[test]
fn a_copy_between_two_equal_looks_is_of_one_owner() {
    let (old, new, taken) = (Seen::default(), Seen::default(), Seen::default());
    let seen = (old.clone(), new.clone(), taken.clone());
    explore_most(move || {
        let config = RegionConfig { buffer_size: 4 * 4096, overwrite: true, ..RegionConfig::small() };
        let region = Region::create(&config).unwrap();
        claim(&region, OLD, 0, b"").unwrap().finish_sequence();
        let _held: Vec<_> = (0..3).map(|n| claim(&region, 100 + n, 0, b"").unwrap()).collect();
        let header = region.chunk_header(0);
        let (_, first, _) = header.look();
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || claim(&region, NEW, 0, b"").map(WriteChunk::finish_sequence))
        };
        let (state, listed, _) = header.look();
        let look = || {
            let (state, generation, retractions) = header.look();
            Ok::<_, std::convert::Infallible>((state, generation, retractions, ()))
        };
        let Ok(copied) = copy_between_looks(listed, look, |()| Ok(header.info().sequence));
        match copied {
            Some(sequence) if listed == first => {
                assert_eq!(sequence, OLD, "of the next owner, in the first generation")
            }
            Some(sequence) => assert_eq!(sequence, NEW, "of the first owner, in the next generation"),
            None => {}
        }
        seen.0.note_if(copied == Some(OLD));
        seen.1.note_if(copied == Some(NEW));
        seen.2.note_if(state != State::Free && copied.is_none());
        owner.join().unwrap();
    });
    assert!(old.happened() && new.happened() && taken.happened());
}

// owner:  [a][bb]  ->  [a]  ->  [a][c]        one byte stands for the bytes of `bb` and of `c`
// reader: retractions, commit, [the byte], retractions
#[test]
fn a_copy_has_no_byte_from_after_a_retraction_below_a_commit_from_before_it() {
    let (old, new, changed) = (Seen::default(), Seen::default(), Seen::default());
    let seen = (old.clone(), new.clone(), changed.clone());
    explore_most(move || {
        let region = ring();
        let mut chunk = claim(&region, 1, 0, b"").unwrap();
        assert!(chunk.append(b"a", 1));
        let before = chunk.committed();
        assert!(chunk.append(b"bb", 1));
        let header = region.chunk_header(chunk.number());
        let (_, listed, _) = header.look();
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                assert!(chunk.retract(before), "no reader of this process");
                region.chunk_header(chunk.number()).byte.store(1, Relaxed);
                assert!(chunk.append(b"c", 1));
                chunk
            })
        };
        let look = || {
            let (state, generation, retractions) = header.look();
            Ok::<_, std::convert::Infallible>((state, generation, retractions, header.commit()))
        };
        let Ok(copied) =
            copy_between_looks(listed, look, |commit| Ok((commit.bytes(), header.byte.load(Relaxed))));
        match copied {
            Some((3, byte)) => assert_eq!(byte, 0, "of `c`, below the commit of `bb`"),
            Some((2, byte)) => assert_eq!(byte, 1, "of `bb`, below the commit of `c`"),
            Some((bytes, _)) => assert_eq!(bytes, 1),
            None => {}
        }
        seen.0.note_if(copied == Some((3, 0)));
        seen.1.note_if(copied == Some((2, 1)));
        seen.2.note_if(copied.is_none());
        let _chunk = owner.join().unwrap();
    });
    assert!(old.happened() && new.happened() && changed.happened());
}
