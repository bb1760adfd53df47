//! Counters of the process, against what the process itself measures.

#![allow(unsafe_code)] // getrusage

use std::fs::File;
use std::time::{Duration, Instant};

use hairline::{Format, Overflow, SessionBuilder};
use hairline_tests::recording::{FORMATS, Trace, record_with};

/// The sum of a counter's values, each times the seconds for which it stands.
fn integral(trace: &Trace, name: &str) -> f64 {
    let sql = format!(
        "select ifnull(sum(value * (next - ts)), 0) / 1e9 from (select c.ts, c.value, \
         lead(c.ts) over (order by c.ts, c.id) as next from counter c join process_counter_track t \
         on c.track_id = t.id where t.name = '{name}')"
    );
    trace.rows(&sql).parse().expect("a number")
}

/// The lowest and the highest value of a counter.
fn range(trace: &Trace, name: &str) -> (f64, f64) {
    let sql = format!(
        "select min(c.value), max(c.value) from counter c join process_counter_track t on c.track_id = t.id \
         where t.name = '{name}'"
    );
    let row = trace.rows(&sql);
    let (least, most) = row.split_once('\t').expect("two values");
    (least.parse().expect("a number"), most.parse().expect("a number"))
}

fn usage() -> libc::rusage {
    // SAFETY: a struct of integers, for which 0 is a value.
    let mut usage = unsafe { std::mem::zeroed() };
    // SAFETY: writes one `rusage`.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) }, 0);
    usage
}

fn seconds(usage: &libc::rusage) -> f64 {
    let of = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    of(usage.ru_utime) + of(usage.ru_stime)
}

const NAMES: &str = "select distinct t.name || ' ' || ifnull(t.unit, '-') from counter c \
     join process_counter_track t on c.track_id = t.id order by 1";

/// Holds memory, files and threads for some samples, and computes and sleeps meanwhile.
fn work() {
    std::thread::sleep(Duration::from_millis(40)); // samples before
    let memory = vec![1_u8; 64 << 20];
    let files: Vec<File> = (0..20).map(|_| File::open("/proc/self/stat").expect("a file")).collect();
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| (0..100).for_each(|_| std::thread::sleep(Duration::from_millis(2))));
        }
        let until = Instant::now() + Duration::from_millis(150);
        while Instant::now() < until {
            std::hint::black_box(&memory);
        }
    });
    drop(files);
}

fn builder(builder: SessionBuilder, overflow: Overflow) -> SessionBuilder {
    // The filter is for events of the program.
    builder.categories("nothing").overflow(overflow).counters("all@200")
}

#[test]
fn counters_of_the_process_are_what_the_process_measures() {
    for overflow in [Overflow::Drop, Overflow::Block(Duration::from_secs(1)), Overflow::Overwrite] {
        for format in FORMATS {
            let (mut before, mut after) = (usage(), usage());
            let trace = record_with(
                format,
                |b| builder(b, overflow),
                |_| {
                    before = usage();
                    work();
                    after = usage();
                },
            );
            let about = format!("{format:?} {overflow:?}");
            for (name, least) in
                [("process: resident memory", 60e6), ("process: open files", 20.0), ("process: threads", 5.0)]
            {
                let (low, high) = range(&trace, name);
                assert!(high - low >= least, "{about}: {name} from {low} to {high}");
            }
            // The session records a little longer than the program measures.
            let own = [
                ("process: cpu", 100.0 * (seconds(&after) - seconds(&before)), 2.0),
                ("process: waits", (after.ru_nvcsw - before.ru_nvcsw) as f64, 20.0),
                ("process: page faults", (after.ru_minflt - before.ru_minflt) as f64, 200.0),
            ];
            for (name, own, more) in own {
                let recorded = integral(&trace, name);
                assert!(
                    recorded > 0.9 * own - more && recorded < 1.1 * own + more,
                    "{about}: {name}: {recorded}, not {own}"
                );
            }
            assert_eq!(trace.summary.lost.total(), 0, "{about}");
        }
    }
}

#[test]
fn only_the_groups_that_were_asked_for_are_recorded_and_a_rate_ends() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.counters("rss, cpu@100"),
            |_| std::thread::sleep(Duration::from_millis(60)),
        );
        let expected = "process: cpu %\nprocess: resident memory bytes";
        assert_eq!(trace.rows(NAMES), expected, "{format:?}");
        let last = "select c.value from counter c join process_counter_track t on c.track_id = t.id \
                    where t.name = 'process: cpu' order by c.ts desc, c.id desc limit 1";
        assert_eq!(trace.rows(last), "0.0", "{format:?}");
    }
    let none = record_with(Format::TrackEvent, |b| b, |_| std::thread::sleep(Duration::from_millis(20)));
    assert_eq!(none.rows("select count(*) from counter"), "0");
}
