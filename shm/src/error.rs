use std::io;

/// Why a region could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The chunk size is not a power of two in [`CHUNK_SIZE_RANGE`](crate::abi::CHUNK_SIZE_RANGE).
    #[error("chunk size {0} is not a power of two from 4 KiB to 16 MiB")]
    ChunkSize(u32),
    /// The buffer has no room for four chunks, or for more than 2^24.
    #[error("a buffer of {buffer} bytes holds {chunks} chunks of {chunk} bytes; 4 to 16777216 are possible")]
    BufferSize {
        /// The requested bytes.
        buffer: u64,
        /// The bytes of a chunk.
        chunk: u32,
        /// The number of chunks that fit into the buffer.
        chunks: u64,
    },
    /// The path of the output or the head of the stream is too long.
    #[error("a path of {path} bytes and a head of {prelude} bytes; 4096 and 1048576 are possible")]
    About {
        /// The bytes of the path.
        path: usize,
        /// The bytes of the head.
        prelude: usize,
    },
    /// The system has no memory for the region.
    #[error("no memory for the ring ({what}): {source}")]
    Memory {
        /// The kind of memory.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}
