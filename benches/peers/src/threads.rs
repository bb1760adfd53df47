//! Two threads at once, each on a core of its own: how much more they record than one.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use hairline_benches::machine;
use hairline_benches::timing::{Samples, batch};
use serde_json::{Value, json};

use crate::bench::{Bench, Row, two_clock_reads};

/// Operations in a batch: long enough that a thread which starts a little later does not matter, and what minitrace and fastrace keep in one
/// go.
const OPERATIONS: u32 = 10_000;

/// Times of one thread in one round, ns for an operation. Only the first of the threads is ever alone.
struct Round {
    floor: [f64; 2],
    operation: [f64; 2],
}

/// In the two times of a [`Round`].
const ALONE: usize = 0;
const TOGETHER: usize = 1;

/// Where the threads wait for each other.
struct Meeting {
    barrier: Barrier,
    arrived: AtomicUsize,
}

impl Meeting {
    /// Both do it, from the same moment on.
    fn together(&self, timed: impl FnOnce() -> f64) -> f64 {
        self.barrier.wait();
        // Both are awake, or about to be; the last microseconds are spun away.
        // Relaxed: only the number counts, nothing is handed over by it.
        let all = (self.arrived.fetch_add(1, Ordering::Relaxed) + 1).next_multiple_of(2);
        while self.arrived.load(Ordering::Relaxed) < all {
            std::hint::spin_loop();
        }
        timed()
    }

    /// The first does it while the other sleeps.
    fn alone(&self, is_first: bool, timed: impl FnOnce() -> f64) -> f64 {
        self.barrier.wait();
        if is_first { timed() } else { f64::NAN }
    }
}

impl Bench {
    /// Measures on one thread and on two, in turn. `thread` is called on each of them, for what it is to do before each batch, which
    /// does not count, and for the operation. Nothing is measured where there is but one core.
    pub fn two_threads<B: FnMut(), O: FnMut(u32)>(&mut self, row: Row, thread: impl Fn() -> (B, O) + Sync) {
        let &[.., second, first] = self.cores.as_slice() else { return };
        let rounds = self.effort.batches.div_ceil(3);
        let meeting = Meeting { barrier: Barrier::new(2), arrived: AtomicUsize::new(0) };
        let rounds_on = |core: usize| {
            machine::pin(core);
            let (mut between, mut operation) = thread();
            let is_first = core == first;
            let mut all: Vec<Round> = Vec::with_capacity(rounds);
            for _ in 0..rounds + rounds / 10 {
                let floor = || batch(OPERATIONS, two_clock_reads);
                let floor = [meeting.alone(is_first, floor), meeting.together(floor)];
                between();
                let alone = meeting.alone(is_first, || batch(OPERATIONS, &mut operation));
                between();
                let together = meeting.together(|| batch(OPERATIONS, &mut operation));
                all.push(Round { floor, operation: [alone, together] });
            }
            all.split_off(rounds / 10) // the first tenth only warms up
        };
        let (first, second) = std::thread::scope(|scope| {
            let second = scope.spawn(|| rounds_on(second));
            let first = scope.spawn(|| rounds_on(first));
            (first.join().unwrap_or_default(), second.join().unwrap_or_default())
        });
        self.threads.push(json!({
            "row": row.name(),
            "operation": figures(&first, &second, |round| round.operation),
            "floor": figures(&first, &second, |round| round.floor),
        }));
    }
}

/// What two threads do beside one.
fn figures(first: &[Round], second: &[Round], times: impl Fn(&Round) -> [f64; 2]) -> Value {
    let (mut alone, mut each, mut gain) = (Samples::default(), Samples::default(), Samples::default());
    let mut fastest = [f64::INFINITY; 2];
    for (a, b) in first.iter().zip(second).map(|(a, b)| (times(a), times(b))) {
        alone.push(a[ALONE]);
        for (fastest, time) in fastest.iter_mut().zip([a[TOGETHER], b[TOGETHER]]) {
            each.push(time);
            *fastest = fastest.min(time);
        }
        gain.push(a[ALONE] / a[TOGETHER] + a[ALONE] / b[TOGETHER]);
    }
    json!({
        "alone_ns_median": alone.median(), "alone_ns_min": alone.min(),
        "each_ns_median": each.median(), "each_ns_min": each.min(),
        "gain_median": gain.median(),
        "gain_of_minima": fastest.iter().map(|time| alone.min() / time).sum::<f64>(),
    })
}
