//! The counts of allocations: slots that one thread after the other owns.

#[allow(dead_code)] // the differences of counts, which no model needs
#[path = "../src/on/base/heap/slots.rs"]
mod slots;

use std::sync::Arc;

use super::{Seen, explore};
use loom::thread;
use slots::{Counts, Slots};

const ONE: Counts = Counts { live: 10, allocations: 1, frees: 0 };

/// Counts one allocation as a thread does that lives only for it. Returns whether it had a slot.
fn count(slots: &Slots) -> bool {
    let slot = slots.claim();
    match slot {
        Some(slot) => {
            slot.add(ONE);
            slots.release(slot);
        }
        None => slots.add_shared(ONE),
    }
    slot.is_some()
}

// first:  claim, add, release | add to the shared slot
// second: claim, add, release | add to the shared slot       one slot for both
//
// Fails when `release` is Relaxed, and when the claim in `claim` is Relaxed: the second owner loads the
// counts from before the first, and its store undoes them.
#[test]
fn no_count_is_lost_when_a_slot_changes_its_owner() {
    let (handed_over, shared) = (Seen::default(), Seen::default());
    let seen = (handed_over.clone(), shared.clone());
    explore(move || {
        let slots = Arc::new(Slots::new());
        let second = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || count(&slots))
        };
        let first = count(&slots);
        let second = second.join().expect("no panic");
        assert_eq!(slots.sum(), Counts { live: 20, allocations: 2, frees: 0 });
        seen.0.note_if(first && second);
        seen.1.note_if(first != second);
    });
    assert!(handed_over.happened() && shared.happened());
}

// first:  add to the shared slot
// second: add to the shared slot
//
// Fails when `add_shared` loads and stores.
#[test]
fn no_count_is_lost_of_threads_that_share_a_slot() {
    explore(|| {
        let slots = Arc::new(Slots::new());
        let second = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || slots.add_shared(ONE))
        };
        slots.add_shared(ONE);
        second.join().expect("no panic");
        assert_eq!(slots.sum(), Counts { live: 20, allocations: 2, frees: 0 });
    });
}
