//! A thread that waits for a chunk, and whoever frees one or ends all waits.

use super::*;

/// A ring without a free chunk, and the chunk that the drain may free.
fn full_ring() -> (Arc<Region>, Vec<WriteChunk>) {
    let (region, held) = ring_with_free(1);
    write_chunk(&region, 1, 0, &[b"r"]);
    (region, held)
}

// A wake-up that is missed would be a deadlock: time does not pass here.
#[test]
fn who_waits_for_a_chunk_is_woken_when_the_drain_frees_one() {
    explore(|| {
        let (region, _held) = full_ring();
        let waiter = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                assert!(region.wait_for_chunk(Instant::now(), || ()));
                assert!(claim(&region, 2, 0, b"").is_some(), "nobody else wants it");
            })
        };
        let mut drain = Drain::new(region);
        assert_eq!(drain.pass(&mut Sink::default()).unwrap().freed, 1);
        waiter.join().unwrap();
    });
}

#[test]
fn who_waits_for_a_chunk_is_let_go_when_nothing_is_drained_any_more() {
    explore(|| {
        let (region, _held) = full_ring();
        let waiter = {
            let region = Arc::clone(&region);
            thread::spawn(move || region.wait_for_chunk(Instant::now(), || ()))
        };
        region.end_waits();
        assert!(!waiter.join().unwrap());
        assert!(!region.may_wait());
    });
}
