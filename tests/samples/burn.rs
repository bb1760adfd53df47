//! A program that does 70 % of its work in one function and 30 % in another. The tests compile it, with the
//! flags that each of them wants.

use std::hint::black_box;

/// Inlined into both.
#[inline(always)]
fn stir(mut word: u64) -> u64 {
    for _ in 0..2_000 {
        word = black_box(word.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7)); // STIR
    }
    word
}

#[inline(never)]
fn seventy(work: u32) -> u64 {
    spend(work, 1)
}

#[inline(never)]
fn thirty(work: u32) -> u64 {
    spend(work, 2)
}

#[inline(always)]
fn spend(work: u32, mut word: u64) -> u64 {
    for _ in 0..work {
        word = stir(word); // SPEND
    }
    word
}

#[inline(never)]
pub fn run(rounds: u32) -> u64 {
    let mut sum = 0;
    for _ in 0..rounds {
        sum ^= seventy(700); // SEVENTY
        sum ^= thirty(300); // THIRTY
    }
    sum
}

#[allow(dead_code)] // a library has none
fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100);
    println!("{}", run(rounds));
}
