//! Threads that do random things in a ring that is far too small, and snapshots all the while: each must show
//! what the threads did last, all of it and nothing else.
//!
//! The short form takes a few seconds. `TORTURE_SECONDS=600` goes on for so long with ever new seeds;
//! `TORTURE_SEED=n` begins with the one that a failure named (the threads still run as the system lets them),
//! `TORTURE_PLAN=name` does only plans with that in their name, and `TORTURE_KEEP=directory` keeps the
//! snapshots of a failure.

mod check;
mod worker;

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use hairline::{Format, Overflow, Session, SessionBuilder, Summary};
use hairline_tests::recording::{extension, turn};
use hairline_tests::torture::{Random, rounds};

use worker::{Worker, World};

/// What is done to the library.
#[derive(Clone, Copy, Debug)]
struct Plan {
    name: &'static str,
    seed: u64,
    format: Format,
    threads: u64,
    /// How many threads there are one after the other in each place.
    generations: u64,
    operations: u64,
    ring: u64,
    chunk: u32,
    /// The longest text of an argument.
    text: u64,
    /// How deep scopes are nested.
    depth: u64,
    details: bool,
    snapshots: usize,
    /// Threads that take snapshots.
    askers: usize,
}

impl Plan {
    const CALM: Self = Self {
        name: "calm",
        seed: 0,
        format: Format::Fxt,
        threads: 3,
        generations: 1,
        operations: 3000,
        ring: 64 << 10,
        chunk: 4096,
        text: 40,
        depth: 6,
        details: false,
        snapshots: 4,
        askers: 1,
    };

    const ALL: [Self; 7] = [
        Self::CALM,
        Self { name: "generations", generations: 20, operations: 200, threads: 2, ..Self::CALM },
        Self { name: "details", details: true, ..Self::CALM },
        Self { name: "askers", askers: 3, ring: 256 << 10, ..Self::CALM },
        Self { name: "long texts", text: 3000, chunk: 8192, ring: 128 << 10, ..Self::CALM },
        Self { name: "deep", depth: 120, ..Self::CALM },
        Self { name: "crowd", threads: 24, operations: 400, ..Self::CALM },
    ];

    /// Whether all that is recorded fits: chunks for all threads and for those that a snapshot holds, and the
    /// begins of all open slices into the beginning of a chunk.
    fn is_roomy(&self) -> bool {
        self.threads * 2 < self.ring / u64::from(self.chunk) && self.text <= 40 && self.depth <= 6
    }

    fn configure(&self, builder: SessionBuilder) -> SessionBuilder {
        builder
            .overflow(Overflow::Overwrite)
            .format(self.format)
            .buffer_size(self.ring)
            .chunk_size(self.chunk)
            .thread_time(self.details)
            .source_locations(self.details)
    }
}

/// A snapshot, and what the threads had done for certain, and at most.
struct Taken {
    bytes: Vec<u8>,
    summary: Summary,
    before: Vec<i64>,
    after: Vec<i64>,
    /// The world's time before and after.
    times: (u64, u64),
}

fn take(world: &World, write: impl FnOnce() -> (Summary, Vec<u8>)) -> Taken {
    let (before, start) = (world.done(), world.time());
    let (summary, bytes) = write();
    Taken { bytes, summary, before, times: (start, world.time()), after: world.done() }
}

fn snapshots(plan: &Plan, world: &World, session: &Session, folder: &Path, asker: usize) -> Vec<Taken> {
    let random = Random::new(plan.seed ^ asker as u64);
    let path = folder.join(format!("{asker}.{}", extension(plan.format)));
    (0..plan.snapshots)
        .map(|_| {
            std::thread::sleep(Duration::from_micros(random.below(4000)));
            take(world, || {
                let summary = session.snapshot(&path).expect("a snapshot");
                (summary, std::fs::read(&path).expect("its file"))
            })
        })
        .collect()
}

fn round(plan: Plan) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("last.{}", extension(plan.format)));
    let world = &World::new((plan.threads * plan.generations) as usize);
    let session = plan.configure(Session::builder().output(&path)).start().expect("a session");
    let taken = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for place in 0..plan.threads {
            s.spawn(move || {
                for generation in 0..plan.generations {
                    let number = (place * plan.generations + generation) as usize;
                    let thread = std::thread::Builder::new().name(format!("worker {number}"));
                    let life = move || Worker::run(world, &plan, number);
                    std::thread::scope(|s| {
                        thread.spawn_scoped(s, life).expect("a thread").join().expect("a worker");
                    });
                }
            });
        }
        for asker in 0..plan.askers {
            let (session, folder, taken) = (&session, folder.path(), &taken);
            s.spawn(move || {
                let all = snapshots(&plan, world, session, folder, asker);
                taken.lock().expect("no panic").extend(all);
            });
        }
    });
    let last = take(world, || {
        let summary = session.stop().expect("stopped");
        (summary, std::fs::read(&path).expect("the last snapshot"))
    });
    let mut taken = taken.into_inner().expect("no panic");
    taken.push(last);
    check::check(&plan, world, &taken);
}

#[test]
fn every_snapshot_shows_what_the_threads_did_last() {
    let _turn = turn();
    rounds(&Plan::ALL, |plan| plan.name, |plan, seed, format| round(Plan { seed, format, ..plan }));
}
