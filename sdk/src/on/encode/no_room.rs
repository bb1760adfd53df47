//! Why a record does not fit.

/// Why a record does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The region has no free chunk.
    BufferFull,
    /// The record does not fit an empty chunk, or the format has no room for values of this length.
    TooLarge,
    /// The chunk is full, and the chunk writer must compose the beginning of the next chunk first.
    ChunkFull,
}
