//! The window of a region that overwrites. The drawings show chunks with records of one byte.

#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hairline_shm::{ChunkInfo, Region, RegionConfig, Window, WriteChunk};

/// Four chunks.
fn ring() -> Arc<Region> {
    Region::create(&RegionConfig { buffer_size: 4 * 4096, overwrite: true, ..RegionConfig::small() }).unwrap()
}

fn claim(region: &Arc<Region>, sequence: u32, index: u32) -> Option<WriteChunk> {
    region.claim(ChunkInfo { sequence, index, ..ChunkInfo::default() }, b"c")
}

/// A chunk `[c][r][records]` that is still being written.
fn written(region: &Arc<Region>, sequence: u32, index: u32, records: &[u8]) -> WriteChunk {
    let mut chunk = claim(region, sequence, index).unwrap();
    assert!(chunk.append_recovery(b"r"));
    assert!(chunk.append(records, 1));
    chunk
}

/// `sequence:bytes` of each piece.
fn shown(window: &mut Window) -> Vec<String> {
    window.take().unwrap();
    window.pieces().map(|p| format!("{}:{}", p.info.sequence, p.bytes.escape_ascii())).collect()
}

// 1: [c r a] [c r b] [c r d...     the window has all of it
#[test]
fn the_first_chunk_has_its_recovery_and_the_next_ones_do_not() {
    let region = ring();
    let mut window = Window::new(region.clone());
    drop(written(&region, 1, 0, b"a"));
    drop(written(&region, 1, 1, b"b"));
    let mut last = written(&region, 1, 2, b"d");
    assert_eq!(shown(&mut window), ["1:cra", "1:b", "1:d"]);
    assert!(last.append(b"e", 1));
    assert_eq!(shown(&mut window), ["1:cra", "1:b", "1:de"]);
    assert_eq!(window.pieces().map(|p| p.records).sum::<u32>(), 4);
}

// 1: [c r 0] [c r 1] [c r 2] [c r 3]   then 4 over 0, 5 over 1, ...
#[test]
fn a_full_ring_overwrites_its_oldest_chunk() {
    let region = ring();
    let mut window = Window::new(region.clone());
    for n in 0..10 {
        drop(written(&region, 1, n, &[b'0' + n as u8]));
    }
    assert_eq!(shown(&mut window), ["1:cr6", "1:7", "1:8", "1:9"]);
}

// 1: [c r s...           its thread is writing it all the time
// 2:         [0] [1] [2]   then 3 over 0
#[test]
fn a_chunk_that_a_thread_is_writing_is_not_overwritten() {
    let region = ring();
    let mut window = Window::new(region.clone());
    let slow = written(&region, 1, 0, b"s");
    for n in 0..8 {
        drop(written(&region, 2, n, &[b'0' + n as u8]));
    }
    assert_eq!(shown(&mut window), ["1:crs", "2:cr5", "2:6", "2:7"]);
    drop(slow);
    drop(written(&region, 2, 8, b"8"));
    drop(written(&region, 2, 9, b"9"));
    assert_eq!(shown(&mut window), ["2:cr6", "2:7", "2:8", "2:9"]);
}

#[test]
fn a_claim_fails_if_threads_are_writing_all_chunks() {
    let region = ring();
    let held: Vec<_> = (1..=4).map(|sequence| written(&region, sequence, 0, b"x")).collect();
    assert!(claim(&region, 5, 0).is_none());
    drop(held);
    assert!(claim(&region, 5, 0).is_some());
}

// 1: [0]     [1]     2: [0] [1] .. [4]: the first chunk of 1 is overwritten before the second
#[test]
fn the_chunks_before_a_gap_are_left_out() {
    let region = ring();
    let mut window = Window::new(region.clone());
    let held = written(&region, 1, 0, b"0"); // will be younger in the ring than its successor's neighbours
    drop(written(&region, 1, 1, b"1"));
    drop(written(&region, 1, 2, b"2"));
    drop(written(&region, 2, 0, b"a"));
    drop(written(&region, 2, 1, b"b")); // over 1's chunk 1
    assert_eq!(shown(&mut window), ["1:cr2", "2:cra", "2:b"]);
    drop(held);
}

#[test]
fn a_recovery_is_written_before_all_records() {
    let region = ring();
    let mut chunk = claim(&region, 1, 0).unwrap();
    assert!(!chunk.append_recovery(&[0; 4096]));
    assert!(chunk.append_recovery(b""));
    assert!(chunk.append_recovery(b"r"));
    assert!(!chunk.append_recovery(b"r"));
    let mut full = claim(&region, 1, 1).unwrap();
    let room = full.capacity() as usize - 1;
    assert!(!full.append_recovery(&vec![0; room + 1]));
    assert!(full.append_recovery(&vec![0; room]));
    assert!(!full.append(b"x", 1));
}

/// Three threads record without a pause. Each record is a number of 8 bytes that grows by one.
#[test]
fn every_window_has_whole_runs_while_threads_overwrite() {
    const THREADS: u32 = 3;
    let config = RegionConfig { buffer_size: 512 * 4096, overwrite: true, ..RegionConfig::small() };
    let region = Region::create(&config).unwrap();
    let mut window = Window::new(region.clone());
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for sequence in 1..=THREADS {
            let (region, stop) = (&region, &stop);
            threads.spawn(move || {
                let (mut n, mut index) = (0_u64, 0);
                while !stop.load(Ordering::Relaxed) {
                    let info = ChunkInfo { sequence, index, ..ChunkInfo::default() };
                    let Some(mut chunk) = region.claim(info, b"") else { continue };
                    while chunk.append(&n.to_le_bytes(), 1) {
                        n += 1;
                    }
                    index += 1;
                }
            });
        }
        let (mut longest, mut windows) = (0, 0);
        while windows < 50 {
            window.take().unwrap();
            windows += u32::from(window.pieces().next().is_some());
            let mut last = (0, 0);
            for piece in window.pieces() {
                let sequence = piece.info.sequence;
                for record in piece.bytes.chunks_exact(8) {
                    let n = u64::from_le_bytes(record.try_into().unwrap());
                    assert!(last.0 != sequence || n == last.1 + 1, "{sequence}: {} {n}", last.1);
                    last = (sequence, n);
                }
                assert_eq!(piece.bytes.len() as u32, piece.records * 8);
            }
            longest = longest.max(window.pieces().map(|p| p.bytes.len()).sum());
        }
        stop.store(true, Ordering::Relaxed);
        assert!(longest > 4 * 4096, "{longest}");
    });
}
