//! The ring under loom: interleavings of two or three threads with a bounded number of preemptions, and every
//! value that a weak load may return.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p hairline-shm --release --test loom
//! ```
//!
//! One property a model. A model that can end in more than one way says at its end which ways it must have
//! seen, so that none passes by never coming to the race it is about.
//!
//! Payload bytes are ordinary memory, which loom does not watch; a cell a record stands guard for them (see
//! `ChunkHeader`): the writer mutates it before a record's bytes, the drain reads it with them. There are four
//! cells, so a chunk has at most four records here, each appended with a count of one.

#![cfg(loom)]

mod batches;
mod claim;
#[path = "../common/mod.rs"]
mod common;
mod drain;
mod glance;
mod lease;
mod overwrite;
mod wait;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hairline_shm::{ChunkInfo, Drain, Region, RegionConfig, Window, WriteChunk};
use loom::thread;

use common::Sink;

/// Two threads: every interleaving with at most as many preemptions as `LOOM_MAX_PREEMPTIONS` says (3 in
/// `ci/test.sh`), or every one.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    loom::model::Builder::new().check(model);
}

/// Every interleaving with at most so many preemptions, whatever `LOOM_MAX_PREEMPTIONS` says. All of them
/// would take hours; nearly all known bugs of this kind show with two or three.
fn explore_with(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Two threads of which one looks at every chunk, or takes many steps otherwise.
fn explore_most(model: impl Fn() + Sync + Send + 'static) {
    explore_with(3, model);
}

/// Three threads of few steps.
fn explore_three_threads(model: impl Fn() + Sync + Send + 'static) {
    explore_with(5, model);
}

/// Four chunks, the fewest there can be.
fn ring() -> Arc<Region> {
    Region::create(&RegionConfig { buffer_size: 4 * 4096, ..RegionConfig::small() }).unwrap()
}

/// Four chunks, of which `free` are free and the others in the caller's hands.
fn ring_with_free(free: usize) -> (Arc<Region>, Vec<WriteChunk>) {
    let region = ring();
    let held = (free..4).map(|_| claim(&region, 100, 0, b"").unwrap()).collect();
    (region, held)
}

fn claim(region: &Arc<Region>, sequence: u32, index: u32, context: &[u8]) -> Option<WriteChunk> {
    region.claim(ChunkInfo { sequence, index, ..ChunkInfo::default() }, context)
}

/// A whole short life of a chunk.
fn write_chunk(region: &Arc<Region>, sequence: u32, index: u32, records: &[&[u8]]) {
    let mut chunk = claim(region, sequence, index, b"").unwrap();
    for record in records {
        assert!(chunk.append(record, 1));
    }
}

/// How often a model ended in some way.
#[derive(Clone, Default)]
struct Seen(Arc<AtomicU64>);

impl Seen {
    fn note_if(&self, it_happened: bool) {
        self.0.fetch_add(u64::from(it_happened), Ordering::Relaxed);
    }

    fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}
