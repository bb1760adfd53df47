//! A thread that waits for a chunk, and the drain, which frees one or ends all waits.

use super::*;

/// A ring without a free chunk, and the chunk that the drain can free.
fn full_ring() -> (Arc<Region>, Vec<WriteChunk>) {
    let (region, held) = ring_with_free(1);
    write_chunk(&region, 1, 0, &[b"r"]);
    (region, held)
}

// A missed wake-up would be a deadlock, because time does not pass here.
#[test]
fn a_waiting_thread_is_woken_when_the_drain_frees_a_chunk() {
    explore(|| {
        let (region, _held) = full_ring();
        let waiter = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                assert!(region.wait_for_chunk(Instant::now(), || ()));
                assert!(claim(&region, 2, 0, b"").is_some(), "no other thread claims it");
            })
        };
        let mut drain = Drain::new(region);
        assert_eq!(drain.pass(&mut Sink::default()).unwrap().freed, 1);
        waiter.join().unwrap();
    });
}

#[test]
fn a_waiting_thread_is_woken_at_the_end_of_all_waits() {
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
