//! The stacks of events, and of slow slices.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hairline::{Format, MemoryOutput, Overflow, Session, SessionBuilder, trace_instant, trace_scope};
use hairline_tests::judge::{self, Verdict};
use hairline_tests::recording::{FORMATS, extension};

use crate::record::{STACKS, hairline, numbers};

/// Each sample at an event, with its time, its thread and its functions.
const AT_EVENTS: &str = "create perfetto view at_events as select p.ts, p.utid, stack from stacks \
    join perf_sample p on p.id = sample";

#[inline(never)]
fn asks_the_database(n: u32) -> u32 {
    trace_scope!("db", "query", n);
    trace_instant!("db", "row");
    trace_instant!("db", "cell", n);
    black_box(n) + 1
}

#[inline(never)]
fn asks_the_network(n: u32) -> u32 {
    trace_scope!("net", "send");
    black_box(n) + 1
}

fn record(format: Format, with: impl FnOnce(SessionBuilder) -> SessionBuilder, f: impl FnOnce()) -> Vec<u8> {
    let memory = MemoryOutput::new();
    let session = with(Session::builder().output_memory(&memory).format(format)).start().expect("it starts");
    f();
    let summary = session.stop().expect("it stops");
    assert!(summary.notes.is_empty(), "{:?}", summary.notes);
    assert_eq!(summary.lost.kernel_ring, 0);
    memory.to_vec()
}

fn ask(format: Format, trace: &[u8], sql: &[&str]) -> Verdict {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("t.{}", extension(format)));
    std::fs::write(&path, trace).expect("a file");
    let verdict = judge::load(&path, &[&[STACKS, AT_EVENTS], sql].concat());
    verdict.require_clean();
    verdict
}

#[test]
fn the_events_of_chosen_categories_have_their_stack_and_others_have_none() {
    let _one = crate::ONE.lock();
    for format in FORMATS {
        let trace = record(
            format,
            |b| b.stacks("db"),
            || {
                let work = || (0..20).fold(0, |n, _| asks_the_network(asks_the_database(n)));
                std::thread::scope(|scope| (0..3).for_each(|_| _ = scope.spawn(work)));
            },
        );
        let sql = [
            "select count(), sum(stack glob '*asks_the_database*'), sum(stack glob '*asks_the_network*') \
             from at_events",
            "select count(), sum(stacks = 1) from (select s.id, count(e.ts) as stacks from slice s \
             join thread_track t on t.id = s.track_id left join at_events e on e.utid = t.utid and e.ts = s.ts \
             where s.category = 'db' group by s.id)",
        ];
        let verdict = ask(format, &trace, &sql);
        assert_eq!(numbers(&verdict, 2), [180, 180, 0], "{format:?}");
        assert_eq!(numbers(&verdict, 3), [180, 180], "{format:?}: each event has one stack, at its time");
    }
}

#[test]
fn the_option_of_a_macro_asks_for_a_stack_in_any_session() {
    let _one = crate::ONE.lock();
    for format in FORMATS {
        let trace = record(
            format,
            |b| b,
            || {
                trace_scope!("app", "outer", slow: Duration::from_secs(9), stack: true);
                trace_instant!("app", "inner", n = 1, stack: true);
                trace_instant!("app", "without", stack: false);
                trace_scope!("app", "without");
            },
        );
        let sql = [
            "select count(distinct e.ts), count(distinct s.name), min(s.name != 'without') from at_events e \
            join thread_track t using (utid) join slice s on s.track_id = t.id and s.ts = e.ts",
        ];
        assert_eq!(numbers(&ask(format, &trace, &sql), 2), [2, 2, 1], "{format:?}");
    }
}

#[inline(never)]
fn waits_for_disk(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
    black_box(ms); // no tail call, which would leave no frame
}

#[inline(never)]
fn computes_for_long(ms: u64) {
    let until = Instant::now() + Duration::from_millis(ms);
    while Instant::now() < until {
        black_box((0..1000_u64).sum::<u64>());
    }
}

fn requests(slow: u64, computing: usize) {
    let work = |waits: bool| {
        for n in 0..10 {
            trace_scope!("net", "request");
            let ms = if n % 2 == 1 { slow } else { 1 };
            if waits { waits_for_disk(ms) } else { computes_for_long(ms) }
        }
    };
    std::thread::scope(|scope| (0..10).for_each(|n| _ = scope.spawn(move || work(n >= computing))));
}

/// For each slow slice: its stacks at the limit and at the end, and those that name what it did.
const OF_SLOW: [&str; 2] = [
    "create perfetto view of_slow as select s.id, e.ts - s.ts as at, s.dur, stack from slice s \
     join thread_track t on t.id = track_id join at_events e on e.utid = t.utid and e.ts between s.ts and s.ts + s.dur \
     where s.name = 'request'",
    "select count(distinct id), count(), sum(at = dur), sum(at < dur and at >= 50000000), \
     sum(stack glob '*waits_for_disk*' or stack glob '*computes_for_long*'), min(dur), \
     cast(max(iif(at < dur, at, 0)) as int) from of_slow",
];

fn check_slow(format: Format, trace: &[u8]) {
    let verdict = ask(format, trace, &OF_SLOW);
    let [slices, all, at_end, at_limit, named, shortest, latest] = numbers(&verdict, 3)[..] else { panic!() };
    println!("{format:?}: {slices} {all} {at_end} {at_limit} {named} {shortest} {latest}");
    assert_eq!((slices, all, at_end, at_limit), (50, 100, 50, 50), "{format:?}");
    assert!(named >= 50, "{format:?}: those at the limit name what the slice does: {named}");
    assert!(shortest >= 80_000_000, "the quick ones have none");
}

#[test]
fn a_slow_slice_has_its_stack_at_the_limit_and_at_its_end() {
    let _one = crate::ONE.lock();
    for format in FORMATS {
        let with =
            |b: SessionBuilder| b.trigger_on_slow("net/*", Duration::from_millis(50)).slow_stacks(true);
        let trace = record(format, with, || requests(80, 0));
        check_slow(format, &trace);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("t"), &trace).expect("a file");
        let output = hairline(folder.path(), &["explain", "t", "net/request"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("waits_for_disk"), "{format:?}: {said}");
    }
}

#[test]
fn messages_and_events_of_tracing_have_stacks_too() {
    let _one = crate::ONE.lock();
    for format in FORMATS {
        let trace = record(
            format,
            |b| b.stacks("app,samples*"),
            || {
                hairline::trace_log!(hairline::Level::Info, "app", "a message");
                tracing::subscriber::with_default(hairline::Subscriber::new(), || {
                    tracing::info!(n = 1, "an event");
                    tracing::info_span!("a span").in_scope(|| black_box(1));
                });
            },
        );
        let verdict = ask(format, &trace, &["select count() from at_events"]);
        assert_eq!(numbers(&verdict, 2), [3], "{format:?}");
    }
}

/// A program has no stack at the limit if it handles the signal itself, and is told so.
#[test]
#[allow(unsafe_code)] // a handler
fn the_signal_of_a_program_that_handles_it_is_left_alone() {
    extern "C" fn of_the_program(_: libc::c_int) {}
    let _one = crate::ONE.lock();
    // SAFETY: a handler that does nothing.
    let before = unsafe { libc::signal(libc::SIGPROF, of_the_program as *const () as usize) };
    let memory = MemoryOutput::new();
    let builder =
        Session::builder().output_memory(&memory).trigger_on_slow("net/*", Duration::from_millis(10));
    let session = builder.slow_stacks(true).start().expect("it starts");
    {
        trace_scope!("net", "request");
        waits_for_disk(30);
    }
    let summary = session.stop().expect("it stops");
    // SAFETY: the handler from before.
    let own = unsafe { libc::signal(libc::SIGPROF, before) };
    assert_eq!(own, of_the_program as *const () as usize);
    assert!(summary.notes.iter().any(|note| note.contains("none at its limit")), "{:?}", summary.notes);
    let verdict = ask(Format::TrackEvent, &memory.to_vec(), &["select count() from at_events"]);
    assert_eq!(numbers(&verdict, 2), [1], "that of its end");
}

#[test]
fn a_window_has_the_stacks_of_its_slow_slices() {
    let _one = crate::ONE.lock();
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(format!("t.{}", extension(format)));
        let session = Session::builder()
            .output(&path)
            .overflow(Overflow::Overwrite)
            .trigger_on_slow("net/*", Duration::from_millis(50))
            .slow_stacks(true)
            .start()
            .expect("it starts");
        requests(80, 1);
        let slow = folder.path().join(format!("t.net-request.1.{}", extension(format)));
        session.stop().expect("it stops");
        check_slow(format, &std::fs::read(&path).expect("the window at the end"));
        let verdict = ask(format, &std::fs::read(slow).expect("the window of the first"), &OF_SLOW);
        assert!(numbers(&verdict, 3)[1] >= 2, "{format:?}");
    }
}
