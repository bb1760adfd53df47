use std::io;

/// Why a region could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The chunk size is not a power of two in [`CHUNK_SIZE_RANGE`](crate::abi::CHUNK_SIZE_RANGE).
    #[error("chunk size {0} is not a power of two from 4 KiB to 16 MiB")]
    ChunkSize(u32),
    /// The buffer has no room for four chunks, or for more than 2^24.
    #[error("a buffer of {buffer} bytes holds {chunks} chunks of {chunk} bytes; 4 to 16777216 are possible")]
    BufferSize {
        /// Bytes asked for.
        buffer: u64,
        /// Bytes of a chunk.
        chunk: u32,
        /// How many that makes.
        chunks: u64,
    },
    /// The output's path or the stream's head is longer than a region holds.
    #[error("a path of {path} bytes and a head of {prelude} bytes; 4096 and 1048576 are possible")]
    About {
        /// Bytes of the path.
        path: usize,
        /// Bytes of the head.
        prelude: usize,
    },
    /// The memory could not be had.
    #[error("no memory for the ring ({what}): {source}")]
    Memory {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
