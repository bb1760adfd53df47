//! The room of an empty chunk.

use hairline_shm::Region;

/// Bytes that a store may write beyond its record's end. Each chunk keeps them free at its end.
pub(crate) const OVERHANG: usize = 24;

/// Returns the bytes of a chunk that records and reserved ends may use.
pub(crate) fn empty_room(region: &Region) -> u32 {
    region.payload_len() - OVERHANG as u32
}
