//! First events in signal handlers: of the thread, of the callsite, on a small stack.

#![allow(unsafe_code)] // signals, threads and memory of the C library

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hairline::{Overflow, SessionBuilder, trace_counter, trace_instant, trace_scope};

use crate::common::{builder, handle};

/// The number of the thread whose handler records.
static ROUND: AtomicU64 = AtomicU64::new(0);
/// Whether the handler of this round has run.
static HAS_RECORDED: AtomicBool = AtomicBool::new(false);
/// Whether the thread of this round is in its loop.
static IS_ALLOCATING: AtomicBool = AtomicBool::new(false);

/// Events of callsites that have never recorded, a few new ones in each of the first rounds.
macro_rules! new_callsites {
    ($round:expr, $($n:literal)*) => {
        match $round {
            $($n => {
                trace_scope!("moments", concat!("new ", $n), round = $round, text = "a text");
                trace_instant!("moments,several", concat!("instant ", $n));
                trace_counter!("moments", concat!("counter ", $n), $n);
            })*
            _ => {}
        }
    };
}

extern "C" fn record_first(_: libc::c_int) {
    let round = ROUND.load(Ordering::Relaxed);
    trace_scope!("moments", "the first of a thread", round);
    new_callsites!(round, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29);
    HAS_RECORDED.store(true, Ordering::Release);
}

/// Takes and gives back memory of sizes for which the C library takes a lock.
extern "C" fn allocate(_: *mut c_void) -> *mut c_void {
    let mut held = [std::ptr::null_mut(); 8];
    let mut n = 0_usize;
    while !HAS_RECORDED.load(Ordering::Acquire) {
        // SAFETY: memory of `malloc`, or null.
        unsafe {
            libc::free(held[n % held.len()]);
            held[n % held.len()] = libc::malloc(1500 + n * 977 % 60_000);
        }
        n += 1;
        IS_ALLOCATING.store(true, Ordering::Release);
    }
    // SAFETY: as above.
    held.iter().for_each(|block| unsafe { libc::free(*block) });
    std::ptr::null_mut()
}

/// Threads of the C library that do nothing but allocate, each interrupted once: its handler has the first
/// events of the thread, and in the first rounds of their callsites too.
pub(crate) fn first_events_in_handlers(output: &str, is_recorder: bool) {
    const ROUNDS: u64 = 400;
    let builder = builder(output).buffer_size(64 << 20);
    let recorder = |builder: SessionBuilder| {
        let builder = builder.overflow(Overflow::Overwrite);
        builder.trigger_on_slow("moments/*", Duration::from_secs(60)) // so that slices are timed
    };
    let builder = if is_recorder { recorder(builder) } else { builder };
    let session = builder.start().expect("a session");
    handle(libc::SIGUSR1, record_first);
    for round in 0..ROUNDS {
        ROUND.store(round, Ordering::Relaxed);
        HAS_RECORDED.store(false, Ordering::Relaxed);
        IS_ALLOCATING.store(false, Ordering::Relaxed);
        let mut thread = 0;
        // SAFETY: the thread's function is of this program. It ends after its handler has run, and is joined.
        unsafe {
            assert_eq!(
                libc::pthread_create(&raw mut thread, std::ptr::null(), allocate, std::ptr::null_mut()),
                0
            );
            while !IS_ALLOCATING.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            (0..round * 37 % 3000).for_each(|_| std::hint::spin_loop());
            libc::pthread_kill(thread, libc::SIGUSR1);
            libc::pthread_join(thread, std::ptr::null_mut());
        }
    }
    let summary = session.stop().expect("no error");
    println!("{ROUNDS} {}", summary.lost.total());
}

/// Bytes of the stack on which the handler runs, and of those that the kernel itself needs there at most.
const STACK: usize = 64 << 10;

/// Fills unused stack.
const PAINT: u8 = 0xa5;

extern "C" fn record_nothing(_: libc::c_int) {}

/// The same slice each time: at its second call the callsite and the thread have recorded.
extern "C" fn record_on_stack(_: libc::c_int) {
    trace_scope!("moments", "on a small stack", number = 7, text = "a text");
    trace_counter!("moments", "a counter on a small stack", 3);
}

/// Returns the bytes of stack that a handler takes on this thread.
fn stack_of(handler: extern "C" fn(libc::c_int)) -> usize {
    let mut memory = vec![PAINT; STACK];
    // SAFETY: the stack exists until it is replaced, and no handler runs on it afterwards.
    unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        (stack.ss_sp, stack.ss_size) = (memory.as_mut_ptr().cast(), STACK);
        let mut before: libc::stack_t = std::mem::zeroed();
        assert_eq!(libc::sigaltstack(&raw const stack, &raw mut before), 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler as *const () as usize, libc::SA_ONSTACK);
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
        libc::raise(libc::SIGUSR2);
        assert_eq!(libc::sigaltstack(&raw const before, std::ptr::null_mut()), 0);
    }
    STACK - memory.iter().take_while(|byte| **byte == PAINT).count()
}

/// Prints the bytes of stack that events in a handler take: the first ones of a thread and of their
/// callsites, the first ones of a thread, and later ones. The kernel's own bytes are not counted.
pub(crate) fn stack_of_events(output: &str, is_recorder: bool) {
    let builder = builder(output);
    let builder = if is_recorder { builder.overflow(Overflow::Overwrite) } else { builder };
    let session = builder.start().expect("a session");
    let on_new_thread = || {
        let measured = std::thread::spawn(|| {
            let of_kernel = stack_of(record_nothing);
            let [first, warm] = [(); 2].map(|()| stack_of(record_on_stack) - of_kernel);
            [first, warm]
        });
        measured.join().expect("no panic")
    };
    let [of_all, _] = on_new_thread();
    let [of_thread, warm] = on_new_thread();
    let lost = session.stop().expect("no error").lost.total();
    println!("{of_all} {of_thread} {warm} {lost}");
}
