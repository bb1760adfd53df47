//! The kinds of memory for a region, and the lifetime of its file.

#![allow(unsafe_code)] // closes the region

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use hairline_shm::abi::MAGIC;
use hairline_shm::{Backing, BackingChoice, Drain, Region, RegionConfig};

use crate::common::Sink;
use crate::framed::{ChunkWriter, read_back};
use crate::{claim, config};

/// The test for each kind of memory.
fn works_on(choice: BackingChoice) -> Arc<Region> {
    let config = RegionConfig { backing: choice, process_name: "a-name".into(), ..config(5) };
    let region = Region::create(&config).unwrap();
    region.populate(1..usize::MAX); // bytes beyond the end are ignored
    region.populate(region.len()..region.len() + 1);
    region.populate(0..0);
    let mut drain = Drain::new(Arc::clone(&region));
    let mut sink = Sink::default();
    for round in 0..4 {
        let mut writer = ChunkWriter::new(&region);
        (0..30).for_each(|n| writer.write(n, 400));
        assert_eq!(region.free_chunks(), 1, "round {round}");
        writer.finish();
        drain.pass(&mut sink).unwrap();
        assert_eq!(region.free_chunks(), 5);
    }
    assert_eq!(read_back(&sink.bytes), (1..=4).map(|s| (s, 30)).collect());
    assert_eq!(region.header().magic(), MAGIC);
    assert_eq!(region.header().pid(), std::process::id());
    assert!(region.header().process_name().starts_with(b"a-name\0"));
    region
}

#[test]
fn the_ring_works_on_the_heap() {
    assert_eq!(*works_on(BackingChoice::Heap).backing(), Backing::Heap);
}

#[test]
fn the_ring_works_on_a_memfd() {
    assert_eq!(*works_on(BackingChoice::Memfd).backing(), Backing::Memfd);
}

#[test]
fn the_ring_works_on_a_file() {
    assert!(matches!(works_on(BackingChoice::File).backing(), Backing::File(_)));
}

#[test]
fn the_ring_works_on_the_default_memory() {
    works_on(BackingChoice::Auto);
}

fn ring_in_a_file() -> (Arc<Region>, String) {
    let region = Region::create(&RegionConfig { backing: BackingChoice::File, ..config(4) }).unwrap();
    let Backing::File(path) = region.backing().clone() else { panic!("{:?}", region.backing()) };
    (region, path)
}

#[test]
fn a_regions_file_is_readable_by_its_user_only_and_has_the_region() {
    let (region, path) = ring_in_a_file();
    assert!(path.starts_with("/dev/shm/"));
    let metadata = std::fs::symlink_metadata(&path).unwrap();
    assert!(metadata.is_file());
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    let mut chunk = claim(&region, 1, 0, b"").unwrap();
    assert!(chunk.append(b"seen from outside", 1));
    let file = std::fs::read(&path).unwrap();
    assert_eq!(file.len() as u64, metadata.len());
    assert!(file.starts_with(&MAGIC));
    let payload = usize::try_from(region.header().chunks_offset()).unwrap() + 64;
    assert!(file[payload..].starts_with(b"seen from outside"));
}

#[test]
fn closing_a_region_removes_its_file_while_threads_have_chunks() {
    let (region, path) = ring_in_a_file();
    let mut chunk = claim(&region, 1, 0, b"").unwrap();
    // SAFETY: no thread drains the region.
    unsafe { region.close() };
    assert!(!Path::new(&path).exists());
    assert!(chunk.append(b"into memory that nobody reads", 1));
    drop(chunk);
    // SAFETY: as above. A second call is allowed.
    unsafe { region.close() };
}

#[test]
fn the_last_handle_removes_the_file_of_a_region_that_was_not_closed() {
    let (region, path) = ring_in_a_file();
    let chunk = claim(&region, 1, 0, b"").unwrap();
    drop(region);
    assert!(Path::new(&path).exists(), "a chunk is a handle too");
    drop(chunk);
    assert!(!Path::new(&path).exists());
}

#[test]
fn two_regions_of_one_process_have_files_of_their_own() {
    let ((_one, a), (_two, b)) = (ring_in_a_file(), ring_in_a_file());
    assert_ne!(a, b);
}
