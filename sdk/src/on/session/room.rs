//! The room of a chunk.

use hairline_shm::Region;

/// Bytes that a store may reach beyond the record's end; kept free at the end of each chunk.
pub(crate) const OVERHANG: usize = 32;

/// Bytes of a chunk up to which records and ends may reach.
pub(crate) fn empty_room(region: &Region) -> u32 {
    region.payload_len() - OVERHANG as u32
}
