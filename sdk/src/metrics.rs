//! A recorder for the `metrics` crate.

use std::fmt;
use std::sync::Arc;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SetRecorderError, SharedString, Unit,
};

use crate::imp::measures;

/// Records the counters, gauges and histograms of the `metrics` crate as counter tracks. Feature `metrics`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("hairline-metrics-{}.pftrace", std::process::id()));
/// hairline::MetricsRecorder::new().install()?;
/// metrics::describe_counter!("received", metrics::Unit::Bytes, "bytes of all requests");
///
/// let session = hairline::Session::builder().output(&path).start()?;
/// let received = metrics::counter!("received", "interface" => "eth0");
/// received.increment(512);                             // the track `received{interface=eth0}`
/// metrics::gauge!("depth").set(3.0);
/// session.stop()?;
/// # let _ = std::fs::remove_file(path);
/// # Ok(())
/// # }
/// ```
///
/// The program needs no session of its own: the first value starts the session that `HAIRLINE` asks for.
///
/// | of `metrics` | in the trace |
/// |---|---|
/// | a counter | its total since the process began, at each change |
/// | a gauge | its value, at each change |
/// | a histogram | each value; `record_many` writes one |
/// | name and labels | the name of the track: `name{key=value,key=value}` |
/// | the unit of `describe_counter!` and its like | the unit of the track |
/// | the description | is not recorded |
///
/// All have the category `metrics`. A name has one track, whoever writes it: a counter, a gauge and
/// `trace_counter!` of one name share it. A unit counts for the tracks that are registered after it.
///
/// Threads that change one counter or gauge at the same time may write their values in another order. The
/// last value in the trace is the right one.
///
/// # Cost
///
/// A change through a handle is an atomic addition and a counter event: no lookup, no allocation. The macros
/// of `metrics` look the handle up each time, unless the program keeps it. While no session runs, or the
/// filter excludes `metrics`, a change is an atomic addition, a load and a branch; totals go on to count.
///
/// # Limits
///
/// Tracks are kept for the rest of the process. Of more than 16,384 of them, the changes of the others are
/// counted on the track `metrics: changes without a track`.
pub struct MetricsRecorder {
    other: Option<Box<dyn Recorder + Send + Sync>>,
}

impl MetricsRecorder {
    /// A recorder that passes nothing on to another one.
    #[must_use]
    pub fn new() -> Self {
        Self { other: None }
    }

    /// Passes all that it receives to another recorder too, also while no session runs: `metrics` has room
    /// for one recorder only.
    ///
    /// ```
    /// use hairline::MetricsRecorder;
    ///
    /// let exporter = metrics::NoopRecorder; // for example, one for Prometheus
    /// assert!(MetricsRecorder::new().beside(exporter).install().is_ok());
    /// metrics::counter!("requests").increment(1); // both have it
    /// ```
    #[must_use]
    pub fn beside(mut self, other: impl Recorder + Send + Sync + 'static) -> Self {
        self.other = Some(Box::new(other));
        self
    }

    /// Makes this recorder the recorder of the process.
    ///
    /// # Errors
    /// If the process has a recorder already. Then nothing changes, and the error has this one.
    pub fn install(self) -> Result<(), SetRecorderError<Self>> {
        metrics::set_global_recorder(self)
    }
}

impl Default for MetricsRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MetricsRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsRecorder").field("is_alone", &self.other.is_none()).finish()
    }
}

/// Two handles, of which each receives every change.
struct Both<H>(H, H);

impl CounterFn for Both<Counter> {
    fn increment(&self, value: u64) {
        self.0.increment(value);
        self.1.increment(value);
    }

    fn absolute(&self, value: u64) {
        self.0.absolute(value);
        self.1.absolute(value);
    }
}

impl GaugeFn for Both<Gauge> {
    fn increment(&self, value: f64) {
        self.0.increment(value);
        self.1.increment(value);
    }

    fn decrement(&self, value: f64) {
        self.0.decrement(value);
        self.1.decrement(value);
    }

    fn set(&self, value: f64) {
        self.0.set(value);
        self.1.set(value);
    }
}

impl HistogramFn for Both<Histogram> {
    fn record(&self, value: f64) {
        self.0.record(value);
        self.1.record(value);
    }

    fn record_many(&self, value: f64, count: usize) {
        self.0.record_many(value, count);
        self.1.record_many(value, count);
    }
}

macro_rules! recorder {
    ($($describe:ident, $register:ident: $Handle:ident;)*) => {
        impl Recorder for MetricsRecorder {
            $(
                fn $describe(&self, name: KeyName, unit: Option<Unit>, description: SharedString) {
                    if let Some(unit) = unit {
                        measures::$describe(name.as_str(), unit);
                    }
                    if let Some(other) = &self.other {
                        other.$describe(name, unit, description);
                    }
                }

                fn $register(&self, key: &Key, metadata: &Metadata<'_>) -> $Handle {
                    let own = measures::$register(key);
                    match &self.other {
                        None => own,
                        Some(other) => $Handle::from_arc(Arc::new(Both(own, other.$register(key, metadata)))),
                    }
                }
            )*
        }
    };
}

recorder! {
    describe_counter, register_counter: Counter;
    describe_gauge, register_gauge: Gauge;
    describe_histogram, register_histogram: Histogram;
}
