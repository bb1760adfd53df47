//! A fork by a thread that found no chunk in a session that is over.

#![cfg(feature = "enable")]
#![allow(unsafe_code)] // fork and mmap

use std::sync::Barrier;

use hairline::{MemoryOutput, Overflow, Session, trace_instant};

/// Chunks of the ring: the fewest.
const CHUNKS: usize = 4;
const CHUNK: u32 = 4096;

/// Where this process has mapped a region's file.
fn region_in_memory() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
    let line = maps.lines().find(|line| line.contains("/dev/shm/hairline-")).expect("a region in a file");
    let (from, to) = line.split_whitespace().next().and_then(|range| range.split_once('-')).expect("a range");
    let number = |text| usize::from_str_radix(text, 16).expect("an address");
    (number(from), number(to) - number(from))
}

/// Forks. Whether all `len` bytes from `start` are `byte` in the child.
fn are_intact_in_child(start: *const u8, len: usize, byte: u8) -> bool {
    // SAFETY: the child reads memory that the caller has mapped, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        let are_intact = (0..len).all(|n| unsafe { start.add(n).read_volatile() } == byte);
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!are_intact)) };
    }
    let mut status = -1;
    // SAFETY: `status` is for the call to write.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    status == 0
}

#[test]
fn a_thread_that_found_no_chunk_forgets_the_region() {
    let memory = MemoryOutput::new();
    let session = Session::builder()
        .output_memory(&memory)
        .overflow(Overflow::Overwrite)
        .chunk_size(CHUNK)
        .buffer_size(CHUNKS as u64 * u64::from(CHUNK))
        .start()
        .expect("a session");
    let (start, len) = region_in_memory();
    let (all_have_recorded, is_over) = (Barrier::new(CHUNKS + 1), Barrier::new(CHUNKS + 1));
    std::thread::scope(|threads| {
        for _ in 0..CHUNKS {
            threads.spawn(|| {
                trace_instant!("t", "one of those with a chunk");
                all_have_recorded.wait();
                is_over.wait();
            });
        }
        all_have_recorded.wait();
        trace_instant!("t", "one without");
        is_over.wait();
    });
    session.stop().expect("no error");
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, where nothing is mapped.
    let own = unsafe {
        libc::mmap(
            std::ptr::without_provenance_mut(start),
            len,
            prot,
            flags | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    assert_eq!(own.addr(), start, "the region is gone");
    // SAFETY: the mapping of just now.
    unsafe { own.cast::<u8>().write_bytes(7, len) };
    assert!(are_intact_in_child(own.cast(), len, 7), "the child has its parent's memory");
}
