//! The open slices of a track, while they are few.

#[path = "../../src/on/event/track/few_slices.rs"]
mod few_slices;

use std::sync::Arc;

use super::explore;
use super::on::base::sync::{AtomicU64, Ordering};
use few_slices::{FewSlices, NONE};
use loom::thread;

const EPOCH: u32 = 4;

fn begun() -> FewSlices {
    let few = FewSlices::new();
    assert!(few.replace(few.get(), EPOCH, Some(NONE)));
    few
}

// one thread begins and ends a slice   \
// another does the same                 +--> both ends find a begin, and none is left
#[test]
fn each_end_finds_a_begin() {
    explore(|| {
        let few = Arc::new(begun());
        let work = |few: &FewSlices| {
            assert_eq!(few.push(EPOCH, true), Ok(()));
            assert_eq!(few.pop(EPOCH), Ok(true));
        };
        let other = {
            let few = Arc::clone(&few);
            thread::spawn(move || work(&few))
        };
        work(&few);
        other.join().unwrap();
        assert_eq!(few.pop(EPOCH), Ok(false));
    });
}

// one thread writes a begin and then pushes its bit; another pops the bit: it sees the begin.
//
// Fails when the compare-exchange of `update` is Relaxed.
#[test]
fn who_ends_a_slice_sees_its_begin() {
    explore(|| {
        let shared = Arc::new((begun(), AtomicU64::new(0)));
        let beginning = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(7, Ordering::Relaxed);
                shared.0.push(EPOCH, true).unwrap();
            })
        };
        if shared.0.pop(EPOCH) == Ok(true) {
            assert_eq!(shared.1.load(Ordering::Relaxed), 7);
        }
        beginning.join().unwrap();
    });
}

// one thread begins a slice of a session   \
// another begins the next session           +--> the next session has no slice of the one before
#[test]
fn a_late_begin_does_not_reach_the_next_session() {
    explore(|| {
        let few = Arc::new(begun());
        let late = {
            let few = Arc::clone(&few);
            thread::spawn(move || few.push(EPOCH, true).is_ok())
        };
        while !few.replace(few.get(), EPOCH + 2, Some(NONE)) {}
        late.join().unwrap();
        assert_eq!(few.pop(EPOCH + 2), Ok(false));
    });
}
