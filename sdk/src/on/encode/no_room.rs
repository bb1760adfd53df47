//! Why a record finds no room.

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// No free chunk in the region.
    BufferFull,
    /// An empty chunk would not hold the record.
    TooLarge,
    /// The chunk is full, and the next one has to begin with what the writer knows.
    ChunkFull,
}
