//! Two threads at the same time, each on its own core, and their throughput beside that of one.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hairline_benches::machine;
use hairline_benches::timing::{Samples, batch};
use serde_json::{Value, json};

use crate::bench::{Bench, Row, two_clock_reads};

/// The operations in a batch. With that many, a thread that starts a little later does not matter. It is also
/// the number that minitrace and fastrace keep at once.
const OPERATIONS: u32 = 10_000;

/// The rounds are divided into stretches with a pause in between. Other virtual machines use the same cores
/// for fractions of a second, or for seconds.
const STRETCHES: usize = 5;
const PAUSE: Duration = Duration::from_millis(300);

/// The times of one thread in one round, in ns for an operation. Only the first thread also runs alone.
struct Round {
    floor: [f64; 2],
    arithmetic: [f64; 2],
    operation: [f64; 2],
}

/// Work that is slower while another thread uses the same core. Clock reads do not show that.
fn arithmetic(n: u32) {
    let mut words = black_box([1_u64, 2, 3, 4, 5, 6]);
    for word in &mut words {
        for _ in 0..4 {
            *word = word.wrapping_mul(3) ^ u64::from(n);
        }
    }
    black_box(words);
}

/// The indices in the times of a [`Round`].
const ALONE: usize = 0;
const TOGETHER: usize = 1;

/// The point at which the threads wait for each other.
struct Meeting {
    barrier: Barrier,
    arrived: AtomicUsize,
}

impl Meeting {
    /// Runs `timed` on both threads, from the same moment on.
    fn together(&self, timed: impl FnOnce() -> f64) -> f64 {
        self.barrier.wait();
        // Both threads are awake or about to be, so the rest of the wait is a spin.
        // Relaxed: only the number counts, and it publishes no other data.
        let all = (self.arrived.fetch_add(1, Ordering::Relaxed) + 1).next_multiple_of(2);
        while self.arrived.load(Ordering::Relaxed) < all {
            std::hint::spin_loop();
        }
        timed()
    }

    /// Runs `timed` on the first thread while the other sleeps.
    fn alone(&self, is_first: bool, timed: impl FnOnce() -> f64) -> f64 {
        self.barrier.wait();
        if is_first { timed() } else { f64::NAN }
    }
}

impl Bench {
    /// Measures on one thread and on two, in turn. Each thread calls `thread`, which returns a function to
    /// call before each batch, without measuring it, and the operation. Measures nothing on a machine with
    /// one core.
    pub fn two_threads<B: FnMut(), O: FnMut(u32)>(&mut self, row: Row, thread: impl Fn() -> (B, O) + Sync) {
        if self.only_rows {
            return;
        }
        let &[.., second, first] = self.cores.as_slice() else { return };
        let (rounds, warm_up) = (self.effort.batches, self.effort.batches / 10);
        let meeting = Meeting { barrier: Barrier::new(2), arrived: AtomicUsize::new(0) };
        let rounds_on = |core: usize| {
            machine::pin(core);
            let (mut between, mut operation) = thread();
            let is_first = core == first;
            let mut all: Vec<Round> = Vec::with_capacity(rounds);
            for round in 0..rounds + warm_up {
                if round % rounds.div_ceil(STRETCHES) == 0 {
                    std::thread::sleep(PAUSE);
                }
                let both = |work: fn(u32)| {
                    let work = || batch(OPERATIONS, work);
                    [meeting.alone(is_first, work), meeting.together(work)]
                };
                let (floor, arithmetic) = (both(two_clock_reads), both(arithmetic));
                between();
                let alone = meeting.alone(is_first, || batch(OPERATIONS, &mut operation));
                between();
                let together = meeting.together(|| batch(OPERATIONS, &mut operation));
                all.push(Round { floor, arithmetic, operation: [alone, together] });
            }
            all.split_off(warm_up)
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
            "arithmetic": figures(&first, &second, |round| round.arithmetic),
        }));
    }
}

/// The figures of two threads beside those of one.
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
