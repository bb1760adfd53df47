//! The locks of the registry, of a session and of a flight recorder.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairline::{Argument, Overflow, Session, TraceFuture, Track, interned};
use hairline::{trace_begin, trace_end, trace_instant};
use hairline_tests::output::gated;
use hairline_tests::recording::{FORMATS, record_in, turn};

use crate::{Contention, contend, contend_now, each_format, program, watched};

#[test]
fn the_tables_of_the_registry_grow_outside_of_its_lock() {
    const ROUNDS: u64 = 400;
    each_format(|turn, format| {
        contend(turn, format, || Contention {
            record: Box::new(|| trace_instant!("t", "under the mutex", text = interned("known"))),
            work: |round| {
                let name: &'static str = format!("{format:?} {round}").leak();
                trace_instant!("t", "a new string", text = interned(name));
                drop(async {}.traced("t", name)); // a callsite that is made here, and its first hit
            },
            rounds: ROUNDS,
        });
    });
}

#[test]
fn a_flight_recorder_allocates_nothing_while_slices_wait() {
    each_format(|turn, format| {
        let directory = tempfile::tempdir().expect("a directory");
        let overwrite = |b: hairline::SessionBuilder| b.overflow(Overflow::Overwrite).buffer_size(8 << 20);
        watched(|| {
            record_in(turn, format, overwrite, |session| {
                let shared = Track::process().child("shared");
                let of_allocator = shared.clone();
                contend_now(Contention {
                    record: Box::new(move || {
                        trace_begin!("t", "under the mutex", track: &of_allocator);
                        trace_end!(&of_allocator);
                    }),
                    work: |round| {
                        let tracks: Vec<_> = (0..8).map(|_| Track::process().child("track")).collect();
                        tracks.iter().for_each(|track| trace_begin!("t", "slice", track: track));
                        if round % 4 == 0 {
                            session.snapshot(directory.path().join("snapshot")).expect("a snapshot");
                        }
                        tracks.iter().for_each(|track| trace_end!(track));
                    },
                    rounds: 20,
                });
            })
        });
    });
}

/// A value whose code takes the program's mutex.
struct Locking;

impl Argument for Locking {
    type Held<'a> = i64;

    fn hold(&self) -> i64 {
        drop(program());
        7
    }
}

/// A value whose code panics.
struct Panicking;

impl Argument for Panicking {
    type Held<'a> = i64;

    fn hold(&self) -> i64 {
        panic!("on purpose")
    }
}

/// One thread ends slices with a value whose code takes the program's mutex; another one ends slices under
/// that mutex.
fn end_with_the_programs_code(own: &[Track], others: &[Track]) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            own.iter().for_each(|track| trace_end!(track, values = [Locking, Locking]));
            is_over.store(true, Ordering::Relaxed);
        });
        threads.spawn(|| {
            for track in others {
                let program = program();
                trace_end!(track);
                drop(program);
            }
            while !is_over.load(Ordering::Relaxed) {
                let program = program();
                trace_instant!("t", "under the mutex");
                drop(program);
                std::thread::yield_now();
            }
        });
    });
}

fn begun(count: usize) -> Vec<Track> {
    let tracks: Vec<_> = (0..count).map(|_| Track::process().child("track")).collect();
    tracks.iter().for_each(|track| trace_begin!("t", "slice", track: track));
    tracks
}

#[test]
fn an_argument_of_a_kept_slice_may_wait_for_a_thread_that_ends_one() {
    each_format(|turn, format| {
        let overwrite = |b: hairline::SessionBuilder| b.overflow(Overflow::Overwrite).buffer_size(8 << 20);
        let trace = watched(|| {
            record_in(turn, format, overwrite, |_| {
                let (own, others) = (begun(3000), begun(3000));
                end_with_the_programs_code(&own, &others);
            })
        });
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    });
}

#[test]
fn an_argument_of_a_late_end_may_wait_for_a_thread_that_ends_late() {
    for format in FORMATS {
        let _turn = turn();
        let (output, gate) = gated();
        let session = Session::builder().output_writer(output).format(format);
        let session = session.buffer_size(1 << 20).chunk_size(4096).start().expect("a session");
        let (own, others) = (begun(2000), begun(2000));
        gate.shut();
        gate.wait();
        (0..200_000).for_each(|_| trace_instant!("t", "fills the ring"));
        watched(|| end_with_the_programs_code(&own, &others));
        let _trace = gate.open();
        session.stop().expect("no error");
    }
}

#[test]
fn an_argument_that_panics_stalls_nobody() {
    each_format(|turn, format| {
        let directory = tempfile::tempdir().expect("a directory");
        let overwrite = |b: hairline::SessionBuilder| b.overflow(Overflow::Overwrite).buffer_size(8 << 20);
        let began = Instant::now();
        watched(|| {
            record_in(turn, format, overwrite, |session| {
                let tracks = begun(10);
                for track in &tracks {
                    let panicked = catch_unwind(AssertUnwindSafe(|| trace_end!(track, values = [Panicking])));
                    assert!(panicked.is_err());
                }
                drop(begun(10));
                session.snapshot(directory.path().join("snapshot")).expect("a snapshot");
            })
        });
        assert!(began.elapsed() < Duration::from_secs(4), "somebody waited for a lock");
    });
}
