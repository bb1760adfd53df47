//! Real threads: many chunk writers beside a drain, and chunks that move between threads.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hairline_shm::{Drain, Pass};

use crate::common::Sink;
use crate::framed::{ChunkWriter, read_back};
use crate::{claim, output_bytes, ring};

/// Drains until `done` is set, and then once more.
fn drain_until(drain: &mut Drain, done: &AtomicBool) -> Sink {
    let mut sink = Sink::default();
    loop {
        let last = done.load(Ordering::Acquire);
        if drain.pass(&mut sink).unwrap() == Pass::default() {
            thread::yield_now();
        }
        if last {
            return sink;
        }
    }
}

// w1: [..]|[..]|[..]...   \
// w2: [..]|[..]...         +--> five chunks, so a chunk writer often waits; the drain runs all the time
// w3, w4                  /
#[test]
fn four_writers_in_a_tiny_ring_lose_nothing_while_the_drain_runs() {
    const RECORDS: u32 = if cfg!(debug_assertions) { 4_000 } else { 20_000 };
    let (region, mut drain) = ring(5);
    let done = AtomicBool::new(false);
    let sink = thread::scope(|scope| {
        let drainer = scope.spawn(|| drain_until(&mut drain, &done));
        let writers: Vec<_> = (0..4_u16)
            .map(|w| {
                let region = &region;
                scope.spawn(move || {
                    let mut writer = ChunkWriter::new(region);
                    for n in 0..RECORDS {
                        let len = (n % 97) as u16 * (w + 1);
                        writer.write(n, len);
                    }
                    writer.finish();
                })
            })
            .collect();
        writers.into_iter().for_each(|w| w.join().unwrap());
        done.store(true, Ordering::Release);
        drainer.join().unwrap()
    });
    let records = read_back(&sink.bytes);
    assert_eq!(records, (1..=4).map(|s| (s, RECORDS)).collect());
    assert_eq!(region.free_chunks(), 5);
    assert_eq!(output_bytes(&region), sink.bytes.len() as u64);
}

// 300 threads at the same time, each with a chunk; the bitmap of the ring has five words
#[test]
fn three_hundred_threads_each_have_a_sequence_of_their_own() {
    const THREADS: u32 = 300;
    let (region, mut drain) = ring(THREADS);
    let done = AtomicBool::new(false);
    let all_alive = Barrier::new(THREADS as usize);
    let sink = thread::scope(|scope| {
        let drainer = scope.spawn(|| drain_until(&mut drain, &done));
        let writers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut writer = ChunkWriter::new(&region);
                    writer.write(0, 10);
                    all_alive.wait();
                    (1..4).for_each(|n| writer.write(n, 10));
                    writer.finish();
                })
            })
            .collect();
        writers.into_iter().for_each(|w| w.join().unwrap());
        done.store(true, Ordering::Release);
        drainer.join().unwrap()
    });
    assert_eq!(read_back(&sink.bytes), (1..=THREADS).map(|s| (s, 4)).collect());
    assert_eq!(region.free_chunks(), THREADS);
    let counted: BTreeMap<u32, u64> = drain.records_by_sequence().iter().map(|(&s, &n)| (s, n)).collect();
    assert_eq!(counted, (1..=THREADS).map(|s| (s, 4)).collect());
}

// t1: claims, appends  -- moves the chunk -->  t2: appends, gives it back
#[test]
fn a_chunk_can_move_to_another_thread() {
    let (region, mut drain) = ring(4);
    let mut chunk = claim(&region, 1, 0, b"").unwrap();
    assert!(chunk.append(b"a", 1));
    thread::spawn(move || assert!(chunk.append(b"b", 1))).join().unwrap();
    let mut sink = Sink::default();
    assert_eq!(drain.pass(&mut sink).unwrap().freed, 1);
    assert_eq!(sink.bytes, b"ab");
}

#[test]
fn a_chunk_outlives_every_other_handle_on_its_region() {
    let (region, drain) = ring(4);
    let mut chunk = claim(&region, 1, 0, b"").unwrap();
    drop((region, drain));
    assert!(chunk.append(&[7; 1000], 1));
}
