//! Threads whose first event comes while they end.

#![allow(unsafe_code)] // pthread keys, signals

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hairline::{trace_counter, trace_instant, trace_scope};

use crate::common::{builder, handle, work};

/// The key whose destructor records.
static KEY: AtomicU64 = AtomicU64::new(0);
/// In which of its rounds the destructor records; there are four, after which nobody is told that the thread
/// ends.
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

/// Threads of the C library whose first event comes from the destructor of a pthread key, in each of its
/// rounds, while the ring is so small that the chunks of idle threads are taken back.
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

/// Whether the handler records, on the thread that ends.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Scopes of the handler that were recorded, and those that were not.
static RECORDED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

extern "C" fn record_in_handler(_: libc::c_int) {
    if IS_ENDING.load(Ordering::Relaxed) {
        let scope = hairline::scope!("moments", "in a handler at the thread's end");
        let count = if scope.is_recorded() { &RECORDED } else { &REFUSED };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// How a thread ends.
#[derive(Clone, Copy)]
#[repr(usize)]
enum End {
    /// The signal comes in this round of the destructors of its keys. Nothing was recorded on it before, and
    /// its thread-local memory is gone.
    InRound1 = 1,
    InRound2,
    InRound3,
    InRound4,
    /// Signals come from another thread, from the last destructor on until the thread is no more. Nothing was
    /// recorded on it before.
    AfterDestructors,
    /// The same, from the end of its function on. It has recorded.
    Recorded,
}

const ENDS: [End; 6] =
    [End::InRound1, End::InRound2, End::InRound3, End::InRound4, End::AfterDestructors, End::Recorded];

/// Rounds of destructors in the C library: `PTHREAD_DESTRUCTOR_ITERATIONS`.
const LAST_ROUND: usize = 4;

fn set_round(round: usize) {
    let key = libc::pthread_key_t::try_from(KEY.load(Ordering::Relaxed)).expect("a key");
    // SAFETY: a key that was made, and a value that is never followed.
    unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(round)) };
}

/// The value is ten times the end, and the round.
extern "C" fn signal_in_destructor(value: *mut libc::c_void) {
    let (end, round) = (value.addr() / 10, value.addr() % 10);
    if round == end {
        IS_ENDING.store(true, Ordering::Relaxed);
        // SAFETY: this very thread, on which the handler runs before the call returns.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1) };
        IS_ENDING.store(false, Ordering::Relaxed);
    } else if round < LAST_ROUND {
        set_round(end * 10 + round + 1);
    } else if end == End::AfterDestructors as usize {
        IS_ENDING.store(true, Ordering::Relaxed);
    }
}

extern "C" fn end_by_signals(end: *mut libc::c_void) -> *mut libc::c_void {
    if end.addr() == End::Recorded as usize {
        work(1);
        IS_ENDING.store(true, Ordering::Relaxed);
    }
    set_round(end.addr() * 10 + 1);
    std::ptr::null_mut()
}

/// Threads of the C library to which a signal comes while they end, whose handler records. They do not
/// allocate, so that the handler's first event, which does, interrupts no allocator.
pub(crate) fn signals_at_the_end(output: &str) {
    const ROUNDS_OF_ALL: u64 = 200;
    let session = builder(output).buffer_size(256 << 10).chunk_size(4096).start().expect("a session");
    handle(libc::SIGUSR1, record_in_handler);
    // The handler's callsite has recorded before.
    IS_ENDING.store(true, Ordering::Relaxed);
    record_in_handler(0);
    IS_ENDING.store(false, Ordering::Relaxed);
    let mut key = 0;
    // SAFETY: the destructor is a function of this program.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(signal_in_destructor)) }, 0);
    KEY.store(u64::from(key), Ordering::Relaxed);
    let mut after = 0;
    for _ in 0..ROUNDS_OF_ALL {
        for end in ENDS {
            let before = RECORDED.load(Ordering::Relaxed) + REFUSED.load(Ordering::Relaxed);
            let mut thread = 0;
            let value = std::ptr::without_provenance_mut(end as usize);
            // SAFETY: the thread's function is of this program, and the thread is joined below, once. Until
            // then it may be sent signals, also when it is over.
            unsafe {
                let made = libc::pthread_create(&raw mut thread, std::ptr::null(), end_by_signals, value);
                assert_eq!(made, 0);
                while libc::pthread_tryjoin_np(thread, std::ptr::null_mut()) == libc::EBUSY {
                    if matches!(end, End::AfterDestructors | End::Recorded) {
                        (0..8).for_each(|_| _ = libc::pthread_kill(thread, libc::SIGUSR1));
                    }
                    // Under signals without a pause the thread would come no further.
                    (0..200).for_each(|_| std::hint::spin_loop());
                }
            }
            IS_ENDING.store(false, Ordering::Relaxed);
            let handled = RECORDED.load(Ordering::Relaxed) + REFUSED.load(Ordering::Relaxed) - before;
            after += if matches!(end, End::AfterDestructors) { handled } else { 0 };
        }
        (0..20).for_each(|_| work(10)); // and the chunks of idle threads are taken back
    }
    let summary = session.stop().expect("no error");
    let (recorded, refused) = (RECORDED.load(Ordering::Relaxed), REFUSED.load(Ordering::Relaxed));
    println!(
        "{recorded} {refused} {} {} {after}",
        summary.lost.thread_exit + summary.lost.reentrant,
        summary.lost.total()
    );
}

/// `PTHREAD_CANCEL_DISABLE` of glibc and musl.
const DISABLE: libc::c_int = 1;

// SAFETY: the declaration is that of POSIX.
unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}

/// Events of a thread whose cancel is pending. Returns 1: a thread that was unwound returns -1 instead.
extern "C" fn record_cancelled(_: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: this very thread. A deferred cancel acts at the next cancellation point.
    unsafe { libc::pthread_cancel(libc::pthread_self()) };
    {
        trace_scope!("moments", "of a cancelled thread");
        trace_instant!("moments", "a second callsite");
        trace_counter!("moments", "a third one", 1);
    }
    // SAFETY: a null pointer asks for no state. This is no cancellation point, and there is none afterwards.
    unsafe { pthread_setcancelstate(DISABLE, std::ptr::null_mut()) };
    std::ptr::without_provenance_mut(1)
}

/// Threads that were cancelled before their first event. Without an output, the first of these events is the
/// first one of the process, and starts the session of the environment.
pub(crate) fn cancelled_threads(output: &str) {
    let session = (!output.is_empty()).then(|| builder(output).start().expect("a session"));
    let mut unwound = 0;
    for _ in 0..20 {
        let (mut thread, mut result) = (0, std::ptr::null_mut());
        // SAFETY: the thread's function is of this program, and the thread is joined here.
        unsafe {
            let start = libc::pthread_create(
                &raw mut thread,
                std::ptr::null(),
                record_cancelled,
                std::ptr::null_mut(),
            );
            assert_eq!(start, 0);
            assert_eq!(libc::pthread_join(thread, &raw mut result), 0);
        }
        unwound += u64::from(result.addr() != 1);
    }
    let lost = session.map_or(0, |session| session.stop().expect("no error").lost.total());
    println!("{unwound} {lost}");
}
