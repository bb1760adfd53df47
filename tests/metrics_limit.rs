//! More series of the `metrics` crate than Hairline keeps.

use hairline::MetricsRecorder;
use hairline_tests::recording::{FORMATS, record};
use metrics::{Key, Metadata, Recorder};

const KEPT: u64 = 16_384;

#[test]
fn changes_of_series_beyond_the_limit_are_counted() {
    let recorder = MetricsRecorder::new();
    let metadata = Metadata::new("t", metrics::Level::INFO, None);
    let counter = |n: u64| recorder.register_counter(&Key::from(("n", &[("n", n.to_string())])), &metadata);
    (0..KEPT).for_each(|n| drop(counter(n)));
    let mut beyond = 0;
    for format in FORMATS {
        let trace = record(format, |_| {
            counter(KEPT - 1).increment(5);
            (0..10).for_each(|n| counter(KEPT + n).increment(1));
        });
        beyond += 10;
        let last = trace.rows(
            "select replace(t.name, ':value:0', ''), count(*) > 0, max(c.value) >= 5 \
             from counter c join counter_track t on c.track_id = t.id group by t.name order by t.name",
        );
        assert_eq!(last, "metrics: changes without a track\t1\t1\nn{n=16383}\t1\t1", "{format:?}");
        let most = "select max(c.value) from counter c join counter_track t on c.track_id = t.id \
                    where t.name like 'metrics: %'";
        assert_eq!(trace.rows(most), format!("{beyond}.0"), "{format:?}");
    }
}
