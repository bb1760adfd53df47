//! A place for one value.

#[path = "../src/on/base/spot.rs"]
mod spot;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Seen, explore};
use loom::thread;
use spot::Spot;

// one thread takes the value and puts another   \
// another does the same                          +--> each value is whole, and in one hand at a time
//
// Fails when the Release of `put` or the Acquire of `take_if` is Relaxed. The Acquire of `put` keeps loads
// before later stores of another thread; loom knows no load that reads a later store, so no model fails
// without it.
#[test]
fn a_value_is_taken_whole_and_once() {
    let (taken, missed) = (Seen::default(), Seen::default());
    let seen = (taken.clone(), missed.clone());
    explore(move || {
        let spot = Arc::new(Spot::new());
        assert!(spot.put([1; 4]));
        let use_it = |spot: &Spot, own: u64| {
            let value = spot.take_if(|_| true);
            if let Some([one, _, _, other]) = value {
                assert_eq!(one, other, "half of another value");
                assert!(spot.put([own; 4]), "nobody puts before it has taken");
            }
            value.map(|[one, ..]| one)
        };
        let other = {
            let spot = Arc::clone(&spot);
            thread::spawn(move || use_it(&spot, 2))
        };
        let mine = use_it(&spot, 3);
        let theirs = other.join().unwrap();
        assert!(mine.is_none() || mine != theirs, "one value in two hands");
        assert!(mine == Some(1) || theirs == Some(1), "the first one got it");
        seen.0.note_if(mine.is_some() && theirs.is_some());
        seen.1.note_if(mine.is_none() || theirs.is_none());
    });
    assert!(taken.happened() && missed.happened());
}

// A value that is not wanted stays, for a thread that wants it.
#[test]
fn a_value_that_is_not_wanted_stays() {
    explore(|| {
        let spot = Arc::new(Spot::new());
        assert!(spot.put([1; 4]));
        let other = {
            let spot = Arc::clone(&spot);
            thread::spawn(move || spot.take_if(|[value, ..]| *value != 1))
        };
        let mine = spot.take_if(|[value, ..]| *value == 1);
        assert_eq!(other.join().unwrap(), None);
        assert_eq!(mine.or_else(|| spot.take_if(|_| true)), Some([1; 4]));
    });
}

// one thread puts a value   \
// another looks at it        +--> a third one takes it whole
//
// Fails when the Release of `take_if` is Relaxed: the third thread then sees the second one's store alone.
#[test]
fn a_value_that_another_thread_left_is_taken_whole() {
    let after_look = Seen::default();
    let seen = after_look.clone();
    explore(move || {
        let spot = Arc::new(Spot::new());
        let looked = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let putting = {
            let spot = Arc::clone(&spot);
            thread::spawn(move || assert!(spot.put([1; 4])))
        };
        let looking = {
            let (spot, looked) = (Arc::clone(&spot), Arc::clone(&looked));
            thread::spawn(move || {
                let look = |_: &_| {
                    looked.store(true, Relaxed);
                    false
                };
                assert_eq!(spot.take_if(look), None);
            })
        };
        let mine = spot.take_if(|_| true);
        if let Some(value) = mine {
            assert_eq!(value, [1; 4], "a part of the value");
            seen.note_if(looked.load(Relaxed));
        }
        putting.join().unwrap();
        looking.join().unwrap();
    });
    assert!(after_look.happened());
}
