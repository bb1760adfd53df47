//! Trace time: nanoseconds of `CLOCK_BOOTTIME`, read as cheaply as the machine allows.
//!
//! # Reading
//!
//! With the processor's counter (`counter.rs`): `ns = (ticks * multiplier >> 64) + offset`. On x86-64 that
//! costs one `rdtsc`, one multiplication and one addition. The multiplier is ns per tick as a fraction of
//! 2^64, so the counter must tick faster than 1 GHz. Multiplier 0 selects the fallback: a call of the system,
//! on Linux `clock_gettime(CLOCK_BOOTTIME)`, at each event.
//!
//! # Calibration
//!
//! The counter's first parameters come from two samples of the start of a session: one is its first step, one
//! comes when the ring and the output exist. In between are 0.1 ms or more, so the rate is good to some 20
//! parts per million, and the first event reads the counter. The drain thread takes the next sample
//! [`FIRST_REFINEMENT`] later. If the first two samples leave the rate too uncertain (a slow system call
//! reads the clock), the session starts with the fallback, and the drain thread takes the second sample
//! after [`CALIBRATION`].
//!
//! # Correcting drift
//!
//! The drain thread takes further samples. It publishes new parameters through [`Discipline`]: they give the
//! same time as the old parameters at the moment of the change, and reduce the error to zero over the next
//! second or more. An error that is too large for that ends at once: time begins anew at the true time.
//! Counter and BOOTTIME may have come apart, as when the machine was suspended or another one has taken over.
//!
//! Parameters have a time until which they count: until the next sample is late, and beyond that for as long
//! as they must be less than 1 us off, by the samples' widths and a rate that wanders. If the drain thread
//! has taken no sample by then (the machine does not run it, or its output is stuck), threads that load
//! parameters load the fallback until it has. After that, too, time begins at the true time. No thread's own
//! time goes back by any of this: its next event comes 1 ns after its last one.
//!
//! A thread loads parameters at each cold event: when its chunk is full, or after 2 ms without an event
//! ([`GAP`](super::thread)). If the old parameters would be [`STALE_NS`] off before the next refinement, the
//! drain thread sends the next event of each thread to the cold path.

mod counter;
mod published;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::on::base::clock::counter::{HAS_COUNTER, is_steady, step};
pub(crate) use crate::on::base::clock::counter::{HAS_LONG_TICKS, ticks};
use crate::on::base::clock::published::Words;
use crate::on::base::platform;
pub(crate) use crate::on::base::platform::thread_time;
use crate::options::ClockSource;

/// The shortest time between the two samples of a session's start. A sample is good to some 2 ns, or to a
/// long tick of up to 52 ns.
const FIRST_BASE: Duration = Duration::from_micros(if HAS_LONG_TICKS { 250 } else { 100 });

/// The rate of the session's start counts if the two clock reads take less than one part in this number of
/// the time between them. So even if each sample is as wrong as it can be, time is within 1 us until
/// [`FIRST_REFINEMENT`].
const CERTAINTY: u64 = 1000;

/// Parameters count until their rate's error may have made them wrong by this. With the error of a sample,
/// that is less than the promised 1 us. Errors above it end at once.
const CERTAIN_NS: f64 = 900.0;

/// What a rate changes by in some seconds, by temperature and NTP, as a part of it.
const WANDER: f64 = 1e-7;

/// No parameters count for longer: [`WANDER`] alone makes them [`CERTAIN_NS`] off before.
const LONGEST_NS: u64 = 10_000_000_000;

/// Time between the start of a session and its first refinement.
pub(crate) const FIRST_REFINEMENT: Duration = Duration::from_millis(2);

/// Time between the first two samples if those of the session's start are too uncertain.
const CALIBRATION: Duration = Duration::from_millis(10);

/// Threads load new parameters soon if the old ones would be wrong by more than this at the next refinement.
const STALE_NS: f64 = 100.0;

/// Tries for one sample. The try with the least time between its two counter reads counts.
const TRIES: usize = 8;

/// An error is reduced to zero in this time at least. The next sample should have come by then.
const CORRECTION: Duration = Duration::from_secs(1);

/// An unexplained error above this is no change of the rate, if it comes once: BOOTTIME or the counter has
/// stopped or jumped.
const JUMP_NS: f64 = 1_000_000.0;

/// Number of samples that the rate is estimated from.
const WINDOW: usize = 16;

/// Returns the current time in ns, by these parameters.
#[inline(always)]
pub(crate) fn now(multiplier: u64, offset: u64) -> u64 {
    counter_now(multiplier, offset).unwrap_or_else(boottime)
}

/// Returns the current time in ns by the counter. `None` if the parameters select the fallback.
#[inline(always)]
pub(crate) fn counter_now(multiplier: u64, offset: u64) -> Option<u64> {
    (HAS_COUNTER && multiplier != 0).then(|| Parameters { multiplier, offset }.at(ticks()))
}

/// The offset that the hot path uses with the fallback's multiplier 0. The time that
/// [`unchecked_at`] returns is then later than any other.
pub(crate) const NO_COUNTER: u64 = 1 << 63;

/// Converts ticks of the counter, without a check whether the parameters select the fallback: then the time
/// is [`NO_COUNTER`].
#[inline(always)]
pub(crate) fn unchecked_at(ticks: u64, multiplier: u64, offset: u64) -> u64 {
    Parameters { multiplier, offset }.at(ticks)
}

/// Returns `CLOCK_BOOTTIME` in ns, or what other systems have in its place.
#[inline(never)]
pub(crate) fn boottime() -> u64 {
    platform::boottime()
}

/// Converts ticks of the counter to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) multiplier: u64,
    pub(crate) offset: u64,
}

impl Parameters {
    const FALLBACK: Self = Self { multiplier: 0, offset: 0 };

    pub(crate) fn now(self) -> u64 {
        now(self.multiplier, self.offset)
    }

    #[inline(always)]
    fn ns(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.multiplier)) >> 64) as u64
    }

    #[inline(always)]
    fn at(self, ticks: u64) -> u64 {
        self.ns(ticks).wrapping_add(self.offset)
    }

    /// Whether times by both parameters are more than [`STALE_NS`] apart, now or `later`.
    fn differs_from(self, before: Self, later: Duration) -> bool {
        if self.multiplier == 0 || before.multiplier == 0 {
            return self != before;
        }
        let now = ticks();
        let apart = self.at(now).wrapping_sub(before.at(now)).cast_signed();
        #[allow(clippy::cast_precision_loss)] // both are small
        let (apart, rates) = (apart as f64, self.multiplier as f64 / before.multiplier as f64);
        apart.abs() > STALE_NS || (rates - 1.0).abs() * later.as_secs_f64() * 1e9 > STALE_NS
    }

    /// Returns the ns per tick.
    #[allow(clippy::cast_precision_loss)] // 53 bits are finer than a sample
    fn slope(self) -> f64 {
        self.multiplier as f64 / 2f64.powi(64)
    }

    /// Returns the line through (`ticks`, `ns`) with this slope (ns per tick).
    fn through(ticks: u64, ns: u64, slope: f64) -> Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 < slope < 1
        let multiplier = (slope * 2f64.powi(64)) as u64;
        let line = Self { multiplier, offset: 0 };
        Self { offset: ns.wrapping_sub(line.ns(ticks)), ..line }
    }
}

/// A reading of the counter, and the time of that reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) ticks: u64,
    pub(crate) ns: u64,
    /// Ticks that the reading took, at most. The time is that of a moment inside of it.
    pub(crate) width: u64,
}

impl Sample {
    fn take() -> Self {
        let tries = (0..TRIES).map(|_| {
            let (before, step) = step();
            let ns = boottime();
            let width = ticks().wrapping_sub(before);
            Self { ticks: before.wrapping_add(width / 2), ns, width: width.saturating_add(step) }
        });
        tries.min_by_key(|sample| sample.width).unwrap_or(Self { ticks: 0, ns: 0, width: u64::MAX })
    }

    /// Whether the rate between the samples is certain enough for the start of a session.
    fn is_far_from(&self, first: &Self) -> bool {
        self.uncertainty(first).saturating_mul(CERTAINTY) <= self.ticks.wrapping_sub(first.ticks)
    }

    /// Ticks that the clock reads of both samples took. The time between the samples is known to half of it.
    fn uncertainty(&self, first: &Self) -> u64 {
        first.width.saturating_add(self.width)
    }

    /// Returns the most that the rate between the samples can be wrong, as a part of it.
    #[allow(clippy::cast_precision_loss)] // an estimate
    fn error_of_rate(&self, first: &Self) -> f64 {
        let between = self.ticks.wrapping_sub(first.ticks);
        self.uncertainty(first) as f64 / 2.0 / between.max(1) as f64
    }

    /// Returns the time in ns that is so much later than this sample's.
    fn after(&self, time: Duration) -> u64 {
        self.ns.saturating_add(time.as_nanos() as u64)
    }

    /// Returns the time at which parameters are [`CERTAIN_NS`] off that are off by `error` at this sample, in
    /// ns, and whose rate is so wrong.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
    fn certain_until(&self, error: f64, error_of_rate: f64) -> u64 {
        self.ns.saturating_add(((CERTAIN_NS - error) / (error_of_rate + WANDER)) as u64)
    }
}

/// Adjusts the parameters so that converted time follows the samples without a step.
#[derive(Debug)]
pub(crate) struct Discipline {
    current: Parameters,
    /// The most that the rate of the current parameters can be wrong, as a part of it.
    error_of_rate: f64,
    /// The time until which the current parameters count.
    counts_until: u64,
    samples: VecDeque<Sample>,
}

impl Discipline {
    /// Computes the first parameters from two samples at different times. The next sample is late after
    /// `patience`.
    pub(crate) fn new(first: Sample, second: Sample, patience: Duration) -> Self {
        let slope = slope(first, second).unwrap_or(0.5);
        let current = Parameters::through(second.ticks, second.ns, slope);
        let error_of_rate = second.error_of_rate(&first);
        let counts_until = second.certain_until(0.0, error_of_rate).max(second.after(patience));
        Self { current, error_of_rate, counts_until, samples: VecDeque::from([first, second]) }
    }

    /// Adds a sample. The parameters are valid from the time of the sample on, and count for `patience` even if
    /// they are uncertain: only after that is the next sample late. Returns whether this one was.
    #[allow(clippy::cast_precision_loss)] // differences and estimates
    pub(crate) fn update(&mut self, sample: Sample, patience: Duration) -> bool {
        let is_late = sample.ns > self.counts_until;
        let converted = self.current.at(sample.ticks);
        let error = sample.ns.wrapping_sub(converted).cast_signed() as f64;
        let noise = self.current.ns(sample.width / 2) as f64;
        let since = self.samples.back().map_or(0, |last| sample.ns.saturating_sub(last.ns)) as f64;
        let unexplained = error.abs() - noise - since * (self.error_of_rate + WANDER);
        let usable = match self.samples.len() {
            all if unexplained <= CERTAIN_NS => all,
            2.. if unexplained > JUMP_NS => 0, // a jump: the rate stays
            all => all.min(1),                 // another rate, since the last sample
        };
        self.samples.drain(..self.samples.len() - usable);
        // The rate since the oldest sample, if no later one was so much better that it is the better start.
        let rates =
            self.samples.iter().filter_map(|from| Some((sample.error_of_rate(from), slope(*from, sample)?)));
        let best = rates.min_by(|(error, _), (other, _)| error.total_cmp(other));
        let (error_of_rate, rate) = best.unwrap_or((self.error_of_rate, self.current.slope()));
        self.samples.push_back(sample);
        if self.samples.len() > WINDOW {
            self.samples.pop_front();
        }
        // After a late sample too: threads have read the fallback, and go on from the true time.
        let starts_anew = is_late || error.abs() - noise > CERTAIN_NS;
        let (ns, error) = if starts_anew { (sample.ns, 0.0) } else { (converted, error) };
        // Reach the true time as far ahead as the last sample is back.
        let correction = error / since.max(CORRECTION.as_nanos() as f64);
        self.current = Parameters::through(sample.ticks, ns, rate * (1.0 + correction));
        self.error_of_rate = error_of_rate + correction.abs();
        self.counts_until = sample.certain_until(error.abs(), self.error_of_rate).max(sample.after(patience));
        is_late
    }
}

/// Returns ns per tick between two samples; `None` if the samples give no possible rate.
fn slope(from: Sample, to: Sample) -> Option<f64> {
    let (ticks, ns) = (to.ticks.checked_sub(from.ticks)?, to.ns.checked_sub(from.ns)?);
    #[allow(clippy::cast_precision_loss)] // 53 bits of a difference is finer than a sample
    let slope = ns as f64 / ticks as f64;
    (ticks > 0 && slope > 0.0 && slope < 1.0).then_some(slope)
}

/// Parameters that the drain thread changes and every thread reads.
#[derive(Debug)]
pub(crate) struct Published(Words<3>);

impl Published {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self(Words::new(clock.words()))
    }

    /// Publishes the clock's parameters. Only the drain thread calls it.
    fn store(&self, clock: &Clock) {
        self.0.store(clock.words());
    }

    /// Returns the latest parameters and the current time by them. They are the fallback, which reads the
    /// system's clock and needs none, if a store overtakes the load in each of its few tries, or if the next
    /// refinement is late and the latest parameters count no longer. A load never waits for the drain thread.
    pub(crate) fn load(&self) -> (Parameters, u64) {
        self.counter().unwrap_or_else(|| (Parameters::FALLBACK, boottime()))
    }

    /// Returns the latest parameters and the current time by them, if they select the counter and count.
    fn counter(&self) -> Option<(Parameters, u64)> {
        let [multiplier, offset, counts_until] = self.0.load()?;
        let now = counter_now(multiplier, offset)?;
        // Where the counter has jumped back, the end is too far away.
        let counts = counts_until.wrapping_sub(now) <= LONGEST_NS;
        counts.then_some((Parameters { multiplier, offset }, now))
    }

    /// Returns the current time in ns.
    pub(crate) fn now(&self) -> u64 {
        self.load().1
    }
}

/// The session's clock, owned by the drain thread.
#[derive(Debug)]
pub(crate) enum Clock {
    /// `CLOCK_BOOTTIME` at each event.
    Fallback,
    /// As `Fallback`, until the second sample of the counter is taken.
    Calibrating { first: Sample, since: Instant },
    /// The processor's counter.
    Counter(Discipline),
}

/// Whether events can read the processor's counter. If not, each event asks the system for the time.
#[must_use]
pub fn has_steady_counter() -> bool {
    HAS_COUNTER && is_steady() && platform::trusts_counter()
}

impl Clock {
    /// Starts a clock. With the counter, this takes the first sample.
    pub(crate) fn start(source: ClockSource) -> Self {
        if source == ClockSource::Counter && has_steady_counter() {
            return Self::Calibrating { first: Sample::take(), since: Instant::now() };
        }
        Self::Fallback
    }

    pub(crate) fn parameters(&self) -> Parameters {
        match self {
            Self::Counter(discipline) => discipline.current,
            _ => Parameters::FALLBACK,
        }
    }

    /// Returns what [`Published`] publishes: the parameters, and the time until which they count.
    fn words(&self) -> [u64; 3] {
        let Parameters { multiplier, offset } = self.parameters();
        let counts_until =
            if let Self::Counter(discipline) = self { discipline.counts_until } else { u64::MAX };
        [multiplier, offset, counts_until]
    }

    /// Takes the second sample, at the end of a session's start: [`FIRST_BASE`] or more after the first one.
    /// Waits if the start was faster.
    pub(crate) fn calibrate(&mut self) {
        if let Self::Calibrating { first, since } = self {
            while since.elapsed() < FIRST_BASE {
                std::hint::spin_loop();
            }
            let (first, second) = (*first, Sample::take());
            if second.is_far_from(&first) && slope(first, second).is_some() {
                *self = Self::Counter(Discipline::new(first, second, FIRST_REFINEMENT));
            }
        }
    }

    /// Returns the time from the session's start to the first refinement, [`FIRST_REFINEMENT`] at least.
    /// `None`: there is none.
    pub(crate) fn first_refinement(&self) -> Option<Duration> {
        match self {
            Self::Fallback => None,
            Self::Calibrating { since, .. } => {
                Some(CALIBRATION.saturating_sub(since.elapsed()).max(FIRST_REFINEMENT))
            }
            Self::Counter(_) => Some(FIRST_REFINEMENT),
        }
    }

    /// Takes a sample and publishes the corrected parameters. Returns whether threads must load them: the old
    /// ones count no longer, so that threads may have the fallback, or would be off by more than [`STALE_NS`]
    /// at the next refinement, `next` from now. That is late after `patience`.
    pub(crate) fn refine(&mut self, published: &Published, next: Duration, patience: Duration) -> bool {
        let before = self.parameters();
        let mut is_late = false;
        match self {
            Self::Fallback => return false,
            Self::Calibrating { first, .. } => {
                let (first, second) = (*first, Sample::take());
                let has_rate = slope(first, second).is_some();
                *self = match has_rate {
                    true => Self::Counter(Discipline::new(first, second, patience)),
                    false => Self::Fallback,
                };
            }
            Self::Counter(discipline) => is_late = discipline.update(Sample::take(), patience),
        }
        published.store(self);
        is_late || self.parameters().differs_from(before, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 2.7 GHz whose rate wanders by up to 20 ppm, sampled with up to 100 ns of noise.
    struct Drifting {
        ticks: f64,
        ns: f64,
        noise: u64,
    }

    impl Drifting {
        fn step(&mut self, ns: f64, round: u32) {
            let ppm = 20.0 * (f64::from(round) / 200.0).sin();
            self.ns += ns;
            self.ticks += ns * 2.7 * (1.0 + ppm * 1e-6);
        }

        fn true_sample(&self) -> Sample {
            Sample { ticks: self.ticks as u64, ns: self.ns as u64, width: 60 }
        }

        fn noisy_sample(&mut self) -> Sample {
            self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let sample = self.true_sample();
            Sample { ns: sample.ns + (self.noise >> 33) % 100, width: 600, ..sample }
        }
    }

    #[test]
    fn time_stays_within_10_us_for_a_simulated_hour_and_never_goes_back() {
        let mut counter = Drifting { ticks: 1e15, ns: 3.6e14, noise: 1 };
        let first = counter.noisy_sample();
        counter.step(1e7, 0);
        let mut clock = Discipline::new(first, counter.noisy_sample(), FIRST_REFINEMENT);
        counter.step(2e6, 0);
        clock.update(counter.noisy_sample(), Duration::from_secs(2));
        let (mut last, mut worst) = (0, 0);
        for round in 0..3600 {
            for _ in 0..10 {
                counter.step(1e8, round);
                let sample = counter.true_sample();
                let converted = clock.current.at(sample.ticks);
                assert!(converted >= last, "round {round}");
                last = converted;
                worst = worst.max(converted.abs_diff(sample.ns));
            }
            let before = clock.current;
            let sample = counter.noisy_sample();
            clock.update(sample, Duration::from_secs(2));
            assert!(
                clock.current.at(sample.ticks).abs_diff(before.at(sample.ticks)) <= 1,
                "continuous at the change"
            );
        }
        assert!(worst < 10_000, "{worst} ns");
    }

    #[test]
    fn time_is_true_again_after_a_suspension_and_after_a_jump_of_the_counter() {
        const PATIENCE: Duration = Duration::from_secs(1);
        for jump in [(3.6e12, 0.0), (0.0, 3.6e12)] {
            let mut counter = Drifting { ticks: 1e12, ns: 1e12, noise: 1 };
            let first = counter.true_sample();
            counter.step(1e7, 0);
            let mut clock = Discipline::new(first, counter.true_sample(), PATIENCE);
            counter.ns += jump.0; // the counter stops for an hour
            counter.ticks += jump.1; // another machine's counter, which is ahead
            clock.update(counter.true_sample(), PATIENCE);
            for _ in 0..5 {
                counter.step(1e9, 0);
                let sample = counter.true_sample();
                assert!(clock.current.at(sample.ticks).abs_diff(sample.ns) < 20_000);
                clock.update(sample, PATIENCE);
            }
        }
    }

    #[test]
    fn time_is_true_again_after_two_refinements_whatever_the_rate_becomes() {
        const PATIENCE: Duration = Duration::from_secs(1);
        // NTP corrects; another machine has taken over, whose counter has another rate.
        for factor in [1.0 + 5e-6, 1.0 - 5e-4, 1.0 + 2e-3, 1.0 - 0.08, 3.0 / 2.7] {
            let mut counter = Drifting { ticks: 1e12, ns: 1e12, noise: 1 };
            let first = counter.true_sample();
            counter.step(1e7, 0);
            let mut clock = Discipline::new(first, counter.true_sample(), PATIENCE);
            let mut error = 0;
            for refinement in 0..30 {
                let before = counter.ticks;
                counter.step(1e9, 0);
                if refinement >= 20 {
                    counter.ticks = before + (counter.ticks - before) * factor;
                }
                let sample = counter.true_sample();
                error = clock.current.at(sample.ticks).abs_diff(sample.ns);
                assert!(error <= 1000 || (20..23).contains(&refinement), "{factor} {refinement}: {error}");
                clock.update(sample, PATIENCE);
            }
            assert!(error < 50, "{factor}: {error}");
        }
    }

    #[test]
    fn time_is_within_1_us_however_late_a_refinement_comes() {
        // A refinement that is late, after none, one, two and so on that were punctual.
        for late in 0..8 {
            let mut counter = Drifting { ticks: 1e12, ns: 1e12, noise: 1 };
            let mut first = counter.true_sample();
            counter.step(1e5, 0);
            let second = counter.true_sample();
            first.ns += 20; // both are as wrong as the reading can be, together
            let mut clock = Discipline::new(first, second, FIRST_REFINEMENT);
            let mut next = 2e6;
            for refinement in 0..12 {
                let end = counter.ns + if refinement == late { 1e10 } else { next };
                let mut outdated = 0;
                while counter.ns < end {
                    let sample = counter.true_sample();
                    let error = clock.current.at(sample.ticks).abs_diff(sample.ns);
                    let counts = sample.ns <= clock.counts_until;
                    assert!(error <= 1000 || !counts, "{refinement} of {late}: {error} ns");
                    outdated += u32::from(!counts);
                    counter.step(next / 4.0, 0);
                }
                assert!(outdated == 0 || refinement == late, "{refinement} of {late}: {outdated}");
                next = f64::min(4.0 * next, 5e8);
                let mut sample = counter.true_sample();
                sample.ns += refinement % 2 * 10;
                clock.update(sample, Duration::from_nanos(2 * next as u64));
            }
        }
    }

    #[test]
    fn the_first_refinement_is_in_the_future_however_long_a_start_takes() {
        let first = Sample { ticks: ticks(), ns: boottime(), width: 100 };
        let since = Instant::now() - 2 * CALIBRATION;
        // Later refinements come after a multiple of this time.
        assert_eq!(Clock::Calibrating { first, since }.first_refinement(), Some(FIRST_REFINEMENT));
    }

    #[test]
    fn parameters_that_count_no_longer_are_not_loaded() {
        let first = Sample { ticks: ticks(), ns: boottime(), width: 100_000 };
        std::thread::sleep(FIRST_BASE);
        let second = Sample { ticks: ticks(), ns: boottime(), width: 100_000 };
        let mut clock = Clock::Counter(Discipline::new(first, second, FIRST_REFINEMENT));
        let published = Published::new(&clock);
        std::thread::sleep(CALIBRATION);
        assert_eq!(published.load().0, Parameters::FALLBACK);
        let patience = Duration::from_secs(5);
        assert!(clock.refine(&published, FIRST_REFINEMENT, patience), "threads may have the fallback");
        assert_eq!(published.load().0, clock.parameters());
        // The counter jumps back by an hour: time by these parameters, seen from an hour ago.
        let Clock::Counter(discipline) = &mut clock else { panic!("no counter") };
        discipline.counts_until += 3_600_000_000_000;
        published.store(&clock);
        assert_eq!(published.load().0, Parameters::FALLBACK);
    }

    #[test]
    fn the_real_counter_agrees_with_boottime() {
        let mut clock = Clock::start(ClockSource::Counter);
        let published = Published::new(&clock);
        for _ in 0..3 {
            let (before, (_, converted), after) = (boottime(), published.load(), boottime());
            assert!(
                before - 2_000 <= converted && converted <= after + 2_000,
                "{before} {converted} {after}"
            );
            std::thread::sleep(CALIBRATION);
            clock.refine(&published, CALIBRATION, CALIBRATION);
        }
    }
}
