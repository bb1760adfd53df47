//! Regions as killed processes leave them, and damage to them.

use std::io::{self, IoSlice};

use hairline_shm::{
    About, Backing, BackingChoice, ChunkInfo, Drain, Output, Region, RegionConfig, WriteChunk,
};

use super::random::Random;

/// Bytes of a chunk. A region has four chunks.
const CHUNK: usize = 4096;

/// A region's file.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    /// The records that the output does not have, and all records in the region.
    pub(crate) records: [u64; 2],
}

/// An output that copies the region's file in the middle of a write.
struct Camera<'r> {
    path: &'r str,
    picture: Vec<u8>,
}

impl Output for Camera<'_> {
    fn write_all_parts(&mut self, _: &[IoSlice<'_>]) -> io::Result<()> {
        self.picture = picture(self.path);
        Ok(())
    }

    fn file_len(&self) -> Option<u64> {
        Some(100)
    }
}

/// The bytes of the file, with the pid of no process.
fn picture(path: &str) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    let pid = 48; // its offset, which `abi.rs` asserts
    bytes[pid..pid + 4].fill(0xff);
    bytes
}

/// A chunk with `records` records.
fn chunk(region: &std::sync::Arc<Region>, sequence: u32, index: u32, records: u32) -> WriteChunk {
    let info = ChunkInfo { sequence, index, tid: 7, ..ChunkInfo::default() };
    let mut chunk = region.claim(info, b"context.").unwrap();
    for n in 0..records {
        assert!(chunk.append(&[n as u8; 16], 1));
    }
    chunk
}

/// Valid regions.
pub(crate) fn all() -> Vec<Image> {
    let about = About { output: "/tmp/trace.fxt".into(), prelude: vec![7; 300], process_track: 9 };
    let config = RegionConfig {
        buffer_size: 4 * CHUNK as u64,
        backing: BackingChoice::File,
        process_name: "victim".to_owned(),
        about,
        ..RegionConfig::small()
    };
    let region = Region::create(&config).unwrap();
    let Backing::File(path) = region.backing().clone() else { panic!("in a file") };
    let mut images = vec![Image { bytes: picture(&path), records: [0, 0] }]; // not begun
    region.activate(Some(100));
    images.push(Image { bytes: picture(&path), records: [0, 0] });
    // Two sequences. One has a second chunk.
    let first = chunk(&region, 1, 0, 20);
    drop(first);
    let mut second = chunk(&region, 1, 1, 5);
    let other = chunk(&region, 2, 0, 50);
    images.push(Image { bytes: picture(&path), records: [75, 75] });
    // In the middle of a batch, and after it. By then the first chunk is free.
    let mut drain = Drain::new(region.clone());
    let mut camera = Camera { path: &path, picture: Vec::new() };
    drain.pass(&mut camera).unwrap();
    images.push(Image { bytes: camera.picture, records: [75, 75] });
    images.push(Image { bytes: picture(&path), records: [0, 55] });
    // More records, and a full chunk.
    assert!(second.append(&[0xee; 100], 3));
    let full = chunk(&region, 3, 0, ((CHUNK - 64 - 8) / 16) as u32);
    images.push(Image { bytes: picture(&path), records: [3 + 251, 58 + 251] });
    drop((second, other, full));
    images
}

/// The numbers in the header that recovery uses: offset and width.
const HEADER: [(usize, usize); 18] = [
    (8, 4),  // version
    (12, 4), // sizes
    (16, 4),
    (20, 4),
    (24, 4),
    (28, 4),
    (32, 8),
    (40, 4), // format, overflow
    (48, 4), // pid, state, start
    (52, 4),
    (56, 8),
    (80, 8),  // namespace
    (176, 4), // path and head
    (180, 4),
    (184, 4),
    (384, 8), // batches, lengths
    (392, 8),
    (408, 8),
];
const IN_CHUNK: [(usize, usize); 11] =
    [(0, 4), (4, 4), (8, 4), (12, 4), (16, 4), (20, 4), (24, 4), (28, 4), (36, 4), (40, 8), (48, 4)];

/// Damages `bytes` in one of many ways. Some of them copy pieces of the region `other`.
pub(crate) fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let chunk_at = |n: usize| CHUNK * (1 + n);
    let len = bytes.len();
    match random.below(12) {
        0..=2 => {
            let (at, width) = *random.pick(&HEADER);
            put(bytes, at, width, random);
        }
        3..=6 => {
            let (at, width) = *random.pick(&IN_CHUNK);
            put(bytes, chunk_at(random.below(4)) + at, width, random);
        }
        // Copies the header of one chunk over another: the same sequence and index twice.
        7 => {
            let (from, to) = (chunk_at(random.below(4)), chunk_at(random.below(4)));
            if from + 64 <= len && to + 64 <= len {
                bytes.copy_within(from..from + 64, to);
            }
        }
        8 if len > 0 => {
            let at = random.below(len);
            bytes[at] ^= 1 << random.below(8);
        }
        // Cuts the file, at the border of a chunk or anywhere, or makes it longer.
        9 => bytes.truncate(if random.one_in(2) { chunk_at(random.below(4)) } else { random.below(len) }),
        10 => bytes.resize(len + random.below(2 * CHUNK), random.next() as u8),
        // Bytes of the other region.
        _ => {
            let range = random.range(other.len().min(len));
            bytes[range.clone()].copy_from_slice(&other[range]);
        }
    }
}

/// Overwrites a number: by a random one, one near a power of two, or one near the old value.
fn put(bytes: &mut [u8], at: usize, width: usize, random: &mut Random) {
    let Some(place) = bytes.get_mut(at..at + width) else { return };
    let mut number = [0; 8];
    number[..width].copy_from_slice(place);
    let was = u64::from_le_bytes(number);
    let now = if random.one_in(3) {
        was.wrapping_add(random.below(9) as u64).wrapping_sub(4)
    } else {
        random.number()
    };
    place.copy_from_slice(&now.to_le_bytes()[..width]);
}
