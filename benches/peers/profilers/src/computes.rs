//! Two threads do a fixed amount of work in 20 frames: what it costs to sample them.

mod peer;

use std::hint::black_box;

/// Work that stays in the registers, below so many frames.
#[inline(never)]
fn below(frames: u32, rounds: u32) -> u64 {
    if frames > 0 {
        return black_box(below(frames - 1, rounds)) ^ 1;
    }
    let mut word = 1_u64;
    for _ in 0..rounds {
        word = black_box(word.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7));
    }
    word
}

fn computes() -> u64 {
    hairline::trace_scope!("profilers", "compute");
    (0..500).fold(0, |sum, _| sum ^ below(20, 1_000_000))
}

fn main() {
    let _recorder = peer::dial9();
    let other = std::thread::spawn(computes);
    println!("{}", computes() ^ other.join().expect("it ends"));
}
