//! Threads whose first event comes while they end.

#![allow(unsafe_code)] // pthread keys

use std::sync::atomic::{AtomicU64, Ordering};

use hairline::{trace_instant, trace_scope};

use crate::common::{builder, work};

/// The key whose destructor records.
static KEY: AtomicU64 = AtomicU64::new(0);
/// In which of its rounds the destructor records; there are four, after which nobody is told that the thread ends.
static ROUNDS: AtomicU64 = AtomicU64::new(0);

extern "C" fn record_in_destructor(round: *mut libc::c_void) {
    let round = round.addr() as u64;
    if round < ROUNDS.load(Ordering::Relaxed) {
        let key = libc::pthread_key_t::try_from(KEY.load(Ordering::Relaxed)).expect("a key");
        // SAFETY: a key that was made, and a value that is never followed.
        unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(round as usize + 1)) };
        return;
    }
    trace_scope!("moments", "the first event of a thread that ends", round);
    trace_instant!("moments", "the second");
}

extern "C" fn do_nothing(_: *mut libc::c_void) -> *mut libc::c_void {
    let key = libc::pthread_key_t::try_from(KEY.load(Ordering::Relaxed)).expect("a key");
    // SAFETY: as above.
    unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(1)) };
    std::ptr::null_mut()
}

/// Threads of the C library whose first event comes from the destructor of a pthread key, in each of its rounds, while the ring is so
/// small that the chunks of idle threads are taken back.
pub(crate) fn end_of_threads(output: &str) {
    let session = builder(output).buffer_size(256 << 10).chunk_size(4096).start().expect("a session");
    let mut key = 0;
    // SAFETY: the destructor is a function of this program.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(record_in_destructor)) }, 0);
    KEY.store(u64::from(key), Ordering::Relaxed);
    let mut ended = 0;
    for round in 0..400 {
        ROUNDS.store(1 + round % 4, Ordering::Relaxed);
        let threads: Vec<libc::pthread_t> = (0..8)
            .map(|_| {
                let mut thread = 0;
                // SAFETY: the thread's function is of this program, and it is joined below.
                let made = unsafe {
                    libc::pthread_create(&raw mut thread, std::ptr::null(), do_nothing, std::ptr::null_mut())
                };
                assert_eq!(made, 0);
                thread
            })
            .collect();
        for thread in threads {
            // SAFETY: a thread that was made, joined once.
            unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
            ended += 1;
        }
        (0..20).for_each(|_| work(10));
    }
    let summary = session.stop().expect("no error");
    println!("{ended} {} {} {}", summary.records, summary.lost.thread_exit, summary.lost.total());
}
