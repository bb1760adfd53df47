//! The life of a child, from its first event to its end.

#![allow(unsafe_code)] // threads of the C library

use std::panic::{AssertUnwindSafe, catch_unwind};

use hairline::Session;
use hairline_tests::children;
use hairline_tests::torture::Random;

use crate::ends::{end, leave};
use crate::orders::{Kind, orders};
use crate::run::BUFFER;
use crate::steps::{number, record, record_bare, recorded, set_number};
use crate::told::tell;

/// All that a child of this kind does, until its end. `fork` makes a child of the child, of so many
/// generations.
pub(crate) fn live(
    parent: libc::pid_t,
    kind: Kind,
    random: &Random,
    depth: u32,
    fork: fn(&Random, u32),
) -> ! {
    let end = end(random, kind);
    let number = number();
    if kind.is_bare() {
        (0..random.below(20)).for_each(|_| record_bare());
        tell(parent, kind.name(), end, &[(number, recorded())]);
        leave(end);
    }
    let lived = catch_unwind(AssertUnwindSafe(|| {
        (0..random.below(20)).for_each(|_| record(random));
        let mut own = None;
        if random.one_in(4) {
            // There is none if the parent had none.
            let name = format!("own-%p.{}", orders().extension);
            own = Session::builder().output(name).buffer_size(BUFFER).start().ok();
            (0..random.below(20)).for_each(|_| record(random));
        }
        let other = random.one_in(3).then(|| Thread::start(number + 100, random.next()));
        if depth > 1 && random.one_in(3) {
            fork(random, depth - 1);
        }
        let others = other.map_or(0, Thread::join);
        (0..random.below(5)).for_each(|_| record(random));
        tell(parent, kind.name(), end, &[(number, recorded()), (number + 100, others)]);
        if end == "exit" {
            drop(own);
        } else {
            std::mem::forget(own);
        }
    }));
    if lived.is_err() {
        tell(parent, kind.name(), "panicked", &[]);
        children::exit_at_once(101);
    }
    leave(end)
}

/// A thread of a child. Not the standard library's, whose threads take a lock of the process when they start
/// and end: a fork may leave that locked for ever (`std::sys::pal::unix::stack_overflow::thread_info`).
struct Thread {
    id: libc::pthread_t,
    /// Number, seed, and in the end the steps that it recorded.
    life: Box<[u64; 3]>,
}

impl Thread {
    fn start(number: u64, seed: u64) -> Self {
        extern "C" fn run(life: *mut libc::c_void) -> *mut libc::c_void {
            // SAFETY: `start` gave it, and `join` waits.
            let life = unsafe { &mut *life.cast::<[u64; 3]>() };
            set_number(life[0]);
            let random = Random::new(life[1]);
            (0..random.below(50)).for_each(|_| record(&random));
            life[2] = recorded();
            std::ptr::null_mut()
        }
        let mut thread = Self { id: 0, life: Box::new([number, seed, 0]) };
        let life = (&raw mut *thread.life).cast();
        // SAFETY: a function of this program; what it is given lives until `join`.
        let error = unsafe { libc::pthread_create(&raw mut thread.id, std::ptr::null(), run, life) };
        assert_eq!(error, 0, "a thread");
        thread
    }

    fn join(self) -> u64 {
        // SAFETY: joined once.
        unsafe { libc::pthread_join(self.id, std::ptr::null_mut()) };
        self.life[2]
    }
}
