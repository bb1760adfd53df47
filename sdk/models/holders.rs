//! Who holds a lock: two words that the holder writes and any thread reads.

#[allow(dead_code)] // the place is read by the thread that writes it, which is no race
#[path = "../src/on/bridges/locks/who.rs"]
mod who;

use std::sync::Arc;

use super::{Seen, explore};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use who::Who;

/// The place of a thread's only hold.
fn place(number: usize) -> *mut u64 {
    std::ptr::without_provenance_mut(number * 8)
}

// a thread holds the lock, releases it   \
// the next one holds it                   +--> a third one sees a thread with its own place, or nobody
//
// Fails when one of the four orderings of the pairs 1 and 2 is Relaxed.
#[test]
fn a_thread_is_seen_with_its_own_place() {
    let (first, second, nobody) = (Seen::default(), Seen::default(), Seen::default());
    let seen = (first.clone(), second.clone(), nobody.clone());
    explore(move || {
        let who = Arc::new((Who::nobody(), AtomicU64::new(0)));
        let holders = {
            let who = Arc::clone(&who);
            thread::spawn(move || {
                who.0.set(1, place(1));
                who.0.clear();
                let next = Arc::clone(&who);
                // The lock orders the holders, as this spawn does.
                let next = thread::spawn(move || {
                    next.1.store(2, Ordering::Release);
                    next.0.set(2, place(2));
                    assert!(next.0.is_somebody() && next.0.own_place() == place(2));
                });
                next.join().unwrap();
            })
        };
        match who.0.look(|| who.1.load(Ordering::Acquire)) {
            None => seen.2.note_if(true),
            Some((it, with)) => {
                assert_eq!(it.place, place(it.thread as usize), "the place of another thread");
                assert_eq!(with, if it.thread == 2 { 2 } else { 0 }, "a word of another thread");
                seen.0.note_if(it.thread == 1);
                seen.1.note_if(it.thread == 2);
            }
        }
        holders.join().unwrap();
    });
    assert!(first.happened() && second.happened() && nobody.happened());
}
