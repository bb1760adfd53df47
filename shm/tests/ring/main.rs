//! The ring's behaviour through its public API, on real threads.
//!
//! In the drawings `[...]` is a chunk and `C` its context. After a `|` the owner has given the chunk back;
//! after `...` it is still writing.

#![cfg(not(loom))]

mod claim;
#[path = "../common/mod.rs"]
mod common;
mod context;
mod framed;
mod hostile;
mod memory;
mod model;
mod order;
mod output;
mod retract;
mod room;
mod sizes;
mod threads;
mod wait;

use std::sync::Arc;

use hairline_shm::{ChunkInfo, Drain, Region, RegionConfig, WriteChunk};

const CHUNK: u32 = 4096;

fn config(chunks: u32) -> RegionConfig {
    RegionConfig { buffer_size: u64::from(chunks * CHUNK), ..RegionConfig::small() }
}

fn ring(chunks: u32) -> (Arc<Region>, Drain) {
    let region = Region::create(&config(chunks)).unwrap();
    let drain = Drain::new(Arc::clone(&region));
    (region, drain)
}

fn claim(region: &Arc<Region>, sequence: u32, index: u32, context: &[u8]) -> Option<WriteChunk> {
    region.claim(ChunkInfo { sequence, index, ..ChunkInfo::default() }, context)
}

/// Claims a chunk, writes one record, and gives the chunk back.
fn write_chunk(region: &Arc<Region>, sequence: u32, index: u32, context: &[u8], record: &[u8]) {
    let mut chunk = claim(region, sequence, index, context).unwrap();
    assert!(chunk.append(record, 1));
}

/// The bytes that the output has taken, by the region's header.
fn output_bytes(region: &Region) -> u64 {
    region.header().output_bytes()
}
