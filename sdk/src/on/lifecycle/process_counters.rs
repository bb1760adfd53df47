//! Counters of the process: memory, CPU time, switches. The session's own thread samples them.
//!
//! The settings of the session ask for them, so the filter of categories does not apply.

use std::time::Duration;

use hairline_formats::Value;

use crate::builder::Config;
use crate::on::base::hooks;
use crate::on::base::hooks::{Sampled, Samples};
use crate::on::base::lock::Mutex;
use crate::on::base::platform::usage::Usage;
use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch, Key, registry};
use crate::on::encode::constants;
use crate::on::event::Event;
use crate::on::event::extras::Extras;
use crate::on::session::current;
use crate::on::thread::cold;
use crate::site::{CallsiteKind, Site};
use crate::vocabulary::Unit;

const CATEGORY: &str = "process";

static KEYS: [Key; 1] = [Key::new("value")];

static IN_BYTES: Site = Site::of_unit(Unit::Bytes);
static COUNT: Site = Site::of_unit(Unit::Count);
static PERCENT: Site = Site::of_unit(Unit::Named("%"));
static PER_SECOND: Site = Site::of_unit(Unit::Named("/s"));
static BYTES_PER_SECOND: Site = Site::of_unit(Unit::Named("bytes/s"));

/// A counter, and how it comes from the numbers of the system.
struct Counter {
    callsite: Callsite,
    number: fn(&Usage) -> Option<u64>,
    kind: NumberKind,
}

#[derive(Clone, Copy, PartialEq)]
enum NumberKind {
    /// The number itself.
    Level,
    /// The growth of the number in a second, divided by this.
    Rate(f64),
}

impl Counter {
    const fn new(
        name: &'static str,
        unit: &'static Site,
        kind: NumberKind,
        number: fn(&Usage) -> Option<u64>,
    ) -> Self {
        let callsite = Callsite::new(CallsiteKind::Counter, CATEGORY, name, &KEYS, unit).unfiltered();
        Self { callsite, number, kind }
    }
}

const EACH: NumberKind = NumberKind::Rate(1.0);
/// CPU time is in ns, and 10 ms in a second are 1 %.
const PERCENTAGE: NumberKind = NumberKind::Rate(1e7);

static COUNTERS: [Counter; 13] = [
    Counter::new("process: resident memory", &IN_BYTES, NumberKind::Level, |usage| usage.rss),
    Counter::new("process: cpu", &PERCENT, PERCENTAGE, |usage| usage.cpu),
    Counter::new("process: page faults", &PER_SECOND, EACH, |usage| usage.faults),
    Counter::new("process: major page faults", &PER_SECOND, EACH, |usage| usage.major_faults),
    Counter::new("process: waits", &PER_SECOND, EACH, |usage| usage.waits),
    Counter::new("process: preemptions", &PER_SECOND, EACH, |usage| usage.preemptions),
    Counter::new("process: threads", &COUNT, NumberKind::Level, |usage| usage.threads),
    Counter::new("process: open files", &COUNT, NumberKind::Level, |usage| usage.open_files),
    Counter::new("process: read from disk", &BYTES_PER_SECOND, EACH, |usage| usage.read),
    Counter::new("process: written to disk", &BYTES_PER_SECOND, EACH, |usage| usage.written),
    Counter::new("process: cycles", &PER_SECOND, EACH, |usage| usage.hardware[0]),
    Counter::new("process: instructions", &PER_SECOND, EACH, |usage| usage.hardware[1]),
    Counter::new("process: cache misses", &PER_SECOND, EACH, |usage| usage.hardware[2]),
];

/// The state of the samples.
#[derive(Debug)]
struct Sampling {
    /// The session that records them.
    epoch: Option<Epoch>,
    /// The last sample, and its time in the trace.
    last: Option<(Usage, u64)>,
    /// The last value of each counter.
    recorded: [Option<f64>; COUNTERS.len()],
}

static SAMPLING: Mutex<Sampling> = Mutex::new(Sampling::NONE);

/// Makes the session's own thread sample, if the settings ask for it.
pub(crate) fn install(config: &Config) {
    if config.counters.is_some() {
        COUNTERS.iter().for_each(|counter| registry::register(&counter.callsite, constants::constants));
        hooks::set_sampler(Samples::Process, sample);
    }
}

/// Samples, on the own thread of the session with this epoch. Returns the time until the next sample, `None`
/// if the session does not record these counters.
fn sample(epoch: u32, when: Sampled) -> Option<Duration> {
    let epoch = Epoch::from_raw(epoch)?;
    let shared = current::current(epoch)?;
    let wanted = shared.settings.counters?;
    let now = shared.now();
    let mut sampling = Sampling::take(epoch)?;
    let wait = sampling.last.map_or(Duration::ZERO, |(_, at)| {
        wanted.period().saturating_sub(Duration::from_nanos(now.saturating_sub(at)))
    });
    if when == Sampled::Regularly && wait > Duration::ZERO {
        sampling.keep();
        return Some(wait);
    }
    let usage = Usage { hardware: shared.hardware.now(), ..Usage::now(wanted) };
    let values = sampling.values(usage, now, when);
    if when == Sampled::Regularly {
        sampling.keep();
    }
    for (counter, value) in COUNTERS.iter().zip(values) {
        let Some((value, at)) = value else { continue };
        counter.record(epoch, value, at);
        if when == Sampled::AtEnd && counter.kind != NumberKind::Level {
            counter.record(epoch, 0.0, shared.now()); // the end of the last rate
        }
    }
    Some(wanted.period())
}

impl Counter {
    /// Records a value at a time that may be past.
    fn record(&'static self, epoch: Epoch, value: f64, at: u64) {
        let value = match self.kind {
            NumberKind::Level => Value::U64(value as u64),
            NumberKind::Rate(_) => Value::F64(value),
        };
        let (values, extras) = ([value], Extras::new());
        cold::event(epoch, &Event { past: Some(at), ..Event::new(&self.callsite, &values, &extras) });
    }

    /// Returns the value after `now`, and its time. A rate needs a sample before, at whose time it stands: a
    /// counter keeps its value up to the next one.
    fn value(&self, usage: &Usage, now: u64, last: Option<&(Usage, u64)>) -> Option<(f64, u64)> {
        let number = (self.number)(usage)?;
        match (self.kind, last) {
            (NumberKind::Level, _) => Some((number as f64, now)),
            (NumberKind::Rate(divisor), Some((before, at))) => {
                let growth = number.saturating_sub((self.number)(before)?) as f64;
                let seconds = now.saturating_sub(*at).max(1) as f64 / 1e9;
                Some(((growth / divisor / seconds * 10.0).round() / 10.0, *at))
            }
            (NumberKind::Rate(_), None) => None,
        }
    }
}

impl Sampling {
    const NONE: Self = Self { epoch: None, last: None, recorded: [None; COUNTERS.len()] };

    /// Takes the state of a session: the numbers are read without a lock.
    fn take(epoch: Epoch) -> Option<Self> {
        let _busy = this_thread::busy();
        let mut sampling = SAMPLING.lock_unless_lost()?;
        let taken = std::mem::replace(&mut *sampling, Self::NONE);
        drop(sampling);
        Some(if taken.epoch == Some(epoch) { taken } else { Self { epoch: Some(epoch), ..Self::NONE } })
    }

    fn keep(self) {
        let _busy = this_thread::busy();
        if let Some(mut sampling) = SAMPLING.lock_unless_lost() {
            *sampling = self;
        }
    }

    /// Returns the values of the counters that have changed. The last rates are there in any case, since they
    /// end.
    fn values(&mut self, usage: Usage, now: u64, when: Sampled) -> [Option<(f64, u64)>; COUNTERS.len()] {
        let mut values = [None; COUNTERS.len()];
        for ((counter, value), recorded) in COUNTERS.iter().zip(&mut values).zip(&mut self.recorded) {
            *value = counter.value(&usage, now, self.last.as_ref());
            if let Some((number, _)) = *value
                && recorded.replace(number) == Some(number)
                && when == Sampled::Regularly
            {
                *value = None;
            }
        }
        self.last = Some((usage, now));
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_rate_stands_at_the_sample_before_and_is_not_repeated() {
        let usage = |cpu, threads| Usage { cpu: Some(cpu), threads: Some(threads), ..Usage::default() };
        let mut sampling = Sampling::NONE;
        let some =
            |values: [Option<(f64, u64)>; COUNTERS.len()]| values.into_iter().flatten().collect::<Vec<_>>();
        let mut values = |usage, now, when| some(sampling.values(usage, now, when));
        assert_eq!(values(usage(5, 3), 100, Sampled::Regularly), [(3.0, 100)]);
        let half = usage(5 + SECOND / 2, 3);
        assert_eq!(values(half, 100 + SECOND, Sampled::Regularly), [(50.0, 100)]);
        let two = usage(5 + SECOND, 2);
        assert_eq!(values(two, 100 + 2 * SECOND, Sampled::Regularly), [(2.0, 100 + 2 * SECOND)]);
        let last = values(two, 100 + 3 * SECOND, Sampled::AtEnd);
        assert_eq!(last, [(0.0, 100 + 2 * SECOND), (2.0, 100 + 3 * SECOND)]);
    }
}
