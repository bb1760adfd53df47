//! The state of a flow that its clones share.

#[allow(dead_code)] // not every model uses all of it
#[path = "../src/on/event/begun.rs"]
mod begun;

use std::sync::Arc;

use super::{Seen, explore};
use begun::Begun;
use loom::thread;

const EPOCH: u32 = 4;

/// An event of the flow at the time `now`. Returns whether it begins the flow, and the time that it must
/// exceed if it does not.
fn event(flow: &Begun, now: u64) -> (bool, u64) {
    if flow.time_in(EPOCH).is_none() && flow.begin(EPOCH, now) {
        return (true, 0);
    }
    (false, flow.time_in(EPOCH).expect("the flow has begun"))
}

// two threads use two clones of a flow     one of them begins it
//
// Fails when `Shared::begin` loads and stores the epoch, and when its swap is Relaxed.
#[test]
fn one_of_two_clones_begins_the_flow_and_the_other_sees_its_time() {
    let [first, second] = [Seen::default(), Seen::default()];
    let seen = [first.clone(), second.clone()];
    explore(move || {
        let flow = Begun::new(0);
        let clone = flow.clone();
        let other = thread::spawn(move || event(&clone, 7));
        let (begins, after) = event(&flow, 5);
        let (other_begins, other_after) = other.join().unwrap();
        assert!(begins != other_begins);
        assert!(begins || after >= 7);
        assert!(other_begins || other_after >= 5);
        seen[0].note_if(begins);
        seen[1].note_if(other_begins);
    });
    assert!(first.happened() && second.happened());
}

// one thread begins the flow in place     \
// another clones it, and uses the clone    +--> one of them begins it
//
// Fails when `clone` reads `here` and stores the flag, and when its store of the flag is Relaxed.
#[test]
fn a_flow_that_is_cloned_while_it_begins_begins_once() {
    let [in_place, in_clone] = [Seen::default(), Seen::default()];
    let seen = [in_place.clone(), in_clone.clone()];
    explore(move || {
        let flow = Arc::new(Begun::new(0));
        let other = {
            let flow = Arc::clone(&flow);
            thread::spawn(move || event(&flow.as_ref().clone(), 7).0)
        };
        let alone = flow.known_in(EPOCH).is_none() && flow.begin_alone(EPOCH, 2);
        let begins = alone || event(&flow, 5).0;
        let other_begins = other.join().unwrap();
        assert!(begins != other_begins);
        seen[0].note_if(alone);
        seen[1].note_if(other_begins);
    });
    assert!(in_place.happened() && in_clone.happened());
}

// two threads clone the flow at the same moment: both clones share one state
//
// Fails when `share` stores the pointer.
#[test]
fn two_first_clones_share_one_state() {
    explore(|| {
        let flow = Arc::new(Begun::new(0));
        let other = {
            let flow = Arc::clone(&flow);
            thread::spawn(move || flow.as_ref().clone())
        };
        let own = flow.as_ref().clone();
        let other = other.join().unwrap();
        assert!(own.begin(EPOCH, 5));
        assert_eq!((other.time_in(EPOCH), flow.time_in(EPOCH)), (Some(5), Some(5)));
        assert!(!other.begin(EPOCH, 6));
    });
}
