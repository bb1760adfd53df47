//! A callsite's constants, its word, and the list that it is in.

#[path = "../src/on/callsite/link.rs"]
mod link;
#[path = "../src/on/callsite/word.rs"]
mod word;

use std::sync::Arc;

use super::on::base::sync::{AtomicU64, Ordering};
use super::{Seen, explore};
use link::Link;
use loom::thread;
use word::{Word, fence_constants};

const UNREGISTERED: u32 = 1;
const EPOCH: u32 = 4;

/// As `Callsite`: the constants are stored and loaded with Relaxed.
struct Callsite {
    word: Word,
    constants: [AtomicU64; 2],
    next: Link<Callsite>,
}

impl Callsite {
    fn new() -> Self {
        let constants = [AtomicU64::new(0), AtomicU64::new(0)];
        Self { word: Word::new(UNREGISTERED), constants, next: Link::end() }
    }

    fn prepare(&self) {
        self.constants.iter().for_each(|constant| constant.store(7, Ordering::Relaxed));
    }

    fn is_prepared(&self) -> bool {
        self.constants.iter().all(|constant| constant.load(Ordering::Relaxed) == 7)
    }
}

// one thread registers the callsite: constants, then the word    \
// another is on the hot path: the word, the fence, the constants  +--> an epoch: the constants are there
//
// Fails without the fence, and when `Word::set` is Relaxed.
#[test]
fn an_event_that_finds_an_epoch_sees_the_callsites_constants() {
    let (on, off) = (Seen::default(), Seen::default());
    let seen = (on.clone(), off.clone());
    explore(move || {
        let callsite = Arc::new(Callsite::new());
        let registering = {
            let callsite = Arc::clone(&callsite);
            thread::spawn(move || {
                callsite.prepare();
                callsite.word.set(EPOCH);
            })
        };
        let is_on = callsite.word.get() == EPOCH;
        if is_on {
            fence_constants();
            assert!(callsite.is_prepared());
        }
        seen.0.note_if(is_on);
        seen.1.note_if(!is_on);
        registering.join().unwrap();
    });
    assert!(on.happened() && off.happened());
}

// two threads register one callsite each, under the registry's lock  \
// a third walks the list, without it                                  +--> each that it finds is whole
//
// Fails when `Link::publish` stores with Relaxed, and when `Link::get` loads with Relaxed.
#[test]
fn a_walk_of_the_list_sees_each_callsite_whole_and_all_behind_it() {
    let counts = [Seen::default(), Seen::default(), Seen::default()];
    let seen = counts.clone();
    explore(move || {
        // For the rest of the model's run, as a callsite's static.
        let callsites: &'static [Callsite; 2] = Box::leak(Box::new([Callsite::new(), Callsite::new()]));
        let head = Arc::new(Link::<Callsite>::end());
        let registry = Arc::new(loom::sync::Mutex::new(()));
        let threads: Vec<_> = callsites
            .iter()
            .map(|callsite| {
                let (head, registry) = (Arc::clone(&head), Arc::clone(&registry));
                thread::spawn(move || {
                    let _registry = registry.lock().unwrap();
                    callsite.prepare();
                    head.publish(std::ptr::from_ref(callsite).cast_mut(), &callsite.next);
                })
            })
            .collect();
        let walk = || {
            let mut found = 0;
            let mut link = head.get();
            while let Some(callsite) = callsites.iter().find(|c| std::ptr::eq(*c, link)) {
                assert!(callsite.is_prepared());
                found += 1;
                link = callsite.next.get();
            }
            assert!(link.is_null());
            found
        };
        seen[walk()].note_if(true);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(walk(), 2);
    });
    assert!(counts.iter().all(Seen::happened));
}
