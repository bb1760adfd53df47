//! A program whose threads compute and sleep inside slices, for the tests of `hairline record --sched
//! --sample`. It starts no session.
//!
//! ```text
//! together [child]    two threads with 20 slices `turn` each, and the same in a child, before and after it
//! ```

#![allow(unsafe_code)] // clock_gettime

use std::process::Command;
use std::time::Duration;

use hairline::trace_scope;

const TURNS: u32 = 20;
const TIME: Duration = Duration::from_millis(10);

/// The CPU time of this thread.
fn used() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `timespec`.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).expect("below a second"))
}

/// Uses CPU time, so that a busy machine gives as many samples. Nearly all of it is the program's own: the
/// kernel takes no samples of itself, and each reading of the clock is a system call.
fn spin(time: Duration) {
    let began = used();
    while used() - began < time {
        (0..100_000_u32).for_each(|n| _ = std::hint::black_box(n));
    }
}

fn turns() {
    for n in 0..TURNS {
        trace_scope!("together", "turn", n);
        spin(TIME);
        std::thread::sleep(TIME / 5);
    }
}

fn main() {
    trace_scope!("together", "main");
    if std::env::args().nth(1).as_deref() == Some("child") {
        let me = std::env::current_exe().expect("a path");
        assert!(Command::new(me).status().expect("it runs").success());
    }
    std::thread::scope(|scope| {
        for name in ["alpha", "beta"] {
            std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, turns).expect("a thread");
        }
    });
}
