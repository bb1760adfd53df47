//! The kinds of memory for a region, and the lifetime of its file.

#![allow(unsafe_code)] // closes the region

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use hairline_shm::abi::MAGIC;
use hairline_shm::{Backing, BackingChoice, ChunkInfo, Drain, Region, RegionConfig};

use crate::common::Sink;
use crate::framed::{ChunkWriter, read_back};
use crate::{claim, config};

/// The test for each kind of memory.
fn works_on(choice: BackingChoice) -> Arc<Region> {
    let config = RegionConfig { backing: choice, process_name: "a-name".into(), ..config(5) };
    let region = Region::create(&config).unwrap();
    assert_eq!((region.allocated_chunks(), region.chunks_denied()), (5, 0));
    assert!(!region.grow(u32::MAX), "it has all of its memory");
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

fn allocated(path: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn a_ring_takes_memory_as_it_is_used() {
    const MIB: u64 = 1 << 20;
    for choice in [BackingChoice::File, BackingChoice::Memfd] {
        let config = RegionConfig { backing: choice, buffer_size: 64 * MIB, ..config(4) };
        let region = Region::create(&config).unwrap();
        let path = if let Backing::File(path) = region.backing() { Some(path.clone()) } else { None };
        let is_within = |mib: u64| path.as_ref().is_none_or(|path| allocated(path) < mib * MIB);
        assert_eq!(region.free_chunks(), region.chunk_count());
        assert!(is_within(1), "{choice:?}");
        // Twice what is there at the start: the thread that finds no chunk gets new ones.
        let held: Vec<_> = (0..256).map(|n| claim(&region, n, 0, b"").unwrap()).collect();
        assert_eq!(region.free_chunks(), region.chunk_count() - 256);
        assert!(is_within(2));
        assert!(region.grow(2 << 20));
        assert!(!is_within(3) || path.is_none());
        drop(held);
        let all: Vec<_> = std::iter::from_fn(|| claim(&region, 1, 0, b"")).collect();
        assert_eq!(all.len() as u32 + 256, region.chunk_count(), "the others wait for the drain");
        assert!(!region.has_free_chunk() && !region.grow(1));
        assert_eq!(region.chunks_denied(), 0);
    }
}

#[test]
fn threads_that_find_no_chunk_at_the_same_moment_each_get_one() {
    let config = RegionConfig { backing: BackingChoice::Memfd, buffer_size: 16 << 20, ..config(4) };
    let region = Region::create(&config).unwrap();
    let claim_a_share = |n: u32| (0..512).map(|_| claim(&region, n, 0, b"").unwrap()).collect::<Vec<_>>();
    let claimed: Vec<_> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..8).map(|n| s.spawn(move || claim_a_share(n))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(claimed.len() as u32, region.chunk_count());
}

/// Fills `/dev/shm`, which is small here, after the ring has begun to use it.
fn fill_the_file_system() {
    let config = RegionConfig { backing: BackingChoice::File, buffer_size: 16 << 20, ..config(4) };
    let region = Region::create(&config).unwrap();
    let few: Vec<_> = (0..512).map(|n| claim(&region, n, 0, b"").unwrap()).collect();
    let filled = std::fs::write("/dev/shm/fill", vec![1; 32 << 20]);
    assert_eq!(filled.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    let all: Vec<_> = std::iter::from_fn(|| claim(&region, 1, 0, b"")).collect();
    let got = (few.len() + all.len()) as u32;
    assert_eq!(got, region.allocated_chunks());
    assert_eq!(region.chunks_denied(), region.chunk_count() - got);
    assert!(region.chunks_denied() > 0 && !region.has_free_chunk() && region.free_chunks() == 0);
    std::fs::remove_file("/dev/shm/fill").unwrap();
    assert!(!region.grow(1), "it is not tried again at each event");
    drop((few, all));
    Drain::new(Arc::clone(&region)).pass(&mut Sink::default()).unwrap();
    assert_eq!(region.free_chunks(), got);
}

/// Set in the process that this test runs itself in once more, with a small `/dev/shm` of its own.
const IN_A_SMALL_FILE_SYSTEM: &str = "IN_A_SMALL_FILE_SYSTEM";

#[test]
fn a_ring_whose_file_system_fills_up_stays_as_large_as_it_is() {
    if std::env::var_os(IN_A_SMALL_FILE_SYSTEM).is_some() {
        return fill_the_file_system();
    }
    let unshare = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command
    };
    let small = "mount -t tmpfs -o size=18m none /dev/shm";
    if !unshare(small).output().is_ok_and(|output| output.status.success()) {
        eprintln!("no namespaces here: not tested");
        return;
    }
    let this = std::env::current_exe().unwrap();
    let name = "memory::a_ring_whose_file_system_fills_up_stays_as_large_as_it_is";
    let again = format!("{small} && {IN_A_SMALL_FILE_SYSTEM}=1 exec {} --exact {name}", this.display());
    let output = unshare(&again).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
}

#[test]
fn a_claim_that_may_not_wait_for_the_system_allocates_no_chunk() {
    let config = RegionConfig { backing: BackingChoice::Memfd, buffer_size: 16 << 20, ..config(4) };
    let region = Region::create(&config).unwrap();
    let claim = || region.claim_allocated(ChunkInfo::default());
    let allocated = region.allocated_chunks();
    let held: Vec<_> = std::iter::from_fn(claim).collect();
    assert_eq!((held.len() as u32, region.allocated_chunks()), (allocated, allocated));
    assert!(allocated < region.chunk_count() && region.has_free_chunk());
    assert!(region.grow(1) && claim().is_some());
}

#[test]
fn a_ring_that_overwrites_uses_all_of_its_memory_first() {
    let config =
        RegionConfig { backing: BackingChoice::Memfd, buffer_size: 4 << 20, overwrite: true, ..config(4) };
    let region = Region::create(&config).unwrap();
    let numbers: std::collections::HashSet<_> =
        (0..region.chunk_count()).map(|n| claim(&region, n, 0, b"").unwrap().number()).collect();
    assert_eq!(numbers.len() as u32, region.chunk_count());
    assert!(claim(&region, 1, 0, b"").is_some(), "the oldest");
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
