//! Another process of the same user writes into a region that is in use. The process that records must not
//! access bytes outside of the chunks, must not panic, and must count the chunks that are damaged.

#![allow(unsafe_code)] // closes the region

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use hairline_shm::abi::CHUNK_HEADER_SIZE;
use hairline_shm::{
    Backing, BackingChoice, ChunkInfo, Commit, Drain, LossReason, Region, RegionConfig, Window, WriteChunk,
};

use crate::common::Sink;
use crate::{claim, config};

/// Offsets in a chunk's header: `abi.rs`.
const STATE: u64 = 0;
const SEQUENCE: u64 = 4;
const COMMIT: u64 = 8;
const DRAINED: u64 = 16;
const INDEX: u64 = 24;
const TID: u64 = 28;
const FLAGS: u64 = 32;
const CONTEXT_LEN: u64 = 36;
const RECOVERY_LEN: u64 = 52;

/// A region, and its file as another process sees it.
struct Shared {
    region: Arc<Region>,
    file: File,
}

impl Shared {
    fn new(overwrite: bool) -> Self {
        let config = RegionConfig { backing: BackingChoice::File, overwrite, ..config(5) };
        let region = Region::create(&config).unwrap();
        let Backing::File(path) = region.backing().clone() else { panic!("{:?}", region.backing()) };
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        Self { region, file }
    }

    fn write(&self, chunk: u32, field: u64, bytes: &[u8]) {
        let chunk = u64::from(chunk) * u64::from(self.region.chunk_size());
        self.file.write_all_at(bytes, self.region.header().chunks_offset() + chunk + field).unwrap();
    }
}

/// The fields to overwrite, with numbers that lead out of the chunk or contradict each other.
fn lies() -> Vec<(u64, Vec<u8>)> {
    let commits = [
        Commit::new(u32::MAX, 0),
        Commit::new(u32::MAX, u32::MAX),
        Commit::new(4096, 1), // the payload has 4024 bytes
        Commit::new(4025, 1),
        Commit::new(1, 0), // less than was drained
        Commit::new(0, 0),
    ];
    let mut lies: Vec<_> = commits.map(|c| (COMMIT, c.0.to_le_bytes().to_vec())).into();
    lies.extend(commits.map(|c| (DRAINED, c.0.to_le_bytes().to_vec())));
    for field in [STATE, SEQUENCE, INDEX, TID, FLAGS, CONTEXT_LEN, RECOVERY_LEN] {
        lies.extend(
            [0, 1, 2, 3, 7, 4096, u32::MAX - 1, u32::MAX].map(|n: u32| (field, n.to_le_bytes().to_vec())),
        );
    }
    lies.push((STATE, vec![0xff; CHUNK_HEADER_SIZE]));
    lies.push((STATE, vec![0; CHUNK_HEADER_SIZE]));
    lies
}

#[test]
fn the_drain_reads_nothing_outside_of_a_chunk_with_a_wrong_header() {
    let mut counted = 0;
    for (field, bytes) in lies() {
        let shared = Shared::new(false);
        let mut drain = Drain::new(Arc::clone(&shared.region));
        let mut sink = Sink::default();
        let mut chunk = claim(&shared.region, 7, 0, b"context").unwrap();
        assert!(chunk.append(b"a record", 1));
        drain.pass(&mut sink).unwrap();
        shared.write(chunk.number(), field, &bytes);
        for _ in 0..3 {
            drain.pass(&mut sink).unwrap();
            chunk.append(b"another record", 1);
        }
        drop(chunk);
        drain.pass(&mut sink).unwrap();
        let longest = 3 * b"contexta record".len() + 3 * b"another record".len() + 2 * 4024;
        assert!(sink.bytes.len() <= longest, "{field} {bytes:?}: {} bytes", sink.bytes.len());
        let damaged = shared.region.lost(LossReason::Damaged);
        assert!(damaged <= 2, "{field} {bytes:?}: a chunk counts once, not {damaged} times");
        counted += damaged;
        // The other chunks are read on.
        let mut other = claim(&shared.region, 8, 0, b"").unwrap();
        assert!(other.append(b"unharmed", 1));
        let before = sink.bytes.len();
        drain.pass(&mut sink).unwrap();
        assert!(sink.bytes[before..].ends_with(b"unharmed"), "{field} {bytes:?}");
    }
    assert!(counted >= 15, "most wrong numbers are noticed: {counted}");
}

/// Wrong numbers for the fields of a chunk's owner. The chunk is the one of sequence 7, index 1, and has
/// seven bytes of context.
fn false_owners() -> Vec<(u64, u32)> {
    let numbers = |field, not: u32| {
        [0, 1, 2, 7, 9, 4096, u32::MAX - 1, u32::MAX]
            .into_iter()
            .filter(move |n| *n != not)
            .map(move |n| (field, n))
    };
    let fields = [(SEQUENCE, 7), (INDEX, 1), (TID, 3), (CONTEXT_LEN, 7)];
    fields.into_iter().flat_map(|(field, truth)| numbers(field, truth)).collect()
}

fn claim_by_thread_3(region: &Arc<Region>, index: u32) -> WriteChunk {
    region.claim(ChunkInfo { sequence: 7, index, tid: 3, context_len: 0 }, b"context").unwrap()
}

//  sequence 7:  [C a]|  [C b...   another process changes this header   [C c]|
#[test]
fn a_chunk_with_a_wrong_owner_is_counted_once_and_its_thread_goes_on() {
    for (field, number) in false_owners() {
        let shared = Shared::new(false);
        let mut drain = Drain::new(Arc::clone(&shared.region));
        let mut sink = Sink::default();
        assert!(claim_by_thread_3(&shared.region, 0).append(b"a", 1));
        drain.pass(&mut sink).unwrap();
        let mut second = claim_by_thread_3(&shared.region, 1);
        assert!(second.append(b"b", 1));
        shared.write(second.number(), field, &number.to_le_bytes());
        let bytes = sink.bytes.len();
        for _ in 0..3 {
            drain.pass(&mut sink).unwrap();
        }
        assert_eq!(shared.region.lost(LossReason::Damaged), 1, "{field} {number}");
        assert_eq!(sink.bytes.len(), bytes, "{field} {number}: it is not read");
        assert!(claim_by_thread_3(&shared.region, 2).append(b"c", 1));
        drop(second);
        drain.pass(&mut sink).unwrap();
        assert!(sink.bytes.ends_with(b"c"), "{field} {number}: {:?}", sink.bytes);
        assert_eq!(shared.region.lost(LossReason::Damaged), 1, "{field} {number}");
    }
}

#[test]
fn a_wrong_last_flag_in_a_header_does_not_end_a_sequence() {
    let shared = Shared::new(false);
    let mut drain = Drain::new(Arc::clone(&shared.region));
    let mut sink = Sink::default();
    for index in 0..2 {
        let mut chunk = claim_by_thread_3(&shared.region, index);
        assert!(chunk.append(b"a", 1));
        shared.write(chunk.number(), FLAGS, &1_u32.to_le_bytes());
        drop(chunk);
        drain.pass(&mut sink).unwrap();
    }
    assert_eq!(sink.bytes, b"contextaa");
    // A chunk that is the last one ends it, whatever its header says.
    let mut last = claim_by_thread_3(&shared.region, 2);
    assert!(last.append(b"b", 1));
    let number = last.number();
    last.finish_sequence();
    shared.write(number, FLAGS, &0_u32.to_le_bytes());
    drain.pass(&mut sink).unwrap();
    assert!(claim_by_thread_3(&shared.region, 0).append(b"c", 1));
    drain.pass(&mut sink).unwrap();
    assert_eq!(sink.bytes, b"contextaabc");
}

#[test]
fn a_chunk_with_more_records_than_bytes_is_damaged() {
    let shared = Shared::new(false);
    let mut drain = Drain::new(Arc::clone(&shared.region));
    let mut sink = Sink::default();
    let mut chunk = claim(&shared.region, 7, 0, b"").unwrap();
    assert!(chunk.append(b"a record", 1));
    shared.write(chunk.number(), COMMIT, &Commit::new(8, 4025).0.to_le_bytes());
    assert_eq!(drain.pass(&mut sink).unwrap().records, 0);
    assert_eq!(shared.region.lost(LossReason::Damaged), 1);
}

#[test]
fn each_sequence_has_its_own_number_whatever_the_header_says() {
    const NEXT_SEQUENCE: u64 = 104; // in the region's header: `abi.rs`
    let shared = Shared::new(false);
    let first = shared.region.new_sequence();
    shared.file.write_all_at(&0_u32.to_le_bytes(), NEXT_SEQUENCE).unwrap();
    assert_eq!((first, shared.region.new_sequence()), (1, 2));
}

#[test]
fn the_window_counts_a_damaged_chunk_once_and_has_the_others() {
    let lies = false_owners().into_iter().map(|(field, number)| (field, number.to_le_bytes().to_vec()));
    let lies = lies.chain([
        (COMMIT, Commit::new(4025, 1).0.to_le_bytes().to_vec()),
        (COMMIT, Commit::new(0, 0).0.to_le_bytes().to_vec()),
        (DRAINED, Commit::new(4000, 0).0.to_le_bytes().to_vec()),
        (STATE, (8 | 4 | 1_u32).to_le_bytes().to_vec()), // pinned, but not by the window
    ]);
    for (field, bytes) in lies {
        let shared = Shared::new(true);
        let mut window = Window::new(Arc::clone(&shared.region));
        let mut other = claim(&shared.region, 8, 0, b"").unwrap();
        assert!(other.append(b"unharmed", 1));
        let mut chunk = claim_by_thread_3(&shared.region, 1);
        assert!(chunk.append(b"a record", 1));
        shared.write(chunk.number(), field, &bytes);
        for _ in 0..2 {
            window.take().unwrap();
            let all: Vec<_> = window.pieces().map(|piece| piece.bytes).collect();
            assert_eq!(all, [b"unharmed"], "{field} {bytes:?}");
            assert_eq!(shared.region.lost(LossReason::Damaged), 1, "{field} {bytes:?}");
            window.clear();
        }
    }
}

#[test]
fn the_window_reads_nothing_outside_of_a_chunk_with_a_wrong_header() {
    for (field, bytes) in lies() {
        let shared = Shared::new(true);
        let mut window = Window::new(Arc::clone(&shared.region));
        let mut chunk = claim(&shared.region, 7, 0, b"context").unwrap();
        assert!(chunk.append(b"a record", 1));
        shared.write(chunk.number(), field, &bytes);
        window.take().unwrap();
        let len: usize = window.pieces().map(|piece| piece.bytes.len()).sum();
        assert!(len <= 4024, "{field} {bytes:?}: {len} bytes");
        window.clear();
        chunk.append(b"another record", 1);
        drop(chunk);
        window.take().unwrap();
    }
}

#[test]
fn the_owner_writes_inside_of_its_chunk_whatever_the_header_says() {
    for (field, bytes) in lies() {
        let shared = Shared::new(false);
        let mut chunk = claim(&shared.region, 7, 0, b"").unwrap();
        assert!(chunk.append(b"one", 1));
        shared.write(chunk.number(), field, &bytes);
        let before = chunk.committed();
        assert_eq!(before, Commit::new(3, 1), "its own copy counts");
        assert!(chunk.append(b"two", 1));
        let mut written = [0; 6];
        chunk.copy_committed(&mut written);
        assert_eq!(&written, b"onetwo");
        assert!(!chunk.append(&[0; 4024 - 5], 1), "as much room as there was");
        assert!(chunk.append(&[0; 4024 - 6], 1));
        assert_eq!(chunk.noted::<4>(4024 - 3), None);
    }
}

#[test]
fn bits_that_stand_for_no_chunk_are_not_claimed() {
    let shared = Shared::new(false);
    shared.file.write_all_at(&[0xff; 8], 512).unwrap(); // the bitmap of five chunks
    assert_eq!(shared.region.free_chunks(), 5);
    let held: Vec<_> = (0..5).map(|n| claim(&shared.region, n, 0, b"").unwrap()).collect();
    assert!(claim(&shared.region, 9, 0, b"").is_none());
    assert!(!shared.region.has_free_chunk());
    assert!(held.iter().all(|chunk| chunk.number() < 5));
}

#[test]
fn a_next_file_is_announced_for_any_number_of_batches() {
    const BATCHES_DONE: u64 = 384; // in the region's header: `abi.rs`
    let shared = Shared::new(false);
    shared.region.activate(Some(0));
    shared.file.write_all_at(&u64::MAX.to_le_bytes(), BATCHES_DONE).unwrap();
    shared.region.announce_output(11, 100, 1);
}

#[test]
fn a_closed_region_gives_its_memory_back_and_may_still_be_written() {
    use std::os::unix::fs::MetadataExt;
    let shared = Shared::new(false);
    while shared.region.grow(4096) {}
    let mut chunk = claim(&shared.region, 1, 0, b"").unwrap();
    assert!(chunk.append(b"a record", 1));
    assert!(shared.file.metadata().unwrap().blocks() * 512 >= 5 * 4096);
    shared.region.count_lost(LossReason::BufferFull, 3);
    // SAFETY: no thread drains the region.
    unsafe { shared.region.close() };
    let left = shared.file.metadata().unwrap().blocks() * 512;
    assert!(left <= 4096, "{left} bytes are left: the header's page");
    // A thread that still has its chunk.
    assert!(chunk.append(&[7; 4000], 1));
    drop(chunk);
    assert_eq!(shared.file.metadata().unwrap().blocks() * 512, left, "it went into private memory");
    assert_eq!(shared.region.lost(LossReason::BufferFull), 3);
    let info = ChunkInfo { sequence: 3, ..ChunkInfo::default() };
    let _late = shared.region.claim(info, b"a thread that began late");
}
