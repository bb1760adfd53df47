//! The ring under loom: all interleavings of two or three threads with a bounded number of preemptions, and
//! all values that a weak load can return.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p hairline-shm-models --release --test loom
//! ```
//!
//! A model has one property. A model with several outcomes checks at its end that it has seen the required
//! ones, so that it cannot pass without ever reaching its race.
//!
//! loom does not watch the bytes of the payload, which are plain memory. A cell for each record stands for
//! them (see `ChunkHeader`): the owner mutates the cell before it writes the record, and the drain reads the
//! cell with the record. There are four cells, so a chunk has at most four records here, each appended with a
//! count of one.

#![cfg(loom)]

mod batches;
mod claim;
#[path = "../../tests/common/mod.rs"]
mod common;
mod drain;
mod glance;
mod lease;
mod overwrite;
mod turn;
mod wait;

extern crate hairline_shm_models as hairline_shm;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hairline_shm::{ChunkInfo, Drain, Region, RegionConfig, Window, WriteChunk};
use loom::thread;

use common::Sink;

/// For two threads: all interleavings with at most `LOOM_MAX_PREEMPTIONS` preemptions (3 in `ci/test.sh`), or
/// all.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    loom::model::Builder::new().check(model);
}

/// All interleavings with at most `preemptions` preemptions. More would take hours. Nearly all known bugs of
/// this kind appear with two or three.
fn explore_with(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// For two threads, one of which reads all chunks or takes many other steps.
fn explore_most(model: impl Fn() + Sync + Send + 'static) {
    explore_with(3, model);
}

/// For three threads with few steps.
fn explore_three_threads(model: impl Fn() + Sync + Send + 'static) {
    explore_with(5, model);
}

/// Four chunks, the fewest that a region can have.
fn ring() -> Arc<Region> {
    Region::create(&RegionConfig { buffer_size: 4 * 4096, ..RegionConfig::small() }).unwrap()
}

/// Four chunks: `free` of them are free, and the caller has the others.
fn ring_with_free(free: usize) -> (Arc<Region>, Vec<WriteChunk>) {
    let region = ring();
    let held = (free..4).map(|_| claim(&region, 100, 0, b"").unwrap()).collect();
    (region, held)
}

fn claim(region: &Arc<Region>, sequence: u32, index: u32, context: &[u8]) -> Option<WriteChunk> {
    region.claim(ChunkInfo { sequence, index, ..ChunkInfo::default() }, context)
}

/// Claims a chunk, writes one record, and gives the chunk back.
fn write_chunk(region: &Arc<Region>, sequence: u32, index: u32, records: &[&[u8]]) {
    let mut chunk = claim(region, sequence, index, b"").unwrap();
    for record in records {
        assert!(chunk.append(record, 1));
    }
}

/// Counts how often a model had an outcome.
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
