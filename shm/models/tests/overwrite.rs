//! A ring that overwrites its oldest chunk, and its window.

use super::*;

/// Four chunks of a region that overwrites: one is complete, and the caller has the others.
fn ring_with_one_to_overwrite() -> (Arc<Region>, Vec<WriteChunk>) {
    let config = RegionConfig { buffer_size: 4 * 4096, overwrite: true, ..RegionConfig::small() };
    let region = Region::create(&config).unwrap();
    let mut only = claim(&region, 1, 0, b"").unwrap();
    assert!(only.append(b"a", 1));
    only.finish_sequence();
    let held = (0..3).map(|n| claim(&region, 100 + n, 0, b"").unwrap()).collect();
    (region, held)
}

// thread 1: claim  --+
// thread 2: claim  --+--> [complete][held][held][held]
#[test]
fn of_two_threads_that_overwrite_the_same_chunk_exactly_one_succeeds() {
    explore(|| {
        let (region, _held) = ring_with_one_to_overwrite();
        let other = {
            let region = Arc::clone(&region);
            thread::spawn(move || claim(&region, 2, 0, b""))
        };
        let mine = claim(&region, 3, 0, b"");
        assert!(mine.is_some() ^ other.join().unwrap().is_some());
    });
}

// window: pins [a], copies it, unpins     \
// owner:  takes it, writes [b]             +--> the copy is of one owner, and whole
#[test]
fn a_chunk_is_not_overwritten_while_the_window_reads_it() {
    let (old, new, refused) = (Seen::default(), Seen::default(), Seen::default());
    let seen = (old.clone(), new.clone(), refused.clone());
    explore_most(move || {
        let (region, _held) = ring_with_one_to_overwrite();
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let Some(mut chunk) = claim(&region, 2, 0, b"") else { return false };
                assert!(chunk.append(b"bc", 1));
                true
            })
        };
        let mut window = Window::new(Arc::clone(&region));
        window.take().unwrap();
        let (mut is_old, mut is_new) = (false, false);
        for piece in window.pieces().filter(|piece| piece.info.sequence < 100) {
            match (piece.info.sequence, piece.bytes, piece.records) {
                (1, b"a", 1) => is_old = true,
                (2, b"bc", 1) => is_new = true,
                (2, b"", 0) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(!(is_old && is_new), "one copy, one owner");
        let took = owner.join().unwrap();
        seen.0.note_if(is_old);
        seen.1.note_if(is_new);
        seen.2.note_if(!took);
    });
    // The pin can keep the thread from taking the chunk. Its event then counts as lost.
    assert!(old.happened() && new.happened() && refused.happened());
}

// owner:  [a..   appends, completes, claims the next chunk \
// window: pins the chunks that it finds                     +--> no record is missing between two others
#[test]
fn a_window_has_no_gap_if_a_thread_changes_chunks() {
    let (one, both) = (Seen::default(), Seen::default());
    let seen = (one.clone(), both.clone());
    explore_most(move || {
        let config = RegionConfig { buffer_size: 4 * 4096, overwrite: true, ..RegionConfig::small() };
        let region = Region::create(&config).unwrap();
        let mut first = claim(&region, 1, 0, b"").unwrap();
        let owner = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                assert!(first.append(b"1", 1));
                let mut second = claim(&region, 1, 1, b"").unwrap();
                drop(first);
                assert!(second.append(b"2", 1));
            })
        };
        let mut window = Window::new(Arc::clone(&region));
        window.take().unwrap();
        let bytes: Vec<u8> = window.pieces().flat_map(|piece| piece.bytes.to_vec()).collect();
        assert!(b"12".starts_with(&bytes), "{bytes:?}");
        seen.0.note_if(bytes == b"1");
        seen.1.note_if(bytes == b"12");
        owner.join().unwrap();
    });
    assert!(one.happened() && both.happened());
}
