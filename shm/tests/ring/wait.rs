//! Waits for a chunk, and waits that are refused.

use std::time::{Duration, Instant};

use crate::common::Sink;
use crate::{claim, ring};

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(20)
}

#[test]
fn after_a_wait_has_timed_out_no_thread_waits_until_a_chunk_is_freed() {
    let (region, mut drain) = ring(4);
    let mut held: Vec<_> = (0..4).map(|n| claim(&region, n + 1, 0, b"").unwrap()).collect();
    let began = Instant::now();
    assert!(region.may_wait() && !region.wait_for_chunk(soon(), || ()));
    assert!(began.elapsed() >= Duration::from_millis(20) && !region.may_wait());
    let began = Instant::now();
    assert!(!region.wait_for_chunk(Instant::now() + Duration::from_secs(60), || ()));
    assert!(began.elapsed() < Duration::from_secs(30), "it did not wait");
    held.pop();
    drain.pass(&mut Sink::default()).unwrap();
    assert!(region.may_wait() && region.wait_for_chunk(soon(), || ()));
}

#[test]
fn a_freed_chunk_wakes_the_threads_that_wait() {
    let (region, mut drain) = ring(4);
    let mut held: Vec<_> = (0..4).map(|n| claim(&region, n + 1, 0, b"").unwrap()).collect();
    std::thread::scope(|threads| {
        let waiter = threads.spawn(|| region.wait_for_chunk(Instant::now() + Duration::from_secs(60), || ()));
        std::thread::sleep(Duration::from_millis(5));
        held.pop();
        drain.pass(&mut Sink::default()).unwrap();
        assert!(waiter.join().unwrap());
        assert!(claim(&region, 9, 0, b"").is_some());
    });
}

#[test]
fn no_thread_waits_after_the_end_of_waits() {
    let (region, mut drain) = ring(4);
    let held: Vec<_> = (0..4).map(|n| claim(&region, n + 1, 0, b"").unwrap()).collect();
    std::thread::scope(|threads| {
        let waiter = threads.spawn(|| region.wait_for_chunk(Instant::now() + Duration::from_secs(60), || ()));
        std::thread::sleep(Duration::from_millis(5));
        region.end_waits();
        assert!(!waiter.join().unwrap());
    });
    drop(held);
    drain.pass(&mut Sink::default()).unwrap();
    assert!(!region.may_wait(), "for good");
}
