//! The times of the slowest events. Each event is timed alone, beside a bare clock read that is timed in the
//! same way at the same moment. So the influence of the machine on both is visible.

use hairline::{Format, Session, trace_instant};

use crate::Outcome;
use crate::machine::{aside, clock_read, cores, pin, tick_ns, ticks};
use crate::row::{Budget, Row, label};
use crate::timing::{Samples, started};

/// The events of each thread in a round, and the time between two of them. A disk keeps up with that, so none
/// is lost.
const EVENTS: u32 = 1_000_000;
const PERIOD_NS: f64 = 500.0;
const THREADS: usize = 2;

/// The percentiles, and the budget of each in ns above the bare read.
const PERCENTILES: [(&str, f64, f64); 5] = [
    ("p50", 0.5, 20.0),
    ("p99", 0.99, 60.0),
    ("p99.9", 0.999, 500.0),
    ("p99.99", 0.9999, 5_000.0),
    ("max", 1.0, 10_000_000.0),
];

/// A histogram of times in ticks. It is exact: it has a count for each short time, and a list of the few long
/// ones.
#[derive(Debug)]
pub struct Times {
    short: Vec<u32>,
    long: Vec<u64>,
}

impl Times {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self { short: vec![0; 1 << 14], long: Vec::with_capacity(1 << 16) }
    }

    /// Adds a time.
    #[inline(always)]
    pub fn push(&mut self, ticks: u64) {
        match usize::try_from(ticks).ok().and_then(|index| self.short.get_mut(index)) {
            Some(count) => *count += 1,
            None => self.long.push(ticks),
        }
    }

    /// Adds all times of another one.
    pub fn append(&mut self, other: &Self) {
        self.short.iter_mut().zip(&other.short).for_each(|(sum, count)| *sum += count);
        self.long.extend_from_slice(&other.long);
        self.long.sort_unstable();
    }

    /// The percentile of this share; 0 without times. Call it after [`append`](Self::append).
    #[must_use]
    pub fn percentile(&self, share: f64) -> u64 {
        let short: u64 = self.short.iter().map(|count| u64::from(*count)).sum();
        let all = short + self.long.len() as u64;
        let rank = ((all as f64 * share).ceil() as u64).clamp(1, all.max(1));
        let mut below = 0;
        for (ticks, count) in self.short.iter().enumerate() {
            below += u64::from(*count);
            if below >= rank {
                return ticks as u64;
            }
        }
        self.long.get((rank - below - 1) as usize).copied().unwrap_or(0)
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

/// The events of one thread, one in each period: the times of a bare read and of an instant.
fn load(core: usize) -> (Times, Times) {
    pin(core);
    for _ in 0..1000 {
        trace_instant!("bench", "the first ones");
    }
    let (mut reads, mut instants) = (Times::new(), Times::new());
    let period = (PERIOD_NS / tick_ns()) as u64;
    let mut due = ticks();
    for _ in 0..EVENTS {
        while ticks() < due {}
        due += period;
        let start = ticks();
        clock_read();
        let between = ticks();
        trace_instant!("bench", "instant");
        let end = ticks();
        reads.push(between - start);
        instants.push(end - between);
    }
    (reads, instants)
}

/// One round: the times of both threads together.
fn round(format: Format) -> Outcome<(Times, Times)> {
    let directory = tempfile::tempdir()?;
    let session = started(Session::builder().output(directory.path().join("trace")).format(format))?;
    let (mut reads, mut instants) = (Times::new(), Times::new());
    std::thread::scope(|scope| {
        let cores = cores().into_iter().rev().take(THREADS);
        let threads: Vec<_> = cores.map(|core| scope.spawn(move || load(core))).collect();
        for (read, instant) in threads.into_iter().filter_map(|thread| thread.join().ok()) {
            reads.append(&read);
            instants.append(&instant);
        }
    });
    let lost = session.stop()?.lost.total();
    if lost > 0 {
        eprintln!("{}: {lost} events lost while their times were measured", label(format));
    }
    Ok((reads, instants))
}

/// Measures percentiles of single events, while two threads on two cores record into a file.
///
/// # Errors
/// If a session cannot be started or stopped.
pub fn rows(rounds: usize) -> Outcome<Vec<Row>> {
    aside(tick_ns); // takes a moment
    let mut rows = Vec::new();
    for format in [Format::Fxt, Format::TrackEvent] {
        let mut samples = [const { (Samples::new(), Samples::new()) }; PERCENTILES.len()];
        for _ in 0..rounds {
            let (reads, instants) = round(format)?;
            for ((_, share, _), (floor, subject)) in PERCENTILES.iter().zip(&mut samples) {
                floor.push(reads.percentile(*share) as f64 * tick_ns());
                subject.push(instants.percentile(*share) as f64 * tick_ns());
            }
        }
        rows.extend(PERCENTILES.iter().zip(&samples).map(|((name, _, budget), (floor, subject))| {
            let name = format!("{}: a single instant, {name}", label(format));
            Row::sampled(&name, "ns", subject, Budget::Over, *budget).beside(floor)
        }));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let mut sorted: Vec<u64> = (0..5000).map(|n| (n * n * 7919) % 40_000).collect();
        let (mut parts, mut times) = ([Times::new(), Times::new()], Times::new());
        sorted.iter().enumerate().for_each(|(n, ticks)| parts[n % 2].push(*ticks));
        parts.iter().for_each(|part| times.append(part));
        sorted.sort_unstable();
        for share in [0.0002, 0.25, 0.5, 0.99, 0.999, 1.0] {
            let rank = (sorted.len() as f64 * share).ceil() as usize;
            assert_eq!(times.percentile(share), sorted[rank - 1], "{share}");
        }
    }

    #[test]
    fn without_times_a_percentile_is_zero() {
        assert_eq!(Times::new().percentile(0.5), 0);
    }
}
