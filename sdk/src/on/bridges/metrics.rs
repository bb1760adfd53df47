//! Records the counters, gauges and histograms of the `metrics` crate.
//!
//! A series (a name with its labels) has a callsite of its own, made at its registration. So a change through
//! a handle takes the hot path, like that of a macro.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key};

use crate::on::base::this_thread;
use crate::on::callsite::runtime::CallsiteMemory;
use crate::on::callsite::tables::metrics::{Series, SeriesKind, TABLES};
use crate::on::callsite::{self, Callsite};
use crate::on::event::argument::{Values, number};
use crate::on::lifecycle::entry;
use crate::on::thread::valued;
use crate::site::{CallsiteKind, Site};
use crate::vocabulary::Unit;

/// The category of all series.
const CATEGORY: &str = "metrics";

/// The most series. They stay for the rest of the process, and a program may invent labels.
const MAX_SERIES: usize = 1 << 14;

pub(crate) fn describe_counter(name: &str, unit: metrics::Unit) {
    describe(SeriesKind::Counter, name, unit);
}

pub(crate) fn describe_gauge(name: &str, unit: metrics::Unit) {
    describe(SeriesKind::Gauge, name, unit);
}

pub(crate) fn describe_histogram(name: &str, unit: metrics::Unit) {
    describe(SeriesKind::Histogram, name, unit);
}

/// Keeps the unit for the series that are registered from now on.
fn describe(kind: SeriesKind, name: &str, unit: metrics::Unit) {
    let unit = match unit {
        metrics::Unit::Count => Unit::Count,
        metrics::Unit::Bytes => Unit::Bytes,
        metrics::Unit::Nanoseconds => Unit::Nanoseconds,
        other => Unit::Named(other.as_canonical_label()),
    };
    let Some(_busy) = this_thread::enter() else { return };
    let owned = name.to_owned();
    let Some(mut tables) = TABLES.write_with_room(|tables| (tables.units(kind), 1)) else { return };
    if let Some(known) = tables.units(kind).get_mut(name) {
        *known = unit; // the lock is released before `owned` is freed
        return;
    }
    if tables.units(kind).len() < MAX_SERIES {
        tables.units(kind).insert(owned, unit);
    }
}

pub(crate) fn register_counter(key: &Key) -> Counter {
    match series(SeriesKind::Counter, key) {
        Found::Series(series) => Counter::from_arc(series),
        Found::TooMany => Counter::from_arc(Arc::new(Beyond)),
        Found::Barred => Counter::noop(),
    }
}

pub(crate) fn register_gauge(key: &Key) -> Gauge {
    match series(SeriesKind::Gauge, key) {
        Found::Series(series) => Gauge::from_arc(series),
        Found::TooMany => Gauge::from_arc(Arc::new(Beyond)),
        Found::Barred => Gauge::noop(),
    }
}

pub(crate) fn register_histogram(key: &Key) -> Histogram {
    match series(SeriesKind::Histogram, key) {
        Found::Series(series) => Histogram::from_arc(series),
        Found::TooMany => Histogram::from_arc(Arc::new(Beyond)),
        Found::Barred => Histogram::noop(),
    }
}

/// The outcome of a registration.
enum Found {
    Series(Arc<Series>),
    /// There are as many as there may be.
    TooMany,
    /// The thread may not wait for the tables: it is inside of an event, or in a forked child that does not
    /// trace.
    Barred,
}

/// Returns the series of the key, made at its first registration.
fn series(kind: SeriesKind, key: &Key) -> Found {
    let Some(_busy) = this_thread::enter() else { return Found::Barred };
    let Some(tables) = TABLES.read() else { return Found::Barred };
    if let Ok(series) = tables.find(kind, key) {
        return Found::Series(Arc::clone(series));
    }
    if tables.len() >= MAX_SERIES {
        return Found::TooMany;
    }
    drop(tables);
    // All memory before the lock; what another thread has made meanwhile is freed after it.
    let memory = CallsiteMemory::new(Box::new([callsite::Key::new("value")])).with_name(&track_name(key));
    let mut series = Arc::new(Series { key: key.clone(), callsite: &BEYOND, value: AtomicU64::new(0) });
    let Some(mut tables) = TABLES.write_with_room(|tables| (tables.series(kind), 1)) else {
        return Found::Barred;
    };
    let number = match tables.find(kind, key) {
        Ok(series) => return Found::Series(Arc::clone(series)),
        Err(number) => number,
    };
    let site = Site::of_unit(tables.unit(kind, key.name()));
    if let Some(series) = Arc::get_mut(&mut series) {
        series.callsite = memory.fill(CallsiteKind::Counter, CATEGORY, "", site, entry::first_hit);
    }
    tables.series(kind).insert(number, Arc::clone(&series));
    Found::Series(series)
}

/// Returns the name of the track: `name{key=value,key=value}`.
fn track_name(key: &Key) -> String {
    let mut name = key.name().to_owned();
    let labels = key.labels().enumerate();
    labels.for_each(|(n, label)| {
        let before = if n == 0 { '{' } else { ',' };
        let _ = write!(name, "{before}{}={}", label.key(), label.value()); // a String takes all
    });
    if key.labels().len() > 0 {
        name.push('}');
    }
    name
}

/// Records a value, if the callsite is on.
#[inline]
fn record(callsite: &'static Callsite, value: &impl Values) {
    if let Some(epoch) = callsite.registered_epoch() {
        valued::counter(callsite, epoch, value);
    }
}

impl Series {
    /// Records the value that this thread has just stored, with these bits.
    ///
    /// Another thread may change the value after this one, and record it before. So the thread that records
    /// looks again, and records what it finds, until nothing has changed: the last value in the trace is the
    /// last one. Relaxed: the order of one atomic's changes is all that this needs.
    fn record_stored<V: Values>(&self, mut bits: u64, value: impl Fn(u64) -> V) {
        while let Some(epoch) = self.callsite.registered_epoch() {
            valued::counter(self.callsite, epoch, &value(bits));
            let now = self.value.load(Ordering::Relaxed);
            if now == bits {
                break;
            }
            bits = now;
        }
    }

    fn record_total(&self, total: u64) {
        self.record_stored(total, number);
    }

    /// Changes a gauge.
    fn change(&self, change: impl Fn(f64) -> f64) {
        let mut before = self.value.load(Ordering::Relaxed);
        let now = loop {
            let now = change(f64::from_bits(before)).to_bits();
            match self.value.compare_exchange_weak(before, now, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break now,
                Err(other) => before = other,
            }
        };
        self.record_stored(now, |bits| number(f64::from_bits(bits)));
    }
}

impl CounterFn for Series {
    fn increment(&self, value: u64) {
        self.record_total(self.value.fetch_add(value, Ordering::Relaxed).wrapping_add(value));
    }

    fn absolute(&self, value: u64) {
        if self.value.fetch_max(value, Ordering::Relaxed) < value {
            self.record_total(value);
        }
    }
}

impl GaugeFn for Series {
    fn increment(&self, value: f64) {
        self.change(|before| before + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|before| before - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        record(self.callsite, &number(value));
    }

    fn record_many(&self, value: f64, count: usize) {
        if count > 0 {
            HistogramFn::record(self, value);
        }
    }
}

static BEYOND_KEYS: [callsite::Key; 1] = [callsite::Key::new("value")];
static BEYOND_SITE: Site = Site::of_unit(Unit::Count);
static BEYOND: Callsite = Callsite::new(
    CallsiteKind::Counter,
    CATEGORY,
    "metrics: changes without a track",
    &BEYOND_KEYS,
    &BEYOND_SITE,
);

/// A series beyond [`MAX_SERIES`]: its changes are counted.
struct Beyond;

impl Beyond {
    fn count(&self, changes: u64) {
        static CHANGES: AtomicU64 = AtomicU64::new(0);
        let total = CHANGES.fetch_add(changes, Ordering::Relaxed) + changes;
        record(&BEYOND, &number(total));
    }
}

impl CounterFn for Beyond {
    fn increment(&self, _: u64) {
        self.count(1);
    }

    fn absolute(&self, _: u64) {
        self.count(1);
    }
}

impl GaugeFn for Beyond {
    fn increment(&self, _: f64) {
        self.count(1);
    }

    fn decrement(&self, _: f64) {
        self.count(1);
    }

    fn set(&self, _: f64) {
        self.count(1);
    }
}

impl HistogramFn for Beyond {
    fn record(&self, _: f64) {
        self.count(1);
    }

    fn record_many(&self, _: f64, count: usize) {
        self.count(count as u64);
    }
}
