//! Spends 70 % of its CPU time in `seventy` and 30 % in `thirty`, 10 ms in each of so many rounds.
//! Records a session if the environment says so.
//!
//! ```text
//! burns ROUNDS
//! burns ROUNDS uneven    up to 4 ms of other work between two rounds: no clock keeps step with them
//! ```

#[cfg(not(feature = "library"))]
#[allow(dead_code)] // a program of its own, too
#[path = "../../../../tests/samples/burn.rs"]
mod burn;

#[cfg(not(feature = "library"))]
use burn::burn as burns;

#[cfg(feature = "library")]
fn burns(rounds: u32) -> u64 {
    #[link(name = "burn")]
    unsafe extern "C" {
        fn burn(rounds: u32) -> u64;
    }
    // SAFETY: the library's function takes any number.
    unsafe { burn(rounds) }
}

/// Other work, of some 1 ns a step.
#[inline(never)]
fn between(steps: u64) -> u64 {
    (0..steps).fold(1, |word: u64, step| std::hint::black_box(word.rotate_left(7) ^ step))
}

fn main() {
    hairline::trace_scope!("profilers", "burn");
    let mut arguments = std::env::args().skip(1);
    let rounds: u32 = arguments.next().and_then(|n| n.parse().ok()).expect("a number of rounds");
    let sum = if arguments.next().is_some() {
        let mut chance = 1_u64;
        (0..rounds).fold(0, |sum, _| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            sum ^ burns(1) ^ between((chance >> 42) % 4_000_000)
        })
    } else {
        burns(rounds)
    };
    println!("{sum}");
}
