//! The clock's parameters: words that one thread stores and every thread loads together.

#[path = "../src/on/base/clock/published.rs"]
mod published;

use std::sync::Arc;

use super::{Seen, explore};
use loom::thread;
use published::Words;

// writer: store 1 | store 2         one store into each slot
// reader: load | load
//
// Fails without the fence in `fill` (the reader gets a part of store 2 with version 0), without the fence in
// `load`, when `store` publishes with Relaxed, and when either read of the version in `load` is Relaxed (the
// second leads to the next try).
#[test]
fn a_load_gives_the_words_of_one_store_and_never_an_older_one_than_before() {
    let (old, new, overtaken) = (Seen::default(), Seen::default(), Seen::default());
    let seen = (old.clone(), new.clone(), overtaken.clone());
    explore(move || {
        let words = Arc::new(Words::new([0, 100, 200]));
        let writer = {
            let words = Arc::clone(&words);
            thread::spawn(move || {
                words.store([1, 101, 201]);
                words.store([2, 102, 202]);
            })
        };
        let mut last = 0;
        for _ in 0..2 {
            // Two stores cannot overtake all four tries.
            let [first, second, third] = words.load().expect("a try that no store was published in");
            assert_eq!((second, third), (first + 100, first + 200), "words of one store");
            assert!(first >= last);
            seen.2.note_if(first > last);
            last = first;
        }
        seen.0.note_if(last == 0);
        seen.1.note_if(last == 2);
        writer.join().unwrap();
        assert_eq!(words.load(), Some([2, 102, 202]));
    });
    assert!(old.happened() && new.happened() && overtaken.happened());
}
