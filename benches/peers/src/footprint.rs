//! The slowdown of a program whose own data fill the caches.

use std::hint::black_box;

use hairline_benches::machine;
use hairline_benches::timing::{Samples, batch};
use serde_json::json;

use crate::bench::{Bench, two_clock_reads};

/// The bytes of a cache line.
const LINE: usize = 64;

/// The instructions of a step of the walk: an index, its bound, a load, the count.
const STEP: u32 = 5;

/// Instructions between two scopes.
const EVERY: [u32; 2] = [1_000, 10_000];

/// Instructions of a batch.
const BATCH: u32 = 1_000_000;

/// A walk through memory. Each step finds the place of the next one, so the processor cannot fetch ahead.
pub struct Walk {
    /// For each line the next one, in its first word.
    next: Vec<[u32; LINE / 4]>,
    at: u32,
    steps: u32,
}

impl Walk {
    /// A walk through all lines of `bytes` bytes, in random order.
    fn through(bytes: usize) -> Self {
        let lines = (bytes / LINE).max(2);
        let mut order: Vec<u32> = (0..lines as u32).collect();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64; // any but 0
        for last in (1..lines).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            order.swap(last, (random % last as u64) as usize); // never itself: one circle through all
        }
        Self { next: order.into_iter().map(|next| [next; LINE / 4]).collect(), at: 0, steps: 0 }
    }

    /// The work of the program between two scopes.
    #[inline(never)]
    pub fn piece(&mut self) {
        let mut at = self.at;
        for _ in 0..self.steps {
            at = self.next.get(at as usize).map_or(0, |line| line[0]);
        }
        self.at = black_box(at);
    }
}

impl Bench {
    /// Measures a walk through half the bytes of the L2 cache, which has few misses if no other program uses
    /// the cache. The walk is measured bare, with two clock reads a [piece](Walk::piece), and with `traced`,
    /// a scope around a piece. (In the L3 cache, which other programs use too, the difference is lost in the
    /// noise.)
    pub fn footprint(&mut self, mut traced: impl FnMut(&mut Walk)) {
        if self.only_rows {
            return;
        }
        let mut walk = Walk::through(machine::l2_cache() / 2);
        let warm_up = self.effort.batches / 10;
        for every in EVERY {
            walk.steps = every / STEP;
            let pieces = BATCH / every;
            let (mut bare, mut floors, mut samples) =
                (Samples::default(), Samples::default(), Samples::default());
            for round in 0..self.effort.batches + warm_up {
                let plain = batch(pieces, |_| walk.piece());
                let floor = batch(pieces, |i| {
                    two_clock_reads(i);
                    walk.piece();
                });
                let sample = batch(pieces, |_| traced(&mut walk));
                if round >= warm_up {
                    bare.push(plain);
                    floors.push(floor / plain - 1.0);
                    samples.push(sample / plain - 1.0);
                }
            }
            self.footprint.push(json!({
                "instructions": every, "bare_ns_median": bare.median(),
                "floor_loss_median": floors.median(), "loss_median": samples.median(),
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_visits_each_line_before_it_returns() {
        let mut walk = Walk::through(1000 * LINE);
        walk.steps = 1;
        let way = std::iter::from_fn(|| {
            walk.piece();
            (walk.at != 0).then_some(walk.at)
        });
        assert_eq!(way.take(2000).count(), 999);
    }
}
