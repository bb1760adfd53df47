//! A program that spends 70 % of its CPU time in one function and 30 % in another, by the thread's own CPU
//! clock. The tests compile it with the flags that each of them wants, also as a library.

use std::hint::black_box;

const CLOCK_THREAD_CPUTIME_ID: i32 = 3;

unsafe extern "C" {
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
}

fn cpu_ns() -> i64 {
    let mut time = [0; 2];
    // SAFETY: two words are a `timespec` on 64-bit systems.
    unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time[0] * 1_000_000_000 + time[1]
}

#[inline(always)]
fn stir(mut word: u64) -> u64 {
    for _ in 0..20_000 {
        word = black_box(word.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7)); // line of stir
    }
    word
}

#[inline(always)]
fn spend(ms: i64, mut word: u64) -> u64 {
    let start = cpu_ns();
    while cpu_ns() - start < ms * 1_000_000 {
        word = stir(word); // line of spend
    }
    word
}

#[inline(never)]
fn seventy() -> u64 {
    spend(7, 1) // line of seventy
}

#[inline(never)]
fn thirty() -> u64 {
    spend(3, 2) // line of thirty
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn burn(rounds: u32) -> u64 {
    let mut sum = 0;
    for _ in 0..rounds {
        sum ^= seventy();
        sum ^= thirty();
    }
    sum
}

/// Burns below a frame of 20 KiB.
#[allow(dead_code)] // as `main`
#[inline(never)]
fn deep(rounds: u32) -> u64 {
    let mut room = [0_u8; 20 << 10];
    black_box(&mut room);
    let burnt = burn(rounds);
    burnt ^ u64::from(black_box(&room)[0])
}

#[allow(dead_code)] // a library has none
fn main() {
    println!("{}", if std::env::args().len() > 1 { deep(40) } else { burn(200) });
}
