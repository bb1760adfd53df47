//! Threads and the process they are in.

#![allow(unsafe_code)] // the names of threads

use std::cell::RefCell;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use hairline::{ClockSource, Format, Overflow, SessionBuilder, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, record, record_with};

fn tid() -> i64 {
    // The link's target is PID/task/TID.
    let link = std::fs::read_link("/proc/thread-self").expect("procfs");
    link.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse().ok()).expect("a thread id")
}

#[test]
fn threads_have_their_names_and_ids_and_the_process_its_name_and_command_line() {
    let program = std::env::current_exe().expect("a path");
    let program = program.file_name().expect("a name").to_string_lossy().into_owned();
    for format in FORMATS {
        let mut ids = Vec::new();
        let trace = record(format, |_| {
            for name in [Some("short"), Some("a name longer than fifteen bytes"), None] {
                let builder =
                    name.map_or_else(thread::Builder::new, |n| thread::Builder::new().name(n.to_owned()));
                let work = || {
                    trace_scope!("t", "work");
                    tid()
                };
                ids.push(builder.spawn(work).expect("a thread").join().expect("its id"));
            }
        });
        let rows = trace.rows(
            "select distinct t.tid, t.name is not null and t.name != '', p.pid, p.name \
             from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
             join process p using (upid) order by s.ts",
        );
        let pid = std::process::id();
        let expected: Vec<_> = ids.iter().map(|tid| format!("{tid}\t1\t{pid}\t{program}")).collect();
        assert_eq!(rows, expected.join("\n"), "{format:?}");
        let names = trace.rows(
            "select distinct t.name from slice s join thread_track tt on s.track_id = tt.id \
             join thread t using (utid) order by s.ts limit 2",
        );
        assert_eq!(names, "short\na name longer than fifteen bytes", "{format:?}");
        let command_line = trace
            .rows(&format!("select substr(cmdline, 1, {}) from process where pid = {pid}", program.len()));
        assert_eq!(command_line, program, "{format:?}");
    }
}

#[test]
fn more_threads_at_once_than_fxt_can_number_have_their_own_slices() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let together = std::sync::Barrier::new(300);
            thread::scope(|threads| {
                for n in 0..300_u32 {
                    let together = &together;
                    let work = move || {
                        trace_scope!("t", "before", n);
                        together.wait();
                        trace_scope!("t", "after", n);
                    };
                    thread::Builder::new()
                        .name(format!("worker-{n}"))
                        .spawn_scoped(threads, work)
                        .expect("a thread");
                }
            });
        });
        assert_eq!(trace.summary.threads.len(), 300);
        let rows = trace.rows(
            "select count(*), count(distinct utid), count(distinct t.name), max(depth), min(dur) >= 0 \
             from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid)",
        );
        assert_eq!(rows, "600\t300\t300\t1\t1", "{format:?}");
        let strangers = trace.rows(
            "select count(*) from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
             join args a using (arg_set_id) where a.key in ('n', 'debug.n') and t.name != 'worker-' || a.int_value",
        );
        assert_eq!(strangers, "0", "{format:?}");
    }
}

#[test]
fn thousands_of_short_lived_threads_fit_a_small_ring() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.buffer_size(256 << 10),
            |session| {
                for n in 0..2000 {
                    thread::spawn(|| {
                        trace_scope!("t", "brief");
                    })
                    .join()
                    .expect("a thread");
                    if n % 8 == 0 {
                        session.flush().expect("flushed"); // a chunk each, and the ring has sixteen
                    }
                }
            },
        );
        assert_eq!((trace.summary.records, trace.summary.lost.total()), (4000, 0), "{format:?}");
        assert_eq!(trace.rows("select count(*), min(dur) >= 0 from slice"), "2000\t1", "{format:?}");
    }
}

// 600 threads, 64 chunks:  life |=====================================================|   open on each thread from first to last
//                           step    |=|            |=|           |=|                         while all others are idle
#[test]
fn threads_that_outnumber_the_chunks_do_not_starve_each_other() {
    const THREADS: i64 = 600;
    const ROUNDS: i64 = 3;
    // With CPU times, ends are longer and take another path.
    for (format, is_detailed) in FORMATS.into_iter().flat_map(|f| [(f, false), (f, true)]) {
        let patient = Overflow::Block(Duration::from_secs(600));
        let detail = |b: SessionBuilder| b.thread_time(is_detailed).source_locations(is_detailed);
        let trace = record_with(
            format,
            |b| detail(b).buffer_size(256 << 10).chunk_size(4 << 10).overflow(patient),
            |_| {
                let all_live = Barrier::new(THREADS as usize);
                let turn = Mutex::new(());
                thread::scope(|threads| {
                    for n in 0..THREADS {
                        let (all_live, turn) = (&all_live, &turn);
                        let work = move || {
                            let began = turn.lock().expect("no panic");
                            trace_scope!("t", "life", n);
                            drop(began);
                            all_live.wait();
                            for round in 0..ROUNDS {
                                let _mine = turn.lock().expect("no panic");
                                trace_scope!("t", "step", round);
                            }
                        };
                        thread::Builder::new()
                            .stack_size(64 << 10)
                            .spawn_scoped(threads, work)
                            .expect("a thread");
                    }
                });
            },
        );
        let records = 2 * (THREADS + THREADS * ROUNDS);
        assert_eq!((trace.summary.records as i64, trace.summary.lost.total()), (records, 0), "{format:?}");
        if is_detailed && format == Format::TrackEvent {
            let timed = trace.rows("select count(*) from slice where thread_dur >= 0");
            assert_eq!(timed, (THREADS + THREADS * ROUNDS).to_string());
        }
        let rows = trace.rows(
                "select name, count(*), count(distinct track_id), min(dur) >= 0, min(depth), max(depth) from slice group by name \
                 order by name",
            );
        let expected =
            format!("life\t{THREADS}\t{THREADS}\t1\t0\t0\nstep\t{}\t{THREADS}\t1\t1\t1", THREADS * ROUNDS);
        assert_eq!(rows, expected, "{format:?}");
    }
}

/// Records when it is dropped: at its thread's exit.
struct Late;

impl Drop for Late {
    fn drop(&mut self) {
        trace_instant!("t", "late");
    }
}

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

#[test]
fn an_event_from_a_thread_local_destructor_is_recorded_or_counted() {
    for format in FORMATS {
        let trace = record(format, |_| {
            for event_first in [true, false] {
                let work = move || {
                    if event_first {
                        trace_instant!("t", "early");
                    }
                    LATE.with(|late| *late.borrow_mut() = Some(Late));
                    trace_instant!("t", "early");
                };
                thread::spawn(work).join().expect("a thread");
            }
        });
        let recorded = trace.ask(&["select count(*) from slice where name = 'late'"]).results[0].single_i64();
        assert_eq!(recorded as u64 + trace.summary.lost.thread_exit, 2, "{format:?}");
        assert_eq!(
            trace.ask(&["select count(*) from slice where name = 'early'"]).results[0].single_i64(),
            3
        );
    }
}

fn boottime() -> i64 {
    let uptime = std::fs::read_to_string("/proc/uptime").expect("procfs");
    let seconds: f64 = uptime.split_whitespace().next().and_then(|s| s.parse().ok()).expect("a number");
    (seconds * 1e9) as i64
}

#[test]
fn both_clocks_show_the_time_since_boot() {
    for (format, clock) in
        FORMATS.into_iter().flat_map(|f| [ClockSource::Counter, ClockSource::System].map(|clock| (f, clock)))
    {
        let mut around = (0, 0);
        let trace = record_with(
            format,
            |b| b.clock(clock),
            |_| {
                around.0 = boottime();
                for _ in 0..3 {
                    trace_scope!("t", "timed");
                    thread::sleep(std::time::Duration::from_millis(20));
                }
                around.1 = boottime();
            },
        );
        let verdict = trace.ask(&["select min(ts), max(ts + dur), min(dur), max(dur) from slice"]);
        verdict.require_clean();
        let row = verdict.results[0].iter().next().expect("a row");
        let tick = 10_000_000; // /proc/uptime has hundredths
        assert!(row.i64("min(ts)") >= around.0 - tick, "{format:?} {clock:?}");
        assert!(row.i64("max(ts + dur)") <= around.1 + 2 * tick, "{format:?} {clock:?}");
        assert!(
            row.i64("min(dur)") >= 20_000_000 && row.i64("max(dur)") < 5_000_000_000,
            "{format:?} {clock:?}"
        );
    }
}

/// Records, and has another name then.
fn record_and_rename(name: &'static std::ffi::CStr) {
    trace_instant!("t", "before");
    // SAFETY: a terminated name, of this thread.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    trace_instant!("t", "after");
}

/// Readers show the last name of a thread that was renamed after its first event.
#[test]
fn the_last_name_of_a_thread_counts_whether_it_ends_before_the_session_or_not() {
    let overflows = [Overflow::Drop, Overflow::Overwrite];
    for (format, overflow) in FORMATS.into_iter().flat_map(|format| overflows.map(|o| (format, o))) {
        let (lives, ends) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let mut living = None;
        let trace = record_with(
            format,
            |b| b.overflow(overflow),
            |_| {
                let spawn = |body: Box<dyn FnOnce() + Send>| {
                    thread::Builder::new().name("before".to_owned()).spawn(body).expect("a thread")
                };
                spawn(Box::new(|| record_and_rename(c"ended"))).join().expect("no panic");
                let (lives_there, ends_there) = (lives.clone(), ends.clone());
                living = Some(spawn(Box::new(move || {
                    record_and_rename(c"living");
                    lives_there.wait();
                    ends_there.wait();
                })));
                lives.wait();
            },
        );
        ends.wait();
        living.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let names = "select t.name, count(*) from slice s join thread_track tt on s.track_id = tt.id \
            join thread t using (utid) where s.name in ('before', 'after') group by t.name order by t.name";
        assert_eq!(trace.rows(names), "ended\t2\nliving\t2", "{format:?}, {overflow:?}");
    }
}
