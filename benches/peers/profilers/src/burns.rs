//! Spends 70 % of its CPU time in `seventy` and 30 % in `thirty`, 10 ms in each of so many rounds, and records a session
//! if the environment says so.

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

fn main() {
    hairline::trace_scope!("profilers", "burn");
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).expect("a number of rounds");
    println!("{}", burns(rounds));
}
