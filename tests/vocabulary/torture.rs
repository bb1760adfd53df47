//! Threads that do anything at any time, and a model that knows what the trace has to say of it.
//!
//! The short form takes a few seconds. `TORTURE_SECONDS=600` goes on for so long with ever new seeds;
//! `TORTURE_SEED=n` begins with the one that a failure named (the threads still run as the system lets them),
//! and `TORTURE_PLAN=name` does only plans with that in their name. `TORTURE_KEEP=directory` keeps the traces
//! of a failure,

mod check;
mod outside;
mod worker;
mod world;

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use hairline::{Format, Session, Summary};
use hairline_tests::output;
use hairline_tests::recording::turn;
use hairline_tests::torture::{Random, rounds};

use worker::Worker;
use world::{World, lock};

/// What is done to the library.
#[derive(Clone, Copy, Debug)]
struct Plan {
    name: &'static str,
    seed: u64,
    format: Format,
    threads: u64,
    operations: u64,
    /// Sizes of ring and chunk; behind a slow output.
    tiny: Option<(u64, u32)>,
    sessions: u64,
    filters: bool,
    details: bool,
    compress: bool,
    signals: bool,
    forks: bool,
}

impl Plan {
    const CALM: Self = Self {
        name: "calm",
        seed: 0,
        format: Format::Fxt,
        threads: 4,
        operations: 600,
        tiny: None,
        sessions: 1,
        filters: false,
        details: false,
        compress: false,
        signals: false,
        forks: false,
    };

    const ALL: [Self; 9] = [
        Self::CALM,
        Self { name: "tiny", tiny: Some((32 << 10, 4096)), operations: 1500, ..Self::CALM },
        Self { name: "sessions", sessions: 4, operations: 100_000, ..Self::CALM },
        Self { name: "filters", filters: true, ..Self::CALM },
        Self { name: "details", details: true, compress: true, ..Self::CALM },
        Self { name: "signals", signals: true, ..Self::CALM },
        Self { name: "forks", forks: true, ..Self::CALM },
        Self {
            name: "tiny sessions",
            tiny: Some((64 << 10, 4096)),
            sessions: 3,
            filters: true,
            operations: 100_000,
            ..Self::CALM
        },
        Self {
            name: "everything",
            tiny: Some((64 << 10, 4096)),
            sessions: 3,
            filters: true,
            details: true,
            signals: true,
            forks: true,
            operations: 100_000,
            ..Self::CALM
        },
    ];
}

/// A session's trace and what it said of it.
struct Recorded {
    bytes: Vec<u8>,
    summary: Summary,
}

fn start(plan: &Plan) -> (Session, output::Bytes) {
    let (output, bytes) = output::slow(Duration::from_millis(u64::from(plan.tiny.is_some())));
    let mut builder = Session::builder()
        .output_writer(output)
        .format(plan.format)
        .thread_time(plan.details)
        .source_locations(plan.details)
        .compress(plan.compress);
    if let Some((ring, chunk)) = plan.tiny {
        builder = builder.buffer_size(ring).chunk_size(chunk);
    }
    (builder.start().expect("a session"), bytes)
}

/// Sessions, one after the other, while the threads do what they do.
fn sessions(world: &World, finished: &dyn Fn() -> bool) -> Vec<Recorded> {
    let plan = &world.plan;
    let random = Random::new(plan.seed ^ 77);
    let mut all = Vec::new();
    for k in 0..plan.sessions {
        world.set(4 * k + 1);
        let (session, output) = start(plan);
        world.set(4 * k + 2);
        let until = Instant::now() + Duration::from_millis(30 + random.below(60));
        while if plan.sessions > 1 { Instant::now() < until } else { !finished() } {
            if plan.filters {
                let filter = ["*", "a", "b,c", "-a", "nothing", "a,b"][random.below(6) as usize];
                session.set_categories(filter).expect("a filter");
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        world.set(4 * k + 3);
        let summary = session.stop().expect("stopped");
        world.set(4 * k + 4);
        let bytes: Vec<u8> = output.recv_timeout(Duration::from_secs(10)).expect("the output is dropped");
        all.push(Recorded { bytes, summary });
        std::thread::sleep(Duration::from_micros(random.below(3000)));
    }
    world.over.store(true, SeqCst);
    all
}

fn round(plan: Plan) {
    let world = World::new(plan);
    let world = &world;
    let recorded = std::thread::scope(|s| {
        // With one session, the threads begin when it has, and it ends when they have.
        let workers: Vec<_> = (0..plan.threads)
            .map(|n| {
                let life = move |generation| {
                    while plan.sessions == 1 && world.now() < 2 {
                        std::thread::yield_now();
                    }
                    Worker::run(world, plan.seed ^ (n << 32) ^ generation, plan.operations / 3);
                };
                s.spawn(move || {
                    for generation in 0..3 {
                        let name = format!("worker {n}.{generation}");
                        std::thread::scope(|s| {
                            let thread = std::thread::Builder::new().name(name);
                            let thread = thread.spawn_scoped(s, move || life(generation)).expect("a thread");
                            thread.join().expect("a worker");
                        });
                    }
                })
            })
            .collect();
        let alarm = plan.signals.then(|| outside::alarm_every(150));
        let finished = || workers.iter().all(|w| w.is_finished());
        let recorded = sessions(world, &finished);
        let failed: Vec<_> = workers.into_iter().filter_map(|w| w.join().err()).collect();
        drop(alarm);
        assert!(failed.is_empty(), "a worker panicked");
        recorded
    });
    // What lives on beyond the last session.
    let mut log = std::mem::take(&mut *lock(&world.log));
    for mut shared in std::mem::take(&mut *lock(&world.tracks)) {
        while let Some(entry) = world::end_on(world, &mut shared) {
            log.push(entry);
        }
    }
    let left = std::mem::take(&mut *lock(&world.intervals));
    log.extend(left.into_iter().map(|held| world::end_interval(world, held, true)));
    check::check(&plan, &log, &recorded);
}

#[test]
fn whatever_threads_do_the_trace_is_what_they_did() {
    let _turn = turn();
    rounds(&Plan::ALL, |plan| plan.name, |plan, seed, format| round(Plan { seed, format, ..plan }));
}
