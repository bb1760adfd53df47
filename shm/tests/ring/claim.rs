//! Claims: the chunk that a claim gets, and claims that fail.

#![allow(unsafe_code)] // closes the region

use std::sync::atomic::Ordering;

use hairline_shm::recover::RegionFile;
use hairline_shm::{Backing, BackingChoice, ChunkInfo, LossReason, Region, RegionConfig};

use crate::common::Sink;
use crate::{claim, ring};

// [1][2][3][4]   -> None;   [1]|[2][3][4] -> None;   drained -> chunk 0
#[test]
fn a_full_ring_has_a_free_chunk_after_the_drain_has_taken_a_complete_one() {
    let (region, mut drain) = ring(4);
    let mut held: Vec<_> = (1..=4).map(|s| claim(&region, s, 0, b"").unwrap()).collect();
    assert!(claim(&region, 5, 0, b"").is_none());
    drop(held.remove(0));
    assert!(claim(&region, 5, 0, b"").is_none(), "a complete chunk is not free before it is drained");
    assert_eq!(drain.pass(&mut Sink::default()).unwrap().freed, 1);
    assert_eq!(claim(&region, 5, 0, b"").unwrap().number(), 0);
}

// [0..63][64..127][128..129]   three words of the bitmap, the last one with two bits
#[test]
fn each_chunk_is_claimed_once_lowest_first_if_the_bitmaps_last_word_is_partial() {
    let (region, mut drain) = ring(130);
    let numbers: Vec<u32> = (0..130).map(|s| claim(&region, s, 0, b"").unwrap().number()).collect();
    assert_eq!(numbers, (0..130).collect::<Vec<_>>());
    assert!(claim(&region, 130, 0, b"").is_none());
    assert_eq!(drain.pass(&mut Sink::default()).unwrap().freed, 130);
    assert_eq!(region.free_chunks(), 130);
}

// chunk 0   owner 1 loses 2 events | owner 2 loses 3
// chunk 1                            owner 3 loses 4
#[test]
fn events_that_the_owners_of_chunks_have_lost_are_counted_for_ever() {
    let (region, mut drain) = ring(4);
    let lose = |chunk: &hairline_shm::WriteChunk, more| {
        chunk.lost().store(chunk.lost().load(Ordering::Relaxed) + more, Ordering::Relaxed);
    };
    let first = claim(&region, 1, 0, b"").unwrap();
    lose(&first, 2);
    drop(first);
    drain.pass(&mut Sink::default()).unwrap();
    let held = [claim(&region, 2, 0, b"").unwrap(), claim(&region, 3, 0, b"").unwrap()];
    assert_eq!(held[0].number(), 0);
    lose(&held[0], 3);
    lose(&held[1], 4);
    region.count_lost(LossReason::BufferFull, 10); // of threads without a chunk
    assert_eq!((region.lost(LossReason::BufferFull), region.lost(LossReason::Output)), (19, 0));
    // SAFETY: no pass runs.
    unsafe { region.close() };
    assert_eq!(region.lost(LossReason::BufferFull), 19);
    // SAFETY: as above.
    unsafe { region.close() };
    assert_eq!(region.lost(LossReason::BufferFull), 19);
}

#[test]
fn a_reader_from_outside_finds_the_events_that_the_owners_of_chunks_have_lost() {
    let region =
        Region::create(&RegionConfig { backing: BackingChoice::File, ..RegionConfig::small() }).unwrap();
    region.activate(None);
    let chunk =
        region.claim(ChunkInfo { sequence: region.new_sequence(), ..ChunkInfo::default() }, b"").unwrap();
    chunk.lost().store(5, Ordering::Relaxed);
    region.count_lost(LossReason::BufferFull, 1);
    let Backing::File(path) = region.backing() else { panic!("a file") };
    let glance = RegionFile::open(path.as_ref()).unwrap().glance().unwrap();
    assert_eq!(glance.facts().lost(LossReason::BufferFull), 6);
}
