//! The table of sampled blocks: threads insert and free, the session's thread counts what was freed.

#[allow(dead_code)] // what no model needs
#[path = "../src/on/base/heap/profile/blocks.rs"]
mod blocks;

use std::sync::Arc;

use super::{Seen, explore};
use blocks::Blocks;
use loom::thread;

/// Allocates a block and frees it, as one thread. Returns the slot if there was room.
fn live(blocks: &Blocks, address: u64) -> Option<u32> {
    let slot = blocks.insert(address)?;
    let taken = blocks.take(address).expect("the thread's own block");
    assert_eq!(taken, slot);
    blocks.push(taken);
    Some(slot.number)
}

// first, second: insert, take, push      one slot for both
// reader:        freed, release          twice
//
// Fails when `freed` or `push` loads and stores the head: a slot is shown twice, or never.
#[test]
fn each_freed_block_is_shown_once() {
    let reused = Seen::default();
    let seen = reused.clone();
    explore(move || {
        let blocks = Arc::new(Blocks::new());
        let threads = [0x1000, 0x2000].map(|address| {
            let blocks = Arc::clone(&blocks);
            thread::spawn(move || live(&blocks, address).is_some())
        });
        let mut shown = 0;
        let mut read = || {
            blocks.freed(|number| {
                shown += 1;
                blocks.release(number);
            });
        };
        read();
        let inserted: Vec<bool> =
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        read();
        read();
        assert_eq!(shown, inserted.iter().filter(|is| **is).count());
        seen.note_if(inserted == [true, true]);
        let slot = blocks.insert(0x3000).expect("the slot is free again");
        assert_eq!(blocks.take(0x3000), Some(slot));
    });
    assert!(reused.happened());
}

// first:  insert, hand over to the second
// second: take                                  by an Acquire of the hand-over
//
// Fails when `insert` counts the slot after the hand-over.
#[test]
fn the_thread_that_frees_a_block_finds_it() {
    explore(|| {
        use loom::sync::atomic::{AtomicBool, Ordering};
        let blocks = Arc::new(Blocks::new());
        let handed_over = Arc::new(AtomicBool::new(false));
        let first = {
            let (blocks, handed_over) = (Arc::clone(&blocks), Arc::clone(&handed_over));
            thread::spawn(move || {
                let _ = blocks.insert(0x1000).expect("room");
                handed_over.store(true, Ordering::Release);
            })
        };
        if handed_over.load(Ordering::Acquire) {
            blocks.push(blocks.take(0x1000).expect("the block is sampled"));
        }
        first.join().expect("no panic");
    });
}
