//! Threads that claim a chunk at the same time.

use super::*;

// thread 1: claim  --+
// thread 2: claim  --+--> [free][free][free][free]
// thread 3: claim  --+
#[test]
fn three_claimers_get_three_chunks() {
    explore_three_threads(|| {
        let region = ring();
        let others: Vec<_> = (1..=2)
            .map(|sequence| {
                let region = Arc::clone(&region);
                thread::spawn(move || claim(&region, sequence, 0, b"").unwrap())
            })
            .collect();
        let mine = claim(&region, 3, 0, b"").unwrap();
        let others: Vec<_> = others.into_iter().map(|t| t.join().unwrap()).collect();
        assert_ne!(mine.number(), others[0].number());
        assert_ne!(mine.number(), others[1].number());
        assert_ne!(others[0].number(), others[1].number());
        assert_eq!(region.free_chunks(), 1);
    });
}

// thread 1: claim  --+
// thread 2: claim  --+--> [held][held][held][free]
#[test]
fn of_two_claimers_of_the_only_free_chunk_exactly_one_loses() {
    let (first_won, second_won) = (Seen::default(), Seen::default());
    let (first, second) = (first_won.clone(), second_won.clone());
    explore(move || {
        let (region, _held) = ring_with_free(1);
        let other = {
            let region = Arc::clone(&region);
            thread::spawn(move || claim(&region, 1, 0, b""))
        };
        let mine = claim(&region, 2, 0, b"");
        let others = other.join().unwrap();
        assert!(mine.is_some() ^ others.is_some());
        assert_eq!(mine.as_ref().or(others.as_ref()).unwrap().number(), 3);
        assert_eq!(region.free_chunks(), 0);
        first.note_if(mine.is_some());
        second.note_if(others.is_some());
    });
    assert!(first_won.happened() && second_won.happened());
}

// drain:    frees chunk 0     \
// thread 1: claims one         +--> one word of the bitmap
// thread 2: claims one        /
#[test]
fn no_chunk_is_lost_if_claims_and_a_free_change_one_word() {
    explore_three_threads(|| {
        let region = ring();
        write_chunk(&region, 1, 0, &[b"x"]);
        let claimers: Vec<_> = (2..=3)
            .map(|sequence| {
                let region = Arc::clone(&region);
                thread::spawn(move || claim(&region, sequence, 0, b"").unwrap())
            })
            .collect();
        let mut drain = Drain::new(Arc::clone(&region));
        drain.pass(&mut Sink::default()).unwrap();
        let held: Vec<_> = claimers.into_iter().map(|t| t.join().unwrap()).collect();
        assert_ne!(held[0].number(), held[1].number());
        assert_eq!(region.free_chunks(), 2);
    });
}

// drain:  frees chunk 0, counts it
// thread: looks for a free chunk, remembers that there is none
#[test]
fn a_thread_that_remembers_a_full_ring_learns_of_a_freed_chunk() {
    let (was_full, was_free) = (Seen::default(), Seen::default());
    let (full, free) = (was_full.clone(), was_free.clone());
    explore(move || {
        let (region, _held) = ring_with_free(1);
        write_chunk(&region, 1, 0, &[b"x"]);
        assert!(region.full_since().is_some());
        let thread = {
            let region = Arc::clone(&region);
            thread::spawn(move || region.full_since())
        };
        Drain::new(Arc::clone(&region)).pass(&mut Sink::default()).unwrap();
        let look = thread.join().unwrap();
        assert!(!look.is_some_and(|look| region.is_full_since(look)), "the chunk would never be found");
        full.note_if(look.is_some());
        free.note_if(look.is_none());
    });
    assert!(was_full.happened() && was_free.happened());
}
