//! Sizes that are out of range, and their errors.

use hairline_shm::{About, Region, RegionConfig, RegionError};

use crate::CHUNK;

#[test]
fn a_chunk_size_that_is_no_power_of_two_in_range_is_refused_by_name() {
    for chunk_size in [0, 1, 2048, 4095, 4097, 6000, (1 << 24) + 1, 1 << 25, u32::MAX] {
        let config = RegionConfig { chunk_size, buffer_size: 1 << 30, ..RegionConfig::small() };
        match Region::create(&config) {
            Err(RegionError::ChunkSize(size)) => assert_eq!(size, chunk_size),
            other => panic!("{chunk_size}: {other:?}"),
        }
    }
}

#[test]
fn a_buffer_with_too_few_or_too_many_chunks_is_refused_with_their_number() {
    let cases = [
        (0, 0),
        (4096, 1),
        (4 * 4096 - 1, 3),
        ((1 << 36) + 4096, (1 << 24) + 1),
        (u64::MAX, u64::MAX / 4096),
    ];
    for (buffer_size, expected) in cases {
        match Region::create(&RegionConfig { buffer_size, ..RegionConfig::small() }) {
            Err(RegionError::BufferSize { buffer, chunk: CHUNK, chunks }) => {
                assert_eq!((buffer, chunks), (buffer_size, expected));
            }
            other => panic!("{buffer_size}: {other:?}"),
        }
    }
}

#[test]
fn a_buffer_is_rounded_down_to_whole_chunks() {
    let region =
        Region::create(&RegionConfig { buffer_size: 5 * 4096 - 1, ..RegionConfig::small() }).unwrap();
    assert_eq!((region.chunk_count(), region.free_chunks()), (4, 4));
}

// 2^24 chunks of 2^24 bytes: more than an address space
#[test]
fn a_region_without_memory_is_an_error_and_not_an_abort() {
    let config = RegionConfig { buffer_size: 1 << 48, chunk_size: 1 << 24, ..RegionConfig::small() };
    match Region::create(&config) {
        Err(RegionError::Memory { what, .. }) => assert_eq!(what, "the heap"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_path_or_a_head_that_is_too_long_is_refused_with_its_length() {
    for (path, prelude) in [(4097, 0), (10, (1 << 20) + 1)] {
        let about = About { output: "x".repeat(path).into(), prelude: vec![0; prelude], process_track: 0 };
        let refused = Region::create(&RegionConfig { about, ..RegionConfig::small() });
        let Err(RegionError::About { path: p, prelude: h }) = refused else { panic!("{path}, {prelude}") };
        assert_eq!((p, h), (path, prelude));
    }
    let about = About { output: "x".repeat(4096).into(), prelude: vec![0; 1 << 20], process_track: 0 };
    Region::create(&RegionConfig { about, ..RegionConfig::small() }).expect("the longest");
}
