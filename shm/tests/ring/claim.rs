//! Claims: the chunk that a claim gets, and claims that fail.

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
