//! Records that their owner takes back.

use super::*;
use crate::common::Sink;
use hairline_shm::{Commit, Window};

/// A chunk `[a][bb]`, and the commit before `bb`.
fn chunk_of_two(region: &Arc<Region>) -> (WriteChunk, Commit) {
    let info = ChunkInfo { sequence: region.new_sequence(), ..ChunkInfo::default() };
    let mut chunk = region.claim(info, b"ctx").unwrap();
    assert!(chunk.append(b"a", 1));
    let after_a = chunk.committed();
    assert!(chunk.append(b"bb", 1));
    (chunk, after_a)
}

fn small(overwrite: bool) -> Arc<Region> {
    Region::create(&RegionConfig { overwrite, ..RegionConfig::small() }).unwrap()
}

#[test]
fn a_record_that_is_taken_back_is_neither_written_nor_counted() {
    let region = small(false);
    let (mut chunk, after_a) = chunk_of_two(&region);
    assert!(chunk.retract(after_a));
    assert_eq!(chunk.committed(), after_a);
    assert!(chunk.append(b"c", 1));
    let (mut drain, mut sink) = (Drain::new(region), Sink::default());
    let pass = drain.pass(&mut sink).unwrap();
    assert_eq!((sink.bytes.as_slice(), pass.records), (&b"ctxac"[..], 2));
}

#[test]
fn a_record_that_the_drain_has_stays() {
    let region = small(false);
    let (mut chunk, after_a) = chunk_of_two(&region);
    let (mut drain, mut sink) = (Drain::new(region), Sink::default());
    drain.pass(&mut sink).unwrap();
    assert!(!chunk.retract(after_a));
    let after_bb = chunk.committed();
    assert!(chunk.append(b"c", 1));
    assert!(chunk.retract(after_bb), "the drain does not have this one");
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"ctxabb");
    assert_eq!(drain.records_by_sequence().values().sum::<u64>(), 2);
}

#[test]
fn a_record_that_the_window_has_stays() {
    let region = small(true);
    let (mut chunk, after_a) = chunk_of_two(&region);
    let mut window = Window::new(region);
    let mut content = || {
        window.take().unwrap();
        window.pieces().flat_map(|piece| piece.bytes.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(content(), b"ctxabb");
    assert!(!chunk.retract(after_a));
    let after_bb = chunk.committed();
    assert!(chunk.append(b"c", 1) && chunk.retract(after_bb) && chunk.append(b"d", 1));
    assert_eq!(content(), b"ctxabbd");
}

#[test]
fn the_next_owner_of_a_chunk_may_take_its_records_back_too() {
    let region = small(false);
    let (mut drain, mut sink) = (Drain::new(Arc::clone(&region)), Sink::default());
    for _ in 0..3 {
        let (mut chunk, after_a) = chunk_of_two(&region);
        assert!(chunk.retract(after_a));
        chunk.finish_sequence();
        drain.pass(&mut sink).unwrap();
    }
    assert_eq!(sink.bytes, b"ctxactxactxa");
}

#[test]
fn no_owner_goes_forward_or_below_its_context() {
    let region = small(false);
    let (mut chunk, after_a) = chunk_of_two(&region);
    let last = chunk.committed();
    for wrong in [Commit::new(last.bytes() + 1, 2), Commit::new(2, 0), Commit::new(after_a.bytes(), 3)] {
        assert!(!chunk.retract(wrong), "{wrong:?}");
        assert_eq!(chunk.committed(), last);
    }
    assert!(chunk.retract(Commit::new(3, 0)));
}

// owner:  records of 1 to 8 bytes, of which it takes back every second one, if it can
// drain:  passes all the time
#[test]
fn while_the_drain_runs_each_record_is_written_once_or_taken_back() {
    let region = Region::create(&config(16)).unwrap();
    let owner = {
        let region = Arc::clone(&region);
        std::thread::spawn(move || {
            let (mut kept, mut index, mut back) = (Vec::new(), 0, 0);
            let mut chunk = claim(&region, 1, index, b"");
            for n in 0_u32..400_000 {
                let record = [n as u8; 8];
                let record = &record[..1 + n as usize % 8];
                let before = loop {
                    if let Some(chunk) = &mut chunk {
                        let before = chunk.committed();
                        if chunk.append(record, 1) {
                            break before;
                        }
                        index += 1;
                    }
                    drop(chunk.take()); // gives it back
                    chunk = claim(&region, 1, index, b"");
                };
                if n % 2 == 1 && chunk.as_mut().is_some_and(|chunk| chunk.retract(before)) {
                    back += 1;
                } else {
                    kept.push(record.to_vec());
                }
            }
            chunk.expect("the last one").finish_sequence();
            (kept, back)
        })
    };
    let (mut drain, mut sink) = (Drain::new(Arc::clone(&region)), Sink::default());
    let mut records = 0;
    while !owner.is_finished() {
        records += drain.pass(&mut sink).unwrap().records;
    }
    let (kept, back) = owner.join().unwrap();
    records += drain.pass(&mut sink).unwrap().records;
    assert_eq!(records, kept.len() as u64);
    assert!(sink.bytes == kept.concat(), "other bytes");
    assert!(back > 1000, "{back}");
    assert_eq!(region.lost(hairline_shm::LossReason::Damaged), 0);
}
