//! Trace time: nanoseconds of `CLOCK_BOOTTIME`, read as cheaply as the machine allows.
//!
//! # Reading
//!
//! With an invariant TSC: `ns = (ticks * multiplier >> 64) + offset`, one `rdtsc`, one multiplication, one
//! addition. The multiplier is ns per tick as a fraction of 2^64, so the counter must tick faster than 1 GHz.
//! Multiplier 0 stands for the fallback: `clock_gettime(CLOCK_BOOTTIME)` itself.
//!
//! # Keeping true
//!
//! The parameters come from two samples 10 ms apart, good to a few parts per million. The writer thread goes on
//! sampling and, through [`Discipline`], publishes parameters that agree with the old ones at the moment of the
//! change and lead the error to zero over the next seconds. So time never jumps back. It jumps forward only where
//! BOOTTIME did (a suspended machine).
//!
//! A thread takes new parameters at each cold event: a full chunk, or 2 ms without an event
//! ([`GAP`](super::thread)). So it is never more than a chunk of events, each at most 2 ms after the other, behind.

#![allow(unsafe_code)] // rdtsc and clock_gettime
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // no counter is read there

mod published;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::on::base::clock::published::Pair;
use crate::options::ClockSource;

/// Time between the first two samples. The budget for a session's start is 15 ms.
const CALIBRATION: Duration = Duration::from_millis(10);

/// Tries for one sample; the one with the least time between its two counter reads is taken.
const TRIES: usize = 8;

/// An error above this is a jump of BOOTTIME (a suspended machine), not drift.
const JUMP_NS: i64 = 1_000_000;

/// The rate is estimated over this many samples back.
const WINDOW: usize = 16;

/// Now, in ns, by these parameters.
#[inline(always)]
pub(crate) fn now(multiplier: u64, offset: u64) -> u64 {
    counter_now(multiplier, offset).unwrap_or_else(boottime)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: rdtsc is there on every x86-64 and touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// [`now`], if there is a counter to read.
#[inline(always)]
pub(crate) fn counter_now(multiplier: u64, offset: u64) -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    if multiplier != 0 {
        return Some(Parameters { multiplier, offset }.at(ticks()));
    }
    let _ = (multiplier, offset);
    None
}

/// `CLOCK_BOOTTIME`, ns.
#[inline(never)]
pub(crate) fn boottime() -> u64 {
    system(libc::CLOCK_BOOTTIME)
}

/// CPU time of this thread, ns.
pub(crate) fn thread_time() -> u64 {
    system(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// One of the system's clocks, ns; 0 where the system does not have it.
pub(crate) fn system(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; an unknown clock is an error that leaves it as it is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.cast_unsigned())
}

/// How ticks become nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) multiplier: u64,
    pub(crate) offset: u64,
}

impl Parameters {
    const FALLBACK: Self = Self { multiplier: 0, offset: 0 };

    fn words(self) -> [u64; 2] {
        [self.multiplier, self.offset]
    }

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

    /// The line through (`ticks`, `ns`) with this slope (ns per tick).
    fn through(ticks: u64, ns: u64, slope: f64) -> Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 < slope < 1
        let multiplier = (slope * 2f64.powi(64)) as u64;
        let line = Self { multiplier, offset: 0 };
        Self { offset: ns.wrapping_sub(line.ns(ticks)), ..line }
    }
}

/// A counter's reading and the time it was taken at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) ticks: u64,
    pub(crate) ns: u64,
}

impl Sample {
    #[cfg(target_arch = "x86_64")]
    fn take() -> Self {
        let tries = (0..TRIES).map(|_| {
            let before = ticks();
            let ns = boottime();
            let width = ticks().wrapping_sub(before);
            (width, Self { ticks: before.wrapping_add(width / 2), ns })
        });
        tries.min_by_key(|(width, _)| *width).map_or(Self { ticks: 0, ns: 0 }, |(_, sample)| sample)
    }
}

/// Steers parameters so that converted time follows the samples, without a step.
#[derive(Debug)]
pub(crate) struct Discipline {
    current: Parameters,
    samples: VecDeque<Sample>,
}

impl Discipline {
    /// From two samples at different times.
    pub(crate) fn new(first: Sample, second: Sample) -> Self {
        let slope = slope(first, second).unwrap_or(0.5);
        let current = Parameters::through(second.ticks, second.ns, slope);
        Self { current, samples: VecDeque::from([first, second]) }
    }

    pub(crate) fn current(&self) -> Parameters {
        self.current
    }

    /// Takes another sample in; the parameters from its moment on.
    pub(crate) fn update(&mut self, sample: Sample) -> Parameters {
        let shown = self.current.at(sample.ticks);
        let error = sample.ns.wrapping_sub(shown).cast_signed();
        if error.abs() > JUMP_NS {
            self.samples.clear();
            self.samples.push_back(sample);
            if error > 0 {
                // The counter stood still while time went on: go on from there at the same rate.
                self.current.offset = self.current.offset.wrapping_add(error.cast_unsigned());
            }
            return self.current;
        }
        let since = self.samples.back().map_or(0, |last| sample.ns.saturating_sub(last.ns));
        let rate = self.samples.front().and_then(|oldest| slope(*oldest, sample));
        self.samples.push_back(sample);
        if self.samples.len() > WINDOW {
            self.samples.pop_front();
        }
        if let Some(rate) = rate {
            // Meet the true time as far ahead as the last sample lies back, but not sooner than in half a second.
            #[allow(clippy::cast_precision_loss)] // both are small
            let correction = error as f64 / since.max(500_000_000) as f64;
            self.current = Parameters::through(sample.ticks, shown, rate * (1.0 + correction));
        }
        self.current
    }
}

/// ns per tick between two samples; None where that makes no sense.
fn slope(from: Sample, to: Sample) -> Option<f64> {
    let (ticks, ns) = (to.ticks.checked_sub(from.ticks)?, to.ns.checked_sub(from.ns)?);
    #[allow(clippy::cast_precision_loss)] // 53 bits of a difference is finer than a sample
    let slope = ns as f64 / ticks as f64;
    (ticks > 0 && slope > 0.0 && slope < 1.0).then_some(slope)
}

/// Parameters that the writer thread changes and every thread reads.
#[derive(Debug)]
pub(crate) struct Published(Pair);

impl Published {
    pub(crate) fn new(parameters: Parameters) -> Self {
        Self(Pair::new(parameters.words()))
    }

    /// Only the writer thread stores.
    pub(crate) fn store(&self, parameters: Parameters) {
        self.0.store(parameters.words());
    }

    /// The latest parameters. A thread that was overtaken by a store in each of its few tries gets the system's clock, which
    /// is true without parameters: it never waits for the writer thread.
    pub(crate) fn load(&self) -> Parameters {
        self.0.load().map_or(Parameters::FALLBACK, |[multiplier, offset]| Parameters { multiplier, offset })
    }
}

/// The session's clock, as the writer thread keeps it.
#[derive(Debug)]
pub(crate) enum Clock {
    /// `CLOCK_BOOTTIME` at each event.
    Fallback,
    /// The TSC.
    #[cfg(target_arch = "x86_64")]
    Counter(Discipline),
}

/// A clock between its two first samples.
pub(crate) struct Calibration {
    first: Option<(Sample, Instant)>,
}

impl Calibration {
    /// Takes the first sample; do the session's other setting up before [`Calibration::finish`].
    pub(crate) fn start(source: ClockSource) -> Self {
        #[cfg(target_arch = "x86_64")]
        if source == ClockSource::Counter && counter_is_usable() {
            return Self { first: Some((Sample::take(), Instant::now())) };
        }
        let _ = source;
        Self { first: None }
    }

    /// Waits until the calibration's time is over and takes the second sample.
    pub(crate) fn finish(self) -> Clock {
        #[cfg(target_arch = "x86_64")]
        if let Some((first, started)) = self.first {
            std::thread::sleep(CALIBRATION.saturating_sub(started.elapsed()));
            let second = Sample::take();
            if slope(first, second).is_some() {
                return Clock::Counter(Discipline::new(first, second));
            }
        }
        Clock::Fallback
    }
}

impl Clock {
    pub(crate) fn parameters(&self) -> Parameters {
        match self {
            Self::Fallback => Parameters::FALLBACK,
            #[cfg(target_arch = "x86_64")]
            Self::Counter(discipline) => discipline.current(),
        }
    }

    /// Samples again and publishes the outcome.
    pub(crate) fn refine(&mut self, published: &Published) {
        match self {
            Self::Fallback => {}
            #[cfg(target_arch = "x86_64")]
            Self::Counter(discipline) => published.store(discipline.update(Sample::take())),
        }
    }
}

/// Whether the TSC ticks at one rate whatever the cores do, and the kernel has not found it wanting.
#[cfg(target_arch = "x86_64")]
fn counter_is_usable() -> bool {
    use core::arch::x86_64::__cpuid;
    // Leaf 0x8000_0007, EDX bit 8: invariant TSC (Intel SDM vol. 3, "Invariant TSC").
    #[allow(unused_unsafe)] // a safe intrinsic in newer toolchains
    // SAFETY: cpuid is there on every x86-64.
    let invariant =
        unsafe { __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0 };
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    // A kernel that found the TSC unstable has left it; these others are made from it.
    let trusted = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"];
    invariant && source.map_or(true, |s| trusted.contains(&s.trim()))
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
            Sample { ticks: self.ticks as u64, ns: self.ns as u64 }
        }

        fn noisy_sample(&mut self) -> Sample {
            self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let sample = self.true_sample();
            Sample { ns: sample.ns + (self.noise >> 33) % 100, ..sample }
        }
    }

    #[test]
    fn time_stays_within_10_us_for_a_simulated_hour_and_never_goes_back() {
        let mut counter = Drifting { ticks: 1e15, ns: 3.6e14, noise: 1 };
        let first = counter.noisy_sample();
        counter.step(1e7, 0);
        let mut clock = Discipline::new(first, counter.noisy_sample());
        let (mut last, mut worst) = (0, 0);
        for round in 0..3600 {
            for _ in 0..10 {
                counter.step(1e8, round);
                let sample = counter.true_sample();
                let shown = clock.current().at(sample.ticks);
                assert!(shown >= last, "round {round}");
                last = shown;
                worst = worst.max(shown.abs_diff(sample.ns));
            }
            let before = clock.current();
            let sample = counter.noisy_sample();
            let after = clock.update(sample);
            assert!(
                after.at(sample.ticks).abs_diff(before.at(sample.ticks)) <= 1,
                "continuous at the change"
            );
        }
        assert!(worst < 10_000, "{worst} ns");
    }

    #[test]
    fn time_follows_a_suspended_machine_forward() {
        let mut counter = Drifting { ticks: 1e12, ns: 1e12, noise: 1 };
        let first = counter.true_sample();
        counter.step(1e7, 0);
        let mut clock = Discipline::new(first, counter.true_sample());
        counter.ns += 3.6e12; // an hour in which the counter stood still
        clock.update(counter.true_sample());
        for _ in 0..5 {
            counter.step(1e9, 0);
            let sample = counter.true_sample();
            assert!(clock.current().at(sample.ticks).abs_diff(sample.ns) < 20_000);
            clock.update(sample);
        }
    }

    #[test]
    fn published_parameters_are_read_whole() {
        let published = Published::new(Parameters { multiplier: 0, offset: 0 });
        std::thread::scope(|threads| {
            threads
                .spawn(|| (1..20_000).for_each(|n| published.store(Parameters { multiplier: n, offset: n })));
            for _ in 0..20_000 {
                let p = published.load();
                assert_eq!(p.multiplier, p.offset);
            }
        });
    }

    #[test]
    fn the_real_counter_agrees_with_boottime() {
        let clock = Calibration::start(ClockSource::Counter).finish().parameters();
        let (before, shown, after) = (boottime(), clock.now(), boottime());
        assert!(before - 2_000 <= shown && shown <= after + 2_000, "{before} {shown} {after}");
    }
}
