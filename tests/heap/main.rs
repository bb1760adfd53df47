//! `Heap` around an allocator of the program's choice: what the trace says of the program's memory.

#![allow(unsafe_code)] // a global allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hairline::{Heap, Overflow, Session, trace_instant, trace_scope};
use hairline_tests::children;
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, Trace, extension, record, record_with, turn};
use hairline_tests::unlocked;

/// The program's own allocator, which must not be called under a lock of the recorder.
struct Programs;

// SAFETY: every call goes to `System` with its arguments as they are.
unsafe impl GlobalAlloc for Programs {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unlocked::require("the program's allocator is called");
        // SAFETY: the caller keeps the contract, which is also `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unlocked::require("the program's allocator is called");
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

const LARGE: usize = 100_000;

#[global_allocator]
static HEAP: Heap<Programs> = Heap::new(Programs).report_above(LARGE);

/// Long enough for two samples.
const SOME_SAMPLES: Duration = Duration::from_millis(130);

/// Bytes that the recorder itself may hold or free, beside the blocks of a test.
const SLACK: i64 = 1 << 20;

const LIVE: &str = "heap: live bytes since start";

/// One test at a time: each counts the memory of the whole process.
fn one() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner) // a failed test before this one
}

/// The last value of the counter, and its largest and smallest one.
fn values(trace: &Trace, name: &str) -> [i64; 3] {
    let row = trace.rows(&format!(
        "select cast(max(case when rank = 1 then value end) as int), cast(max(value) as int), cast(min(value) as int)
         from (select c.value, row_number() over (order by c.ts desc) as rank
               from counter c join counter_track t on c.track_id = t.id where t.name = '{name}')"
    ));
    let numbers: Vec<i64> = row.split('\t').map(|n| n.parse().unwrap_or(i64::MIN)).collect();
    numbers.try_into().expect("three numbers")
}

/// The sum of a rate over time: each value holds up to the next one.
fn total(trace: &Trace, name: &str) -> f64 {
    let sum = trace.rows(&format!(
        "select sum(value * (next - ts)) / 1e9 from (select c.value, c.ts, lead(c.ts) over (order by c.ts) as next
           from counter c join counter_track t on c.track_id = t.id where t.name = '{name}')"
    ));
    sum.parse().expect("a number")
}

#[test]
fn live_bytes_grow_and_shrink_with_the_programs_blocks() {
    let _one = one();
    const BYTES: i64 = 64 << 20;
    for format in FORMATS {
        let mut kept = Vec::new();
        let trace = record(format, |_| {
            kept = (0..1024).map(|_| vec![1u8; BYTES as usize / 1024]).collect();
            black_box(&kept);
            std::thread::sleep(SOME_SAMPLES);
        });
        let [last, ..] = values(&trace, LIVE);
        assert!((last - BYTES).abs() < SLACK, "{format:?}: {last}");
        let units = "select distinct unit from counter_track where name = 'heap: live bytes since start'";
        assert_eq!(trace.rows(units), "bytes", "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0);

        // Memory from before the session makes it negative.
        let trace = record(format, |_| {
            drop(kept);
            std::thread::sleep(SOME_SAMPLES);
        });
        let [last, ..] = values(&trace, LIVE);
        assert!((last + BYTES).abs() < SLACK, "{format:?}: {last}");
    }
}

#[test]
fn a_session_that_is_shorter_than_a_sample_has_its_last_state() {
    let _one = one();
    for overwrite in [false, true] {
        for format in FORMATS {
            let mut kept = Vec::new();
            let trace = record_with(
                format,
                |b| if overwrite { b.overflow(Overflow::Overwrite) } else { b },
                |_| kept = vec![1u8; 32 << 20],
            );
            let [last, ..] = values(&trace, LIVE);
            assert!((last - (32 << 20)).abs() < SLACK, "{format:?}: {last}");
            black_box(kept);
        }
    }
}

#[test]
fn rates_add_up_to_the_allocations_and_frees() {
    let _one = one();
    const TIMES: f64 = 2_000_000.0;
    for format in FORMATS {
        let trace = record(format, |_| {
            for n in 0..TIMES as u32 {
                black_box(Box::new(n));
                if n.is_multiple_of(200_000) {
                    std::thread::sleep(Duration::from_millis(30));
                }
            }
        });
        for name in ["heap: allocations", "heap: frees"] {
            let sum = total(&trace, name);
            assert!((sum / TIMES - 1.0).abs() < 0.01, "{format:?} {name}: {sum}");
        }
    }
}

#[test]
fn reallocated_and_zeroed_blocks_and_those_of_size_0_are_counted() {
    let _one = one();
    for format in FORMATS {
        let (mut grown, mut zeroed, mut nothing) = (Vec::new(), Vec::new(), Vec::<u64>::new());
        let trace = record(format, |_| {
            grown = vec![1u8; 1 << 20];
            grown.reserve_exact(15 << 20);
            zeroed = vec![0u8; 16 << 20];
            let mut shrunk = vec![1u8; 64 << 20];
            shrunk.truncate(8 << 20);
            shrunk.shrink_to_fit();
            nothing.extend(std::iter::empty::<u64>());
            grown.extend(std::iter::once(shrunk.len() as u8));
            std::mem::forget(shrunk);
        });
        let [last, ..] = values(&trace, LIVE);
        assert!((last - (40 << 20)).abs() < SLACK, "{format:?}: {last}");
        black_box((&grown, &zeroed, &nothing));
    }
}

#[test]
fn a_large_allocation_is_an_instant_inside_of_the_open_scope() {
    let _one = one();
    for format in FORMATS {
        let trace = record(format, |_| {
            std::thread::Builder::new()
                .name("allocates".to_owned())
                .spawn(|| {
                    trace_scope!("outer", "one");
                    black_box(vec![1u8; LARGE]); // not above
                    {
                        trace_scope!("inner", "two");
                        black_box(vec![1u8; LARGE + 1]);
                    }
                    black_box(vec![0u8; LARGE + 2]);
                    let mut grown = vec![1u8; 8];
                    grown.reserve_exact(LARGE + 3 - 8);
                    black_box(&grown);
                })
                .unwrap()
                .join()
                .unwrap();
        });
        let key = if format == hairline::Format::Fxt { "bytes" } else { "debug.bytes" };
        let large = trace.rows(&format!(
            "select th.name, s.category, p.category, extract_arg(s.arg_set_id, '{key}') from slice s \
             join slice p on s.parent_id = p.id join thread_track t on s.track_id = t.id \
             join thread th using (utid) where s.name = 'large allocation' order by s.ts"
        ));
        assert_eq!(
            large,
            format!(
                "allocates\theap\tinner\t{}\nallocates\theap\touter\t{}\nallocates\theap\touter\t{}",
                LARGE + 1,
                LARGE + 2,
                LARGE + 3
            ),
            "{format:?}"
        );
    }
}

#[test]
fn allocations_of_the_recorder_are_no_events_and_none_is_lost() {
    let _one = one();
    for format in FORMATS {
        let trace = record(format, |_| {
            for n in 0..3 {
                // On the cold path: names that are not static, nested values.
                let text = "x".repeat(2 * LARGE);
                trace_instant!("t", "i", text = text.as_str(), n, name: &format!("name {n}"));
                std::thread::spawn(move || trace_instant!("t", "thread", list = vec![n; 3])).join().unwrap();
            }
        });
        let lost = trace.summary.lost;
        assert_eq!(lost.reentrant, 0, "{lost:?}");
        // Those of the program: three times the text.
        let large = "select count(*) from slice where name = 'large allocation' and parent_id is null";
        let count: u32 = trace.rows(large).parse().unwrap();
        assert!((3..=12).contains(&count), "{count}");
    }
}

#[test]
fn a_session_without_the_category_has_nothing_and_a_filter_switches_it_on() {
    let _one = one();
    let heap = "select (select count(*) from counter) + \
                (select count(*) from slice where category = 'heap')";
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.categories("-heap"),
            |_| {
                black_box(vec![1u8; 8 << 20]);
                std::thread::sleep(SOME_SAMPLES);
            },
        );
        assert_eq!(trace.rows(heap), "0", "{format:?}");

        let mut kept = Vec::new();
        let trace = record_with(
            format,
            |b| b.categories("-heap"),
            |session| {
                let before = vec![1u8; 32 << 20];
                session.set_categories("*").unwrap();
                kept = vec![1u8; 16 << 20];
                std::thread::sleep(SOME_SAMPLES);
                session.set_categories("-heap").unwrap();
                drop(before);
                session.set_categories("*").unwrap(); // counts anew
                std::thread::sleep(SOME_SAMPLES);
            },
        );
        let [last, most, least] = values(&trace, LIVE);
        assert!((most - (16 << 20)).abs() < SLACK && least > -SLACK, "{format:?}: {most} {least}");
        assert!(last.abs() < SLACK, "{format:?}: {last}");
    }
}

#[test]
fn more_threads_than_slots_count_all_and_their_ends_lose_nothing() {
    let _one = one();
    const THREADS: usize = 300;
    const BYTES: usize = 50_000;
    for format in FORMATS {
        let mut blocks = Vec::new();
        let trace = record(format, |_| {
            let all = Barrier::new(THREADS);
            for _ in 0..2 {
                // Blocks of one thread are freed by another.
                blocks = std::thread::scope(|threads| {
                    let threads: Vec<_> = (0..THREADS)
                        .map(|_| {
                            threads.spawn(|| {
                                let block = vec![1u8; BYTES];
                                all.wait();
                                (0..1000).for_each(|n| drop(black_box(Box::new(n))));
                                block
                            })
                        })
                        .collect();
                    threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
                });
            }
        });
        let [last, ..] = values(&trace, LIVE);
        assert!((last - (THREADS * BYTES) as i64).abs() < SLACK, "{format:?}: {last}");
        black_box(blocks);
    }
}

#[test]
fn a_forked_child_has_counts_of_its_own() {
    let _one = one();
    let _turn = turn();
    for format in FORMATS {
        let directory = tempfile::tempdir().expect("a directory");
        let template = directory.path().join(format!("t-%p.{}", extension(format)));
        let session = Session::builder().output(&template).format(format).start().expect("a session");
        black_box(vec![1u8; 1 << 20]);
        // SAFETY: glibc lets the child allocate, and the child leaves by `_exit`.
        let child = unsafe { children::fork() };
        if child == 0 {
            let block = black_box(vec![1u8; 8 << 20]); // before its session: allocates as in any program
            trace_instant!("t", "child");
            let kept = black_box(vec![1u8; 24 << 20]);
            let is_stopped = session.stop().is_ok();
            drop((block, kept));
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(!is_stopped)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child's session has stopped");
        session.stop().expect("no error");
        let path = directory.path().join(format!("t-{child}.{}", extension(format)));
        let sql = format!(
            "select cast(c.value as int) from counter c join counter_track t on c.track_id = t.id \
             where t.name = '{LIVE}' order by c.ts desc limit 1"
        );
        let verdict = judge::load(&path, &[&sql]);
        verdict.require_clean();
        let last = verdict.results[0].single_i64();
        assert!((last - (24 << 20)).abs() < SLACK, "{format:?}: {last}");
    }
}
