//! Counters, gauges and histograms of the `metrics` crate, beside another recorder.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, Once};

use hairline::MetricsRecorder;
use hairline_tests::alloc::{CountingAlloc, allocations_during};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, record_in, turn};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

#[global_allocator]
static COUNTING: CountingAlloc = CountingAlloc;

/// The sums that the recorder beside Hairline's was given, and the names that were described to it.
static OTHER: Mutex<BTreeMap<String, f64>> = Mutex::new(BTreeMap::new());

struct Other;

struct Sum(String);

impl Sum {
    fn of(key: &Key) -> Arc<Self> {
        Arc::new(Self(key.name().to_owned()))
    }

    fn add(&self, value: f64) {
        *OTHER.lock().unwrap().entry(self.0.clone()).or_default() += value;
    }
}

impl CounterFn for Sum {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }

    fn absolute(&self, value: u64) {
        self.add(value as f64);
    }
}

impl GaugeFn for Sum {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.add(value);
    }
}

impl HistogramFn for Sum {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Recorder for Other {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        OTHER.lock().unwrap().insert(format!("described {}", name.as_str()), 0.0);
    }

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Sum::of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Sum::of(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Sum::of(key))
    }
}

fn install() -> MutexGuard<'static, ()> {
    static ONCE: Once = Once::new();
    let turn = turn();
    ONCE.call_once(|| MetricsRecorder::new().beside(Other).install().unwrap());
    turn
}

fn given_to_the_other(name: &str) -> Option<f64> {
    OTHER.lock().unwrap().get(name).copied()
}

const VALUES: &str = "select replace(t.name, ':value:0', ''), c.value, ifnull(t.unit, '-') \
     from counter c join counter_track t on c.track_id = t.id order by c.ts, c.id";

#[test]
fn values_have_a_track_with_labels_and_a_unit_and_the_other_recorder_has_them_too() {
    let turn = install();
    describe_counter!("received", Unit::Bytes, "bytes of all requests");
    describe_gauge!("speed", Unit::MegabitsPerSecond, "of the link");
    describe_histogram!("latency", Unit::Milliseconds, "of a request");
    for (n, format) in FORMATS.into_iter().enumerate() {
        let before = |name| given_to_the_other(name).unwrap_or(0.0);
        let others = ["received", "speed", "latency"].map(before);
        let trace = record_in(
            &turn,
            format,
            |b| b.categories("metrics"),
            |_| {
                let run = n.to_string();
                let received = counter!("received", "run" => run.clone(), "interface" => "eth0");
                received.increment(512);
                counter!("received", "interface" => "eth0", "run" => run.clone()).increment(8);
                received.absolute(1000);
                received.absolute(999); // less than it has
                let speed = gauge!("speed", "run" => run.clone());
                speed.set(2.5);
                speed.increment(1.0);
                speed.decrement(0.25);
                let latency = histogram!("latency");
                latency.record(7.5);
                latency.record_many(1.5, 3);
                counter!("plain", "run" => run).increment(1);
            },
        );
        let expected = "received{run=N,interface=eth0}\t512.0\tbytes\n\
             received{run=N,interface=eth0}\t520.0\tbytes\n\
             received{run=N,interface=eth0}\t1000.0\tbytes\n\
             speed{run=N}\t2.5\tMbps\nspeed{run=N}\t3.5\tMbps\nspeed{run=N}\t3.25\tMbps\n\
             latency\t7.5\tms\nlatency\t1.5\tms\nplain{run=N}\t1.0\t-";
        assert_eq!(trace.rows(VALUES), expected.replace('N', &n.to_string()), "{format:?}");
        assert_eq!(given_to_the_other("received"), Some(others[0] + 512.0 + 8.0 + 1000.0 + 999.0));
        assert_eq!(given_to_the_other("speed"), Some(others[1] + 2.5 + 1.0 - 0.25));
        assert_eq!(given_to_the_other("latency"), Some(others[2] + 7.5 + 3.0 * 1.5));
    }
    assert!(given_to_the_other("described received").is_some());
}

#[test]
fn a_value_that_threads_change_at_once_ends_at_the_right_one() {
    const THREADS: usize = 4;
    const TIMES: usize = 5_000;
    let turn = install();
    for format in FORMATS {
        let total = counter!("total", "format" => format!("{format:?}"));
        let open = gauge!("open", "format" => format!("{format:?}"));
        let trace = record_in(
            &turn,
            format,
            |b| b.buffer_size(64 << 20),
            |_| {
                std::thread::scope(|threads| {
                    for _ in 0..THREADS {
                        threads.spawn(|| {
                            for _ in 0..TIMES {
                                total.increment(1);
                                open.increment(2.0);
                                open.decrement(1.0);
                            }
                        });
                    }
                });
            },
        );
        let last = trace.rows(
            "select substr(name, 1, 4), value from (select t.name, c.value, \
             row_number() over (partition by t.id order by c.ts desc, c.id desc) as rank \
             from counter c join counter_track t on c.track_id = t.id) where rank = 1 order by 1",
        );
        let count = THREADS * TIMES;
        assert_eq!(last, format!("open\t{count}.0\ntota\t{count}.0"), "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0);
    }
}

#[test]
fn a_change_through_a_handle_allocates_nothing() {
    for format in FORMATS {
        let turn = turn();
        // Without another recorder.
        let recorder = MetricsRecorder::new();
        let metadata = Metadata::new("t", metrics::Level::INFO, None);
        let key = |name| Key::from((name, &[("a", "b")]));
        let count = recorder.register_counter(&key("count"), &metadata);
        let level = recorder.register_gauge(&key("level"), &metadata);
        let size = recorder.register_histogram(&key("size"), &metadata);
        let change = |times: u64| {
            for n in 0..times {
                count.increment(n);
                level.set(n as f64);
                size.record(n as f64);
            }
        };
        let trace = record_in(
            &turn,
            format,
            |b| b,
            |_| {
                change(20);
                assert_eq!(allocations_during(|| change(1000)).1, 0);
            },
        );
        assert!(trace.summary.records >= 3 * 1020 && trace.summary.lost.total() == 0);
    }
}

#[test]
fn totals_count_while_nothing_is_recorded() {
    let turn = install();
    for format in FORMATS {
        let count = counter!("counts on", "format" => format!("{format:?}"));
        count.increment(1);
        let excluded = record_in(&turn, format, |b| b.categories("-metrics"), |_| count.increment(1));
        assert_eq!(excluded.rows("select count(*) from counter"), "0");
        let trace = record_in(&turn, format, |b| b, |_| count.increment(1));
        let value = "select c.value from counter c join counter_track t on c.track_id = t.id";
        assert_eq!(trace.rows(value), "3.0", "{format:?}");
    }
}

/// Set in the process that this test runs itself in once more: a program without session code.
const WITHOUT_SESSION_CODE: &str = "WITHOUT_SESSION_CODE";

#[test]
fn the_first_value_starts_the_session_of_the_environment() {
    if std::env::var_os(WITHOUT_SESSION_CODE).is_some() {
        MetricsRecorder::new().install().unwrap();
        counter!("requests").increment(7);
        return;
    }
    for name in ["t.fxt", "t.pftrace"] {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_first_value_starts_the_session_of_the_environment"])
            .current_dir(&folder)
            .env("HAIRLINE", name)
            .env(WITHOUT_SESSION_CODE, "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let verdict = judge::load(folder.path().join(name), &[VALUES]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "requests\t7.0\t-");
    }
}
