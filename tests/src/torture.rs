//! Random programs, round after round: some in CI, and as many as there is time for by hand.
//!
//! ```text
//! TORTURE_SECONDS=600 cargo test --release -p hairline-tests --test vocabulary torture
//! TORTURE_SEED=7 TORTURE_PLAN=deep ...         what a failure says it was
//! ```

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use hairline::Format;

use crate::recording::FORMATS;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs `round` with each of the plans in each format, and a seed of its own; with other seeds as long as
/// `TORTURE_SECONDS` says. `name` is a plan's.
///
/// # Panics
/// When a round has, after all of them, with what runs it again.
pub fn rounds<P: Copy>(plans: &[P], name: impl Fn(&P) -> &str, round: impl Fn(P, u64, Format)) {
    let begun = Instant::now();
    let seconds = number("TORTURE_SECONDS").unwrap_or(0);
    let only = std::env::var("TORTURE_PLAN").unwrap_or_default();
    let mut failures = Vec::new();
    let mut rounds = 0;
    for seed in number("TORTURE_SEED").unwrap_or(1).. {
        for plan in plans.iter().filter(|plan| name(plan).contains(&only)) {
            for format in FORMATS {
                rounds += 1;
                let of_round = Random::new(seed).next();
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| round(*plan, of_round, format))) {
                    let why = panic.downcast::<String>().map_or_else(|_| "a panic".to_owned(), |text| *text);
                    eprintln!("TORTURE_SEED={seed}, {}, {format:?}: {why}", name(plan));
                    failures.push(format!("TORTURE_SEED={seed} TORTURE_PLAN={:?} {format:?}", name(plan)));
                }
            }
        }
        if begun.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
    }
    assert!(failures.is_empty(), "{} of {rounds} rounds failed:\n{}", failures.len(), failures.join("\n"));
}

/// splitmix64.
#[derive(Debug)]
pub struct Random(Cell<u64>);

impl Random {
    /// Numbers that `seed` alone decides.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// The next one.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut z = self.0.get();
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One below `n`.
    #[must_use]
    pub fn below(&self, n: u64) -> u64 {
        self.next() % n
    }

    /// Whether it is one of `n`.
    #[must_use]
    pub fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }
}
