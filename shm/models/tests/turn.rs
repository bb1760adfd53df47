//! An owner that takes its last record back, while the drain or the window reads the chunk.
//!
//! The records have different lengths: a reader that has bytes of two of them has something that is no
//! record.

use super::*;

/// Takes the record `bb` of a chunk `[a][bb]` back and writes `c`. Returns whether `bb` was taken back.
fn replace_last(chunk: &mut WriteChunk, after_a: hairline_shm::Commit) -> bool {
    let is_back = chunk.retract(after_a);
    assert!(chunk.append(b"c", 1));
    is_back
}

/// A chunk `[a][bb]`, and the commit before `bb`.
fn chunk_of_two(region: &Arc<Region>) -> (WriteChunk, hairline_shm::Commit) {
    let mut chunk = claim(region, 1, 0, b"").unwrap();
    assert!(chunk.append(b"a", 1));
    let after_a = chunk.committed();
    assert!(chunk.append(b"bb", 1));
    (chunk, after_a)
}

// owner: [x]  ->  [x][a]  ->  [x][a][bb]  ->  [x][a]  ->  [x][a][c]     or, if the drain has bb:
// [x][a][bb][c] drain:  two passes meanwhile, one after it
#[test]
fn the_drain_has_a_record_that_its_owner_takes_back_either_whole_or_not() {
    let (back, kept, between) = (Seen::default(), Seen::default(), Seen::default());
    let seen = (back.clone(), kept.clone(), between.clone());
    explore(move || {
        let region = ring();
        let mut chunk = claim(&region, 1, 0, b"").unwrap();
        assert!(chunk.append(b"x", 1));
        let owner = thread::spawn(move || {
            assert!(chunk.append(b"a", 1));
            let after_a = chunk.committed();
            assert!(chunk.append(b"bb", 1));
            (replace_last(&mut chunk, after_a), chunk)
        });
        let mut drain = Drain::new(region);
        let mut sink = Sink::default();
        let mut records = 0;
        for _ in 0..2 {
            records += drain.pass(&mut sink).unwrap().records;
            assert!(
                matches!(&sink.bytes[..], b"x" | b"xa" | b"xac" | b"xabb" | b"xabbc"),
                "{:?}",
                sink.bytes
            );
            seen.2.note_if(sink.bytes == b"xa");
        }
        let (is_back, _chunk) = owner.join().unwrap();
        records += drain.pass(&mut sink).unwrap().records;
        assert_eq!(sink.bytes, if is_back { &b"xac"[..] } else { b"xabbc" });
        assert_eq!(records, if is_back { 3 } else { 4 });
        seen.0.note_if(is_back);
        seen.1.note_if(!is_back);
    });
    assert!(back.happened() && kept.happened() && between.happened());
}

// owner: [a][bb] -> [a] -> [] -> [ccc]       an outer slice after an inner one
// drain:  one pass meanwhile, one after it
#[test]
fn of_two_retractions_the_second_does_not_reach_below_the_bytes_that_the_drain_has() {
    let first_only = Seen::default();
    let seen = first_only.clone();
    explore(move || {
        let region = ring();
        let (mut chunk, after_a) = chunk_of_two(&region);
        let owner = thread::spawn(move || {
            let inner = chunk.retract(after_a);
            let outer = inner && chunk.retract(hairline_shm::Commit::new(0, 0));
            assert!(chunk.append(b"ccc", 1));
            (inner, outer, chunk)
        });
        let mut drain = Drain::new(region);
        let mut sink = Sink::default();
        drain.pass(&mut sink).unwrap();
        assert!(
            matches!(&sink.bytes[..], b"" | b"a" | b"ccc" | b"accc" | b"abb" | b"abbccc"),
            "{:?}",
            sink.bytes
        );
        let (inner, outer, _chunk) = owner.join().unwrap();
        drain.pass(&mut sink).unwrap();
        let expected: &[u8] = match (inner, outer) {
            (true, true) => b"ccc",
            (true, false) => b"accc",
            _ => b"abbccc",
        };
        assert_eq!(sink.bytes, expected);
        seen.note_if(inner && !outer);
    });
    assert!(first_only.happened());
}

// owner: [a][bb][c] -> [a], which fails      the drain has [a][bb] from an earlier pass
// drain:  one pass meanwhile, one after it
#[test]
fn a_retraction_that_fails_does_not_make_the_drain_go_back() {
    explore(|| {
        let region = ring();
        let (mut chunk, after_a) = chunk_of_two(&region);
        let mut drain = Drain::new(Arc::clone(&region));
        let mut sink = Sink::default();
        drain.pass(&mut sink).unwrap();
        let owner = thread::spawn(move || {
            assert!(chunk.append(b"c", 1));
            assert!(!chunk.retract(after_a));
            chunk
        });
        drain.pass(&mut sink).unwrap();
        assert!(matches!(&sink.bytes[..], b"abb" | b"abbc"), "{:?}", sink.bytes);
        let _chunk = owner.join().unwrap();
        drain.pass(&mut sink).unwrap();
        assert_eq!(sink.bytes, b"abbc");
        assert_eq!(region.lost(hairline_shm::LossReason::Damaged), 0);
    });
}

// owner:  [a][bb] -> [a][c]     of a region that overwrites
// window: one look meanwhile, one after it
#[test]
fn the_window_has_a_record_that_its_owner_takes_back_either_whole_or_not() {
    let (back, kept) = (Seen::default(), Seen::default());
    let seen = (back.clone(), kept.clone());
    explore_most(move || {
        let config = RegionConfig { buffer_size: 4 * 4096, overwrite: true, ..RegionConfig::small() };
        let region = Region::create(&config).unwrap();
        let (mut chunk, after_a) = chunk_of_two(&region);
        let owner = thread::spawn(move || (replace_last(&mut chunk, after_a), chunk));
        let mut window = Window::new(region);
        let content =
            |window: &Window| window.pieces().flat_map(|piece| piece.bytes.to_vec()).collect::<Vec<_>>();
        window.take().unwrap();
        let first = content(&window);
        assert!(matches!(&first[..], b"a" | b"ac" | b"abb" | b"abbc"), "{first:?}");
        let (is_back, _chunk) = owner.join().unwrap();
        window.take().unwrap();
        assert_eq!(content(&window), if is_back { &b"ac"[..] } else { b"abbc" });
        assert!(!is_back || !first.starts_with(b"ab"), "the window had it");
        seen.0.note_if(is_back);
        seen.1.note_if(!is_back);
    });
    assert!(back.happened() && kept.happened());
}
