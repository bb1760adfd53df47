//! The open slices of a track, while they are few.

#[path = "../src/on/event/track/few_slices.rs"]
mod few_slices;

use std::sync::Arc;

use super::{Seen, explore};
use few_slices::{FewSlices, NONE};
use loom::thread;

const EPOCH: u32 = 4;

fn begun() -> FewSlices {
    let few = FewSlices::new();
    few.begin(few.get(), EPOCH);
    assert_eq!((few.epoch(), few.get().bits()), (EPOCH, NONE));
    few
}

// a slice is open that is in the trace
// one thread begins a slice that is not   \
// another ends a slice                     +--> one is left, the one that was not ended
//
// Fails when `update` stores the new word whatever word is there.
#[test]
fn no_begin_and_no_end_is_overwritten() {
    explore(|| {
        let few = Arc::new(begun());
        few.push(EPOCH, Some(1)).unwrap();
        let ending = {
            let few = Arc::clone(&few);
            thread::spawn(move || few.pop(EPOCH).unwrap())
        };
        few.push(EPOCH, None).unwrap();
        let ended = ending.join().unwrap();
        assert_eq!((few.get().len(), few.pop(EPOCH)), (1, Ok(!ended)));
    });
}

// one thread begins a slice at 7; another ends it: the end comes after 7.
//
// Fails when the compare-exchange of `update` is Relaxed, and when `push` sets the time after the bit.
#[test]
fn who_ends_a_slice_knows_when_it_began() {
    let ended = Seen::default();
    let seen = ended.clone();
    explore(move || {
        let few = Arc::new(begun());
        let beginning = {
            let few = Arc::clone(&few);
            thread::spawn(move || few.push(EPOCH, Some(7)).unwrap())
        };
        let has_ended = few.pop(EPOCH) == Ok(true);
        if has_ended {
            assert_eq!(few.last_time(EPOCH), 7);
        }
        seen.note_if(has_ended);
        beginning.join().unwrap();
    });
    assert!(ended.happened());
}

// one thread begins a slice of a session   \
// another begins the next session           +--> the next session has no slice of the one before
//
// Fails when `update` does not compare the word.
#[test]
fn a_late_begin_does_not_reach_the_next_session() {
    let (early, late) = (Seen::default(), Seen::default());
    let seen = (early.clone(), late.clone());
    explore(move || {
        let few = Arc::new(begun());
        let other = {
            let few = Arc::clone(&few);
            thread::spawn(move || few.push(EPOCH, Some(7)).is_ok())
        };
        while few.epoch() == EPOCH {
            few.begin(few.get(), EPOCH + 2);
        }
        let was_in_time = other.join().unwrap();
        seen.0.note_if(was_in_time);
        seen.1.note_if(!was_in_time);
        assert_eq!(few.pop(EPOCH + 2), Ok(false));
    });
    assert!(early.happened() && late.happened());
}

// one thread begins a session, an event of which has the time 7; another sees the session: it sees no time of
// the session before.
//
// Fails when `begin` sets the time to 0 after the word.
#[test]
fn a_new_session_has_no_time_of_the_one_before() {
    explore(|| {
        let few = Arc::new(begun());
        few.set_last_time(EPOCH, 9);
        let beginning = {
            let few = Arc::clone(&few);
            thread::spawn(move || {
                few.begin(few.get(), EPOCH + 2);
                few.set_last_time(EPOCH + 2, 7);
            })
        };
        assert!([0, 7].contains(&few.last_time(EPOCH + 2)));
        beginning.join().unwrap();
        assert_eq!(few.last_time(EPOCH + 2), 7);
    });
}
