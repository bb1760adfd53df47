//! The memory of rings: who gives it back, and who keeps it.

#![allow(unsafe_code)] // mincore

use std::sync::Barrier;
use std::time::Duration;

use hairline::{Overflow, trace_scope};

use crate::common::{builder, handle, set_timer, work};

/// The bytes of memory in the regions that this process has mapped, with a name or without. Pages that were
/// reserved and never touched count too.
fn bytes_of_regions() -> u64 {
    const PAGE: usize = 4096;
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
    let of_regions =
        maps.lines().filter(|line| line.contains("/dev/shm/hairline-") || line.contains("/memfd:hairline"));
    let pages = of_regions.map(|line| {
        let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let address = |hex| usize::from_str_radix(hex, 16).expect("an address");
        let (from, len) = (address(from), address(to) - address(from));
        let mut present = vec![0_u8; len / PAGE];
        let start = std::ptr::without_provenance_mut(from);
        // SAFETY: nothing is read or changed at the range, and there is a byte for each of its pages.
        let error = unsafe { libc::mincore(start, len, present.as_mut_ptr()) };
        assert_eq!(error, 0, "{}", std::io::Error::last_os_error());
        present.iter().filter(|page| **page & 1 != 0).count()
    });
    (pages.sum::<usize>() * PAGE) as u64
}

extern "C" fn pass_by(_: libc::c_int) {}

/// Starts a session with a large ring while a timer interrupts the thread again and again.
pub(crate) fn start_under_a_timer(output: &str) {
    handle(libc::SIGALRM, pass_by);
    set_timer(100);
    let session = builder(output).buffer_size(1 << 30).start().expect("a session");
    work(10);
    let summary = session.stop().expect("no error");
    println!("{} {}", summary.records, summary.lost.total());
}

/// Sessions one after the other, each with a thread that then does nothing. Prints the bytes of the
/// last session's region before it ends, and those of all afterwards.
pub(crate) fn sessions_with_idle_threads() {
    let mut of_one = 0;
    let idle = std::sync::Arc::new(Barrier::new(21));
    for n in 0..20 {
        let all = bytes_of_regions();
        let session = builder(&format!("{n}.fxt")).buffer_size(16 << 20).start().expect("a session");
        let has_recorded = std::sync::Arc::new(Barrier::new(2));
        let (told, idle) = (has_recorded.clone(), idle.clone());
        std::thread::spawn(move || {
            let open = hairline::scope!("moments", "open to the end");
            work(10);
            told.wait();
            idle.wait();
            drop(open);
            work(10);
        });
        has_recorded.wait();
        of_one = bytes_of_regions() - all;
        session.stop().expect("no error");
    }
    println!("{of_one} {}", bytes_of_regions());
    idle.wait();
    std::thread::sleep(Duration::from_millis(50)); // they end what they began
}

/// Scopes that are forgotten, on a thread of its own, beside one that goes on.
pub(crate) fn forget_scopes(output: &str) {
    let session = builder(output).overflow(Overflow::Drop).buffer_size(1 << 20).start().expect("a session");
    let forgetful = std::thread::spawn(|| {
        for n in 0..200_000 {
            std::mem::forget(hairline::scope!("moments", "forgotten", n));
        }
        std::thread::park_timeout(Duration::from_millis(500));
    });
    std::thread::sleep(Duration::from_millis(300));
    work(100);
    forgetful.join().expect("joined");
    let summary = session.stop().expect("no error");
    println!("{} {}", summary.lost.buffer_full, summary.notes.join("; "));
}

/// Scopes that are forgotten on a thread which then does nothing. Others find the ring full. Prints what was
/// lost, the scopes that were forgotten, and the notes.
pub(crate) fn forget_beside_others(output: &str) {
    /// What is left of the ring are some chunks: fewer than there are threads.
    const THREADS: usize = 24;
    let session = builder(output).overflow(Overflow::Drop).buffer_size(1 << 20).start().expect("a session");
    let is_full = std::sync::Arc::new(Barrier::new(2));
    let told = is_full.clone();
    let forgetful = std::thread::spawn(move || {
        let mut forgotten = 0_u32;
        // 16 bytes in FXT: 3/4 of the ring. This thread never meets the full ring.
        while forgotten < (1 << 20) / 16 / 4 * 3 {
            let scope = hairline::scope!("moments", "forgotten");
            assert!(scope.is_recorded(), "{forgotten} scopes fit");
            std::mem::forget(scope);
            forgotten += 1;
            if forgotten.is_multiple_of(64) {
                std::thread::sleep(Duration::from_millis(1)); // the drain thread comes after
            }
        }
        told.wait();
        told.wait();
        forgotten
    });
    is_full.wait();
    let all_have_begun = Barrier::new(THREADS);
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                trace_scope!("moments", "beside");
                all_have_begun.wait();
                (0..20).for_each(|_| work(100));
            });
        }
    });
    is_full.wait();
    let forgotten = forgetful.join().expect("joined");
    let summary = session.stop().expect("no error");
    println!("{} {forgotten} {}", summary.lost.buffer_full, summary.notes.join("; "));
}
