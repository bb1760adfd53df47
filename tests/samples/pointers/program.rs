//! A program whose threads record their own stacks, built with frame pointers and without: two threads spend
//! 70 and 30 % of their CPU time in two functions, another one sleeps, and the first one records events and
//! allocates. With a number it ends after so many rounds. After each it prints the number and the time.

use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use hairline::{Heap, trace_instant, trace_scope};

mod burn;

#[global_allocator]
static HEAP: Heap<std::alloc::System> = Heap::new(std::alloc::System).report_above(usize::MAX);

#[inline(never)]
fn asks(n: u64) {
    trace_instant!("db", "asked", n);
    black_box(n); // no tail call, which would leave no frame
}

#[inline(never)]
fn serves(n: u64) {
    asks(n);
    black_box(n);
}

#[inline(never)]
fn keeps(n: u64) -> Vec<u8> {
    vec![n as u8; black_box(100_000)]
}

#[inline(never)]
fn sleeps() {
    std::thread::sleep(Duration::from_millis(200));
    black_box(0);
}

#[inline(never)]
fn is_slow() {
    trace_scope!("net", "request");
    std::thread::sleep(Duration::from_millis(60));
    black_box(0);
}

unsafe extern "C" {
    fn qsort(base: *mut i32, count: usize, size: usize, compares: extern "C" fn(*const i32, *const i32) -> i32);
}

/// Burns below a function of the C library, which has no frame pointer in most distributions.
extern "C" fn compares(left: *const i32, right: *const i32) -> i32 {
    burn::burn(1);
    unsafe { *left - *right }
}

#[inline(never)]
fn sorts() {
    let mut numbers = [3, 1, 2];
    unsafe { qsort(numbers.as_mut_ptr(), numbers.len(), 4, compares) };
    black_box(numbers);
}

fn boottime() -> i64 {
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    let mut time = [0; 2];
    unsafe { clock_gettime(7, &mut time) };
    time[0] * 1_000_000_000 + time[1]
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(u64::MAX, |rounds| rounds.parse().expect("a number"));
    let spawn = |name: &str, f: fn()| {
        std::thread::Builder::new().name(name.to_owned()).spawn(f).expect("a thread");
    };
    spawn("beside", || loop {
        burn::burn(1);
    });
    spawn("sleeper", || loop {
        sleeps();
    });
    let mut kept = Vec::new();
    for n in 0..rounds {
        {
            trace_scope!("burning", "work", n);
            burn::burn(2);
        }
        serves(n);
        kept.push(keeps(n));
        if n % 50 == 10 {
            is_slow();
            sorts();
        }
        writeln!(std::io::stdout(), "{n} {}", boottime()).expect("somebody reads");
    }
}
