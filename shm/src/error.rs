use std::{fmt, io};

/// The least number of chunks of a region.
pub(crate) const MIN_CHUNKS: u64 = 4;
/// The greatest number of chunks of a region.
pub(crate) const MAX_CHUNKS: u64 = 1 << 24;

/// Why a region could not be created.
///
/// ```
/// use hairline_shm::{Region, RegionConfig, RegionError};
///
/// let config = RegionConfig { chunk_size: 5000, ..RegionConfig::small() };
/// let error = Region::create(&config).unwrap_err();
/// assert!(matches!(error, RegionError::ChunkSize(5000)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RegionError {
    /// The chunk size is not a power of two in [`CHUNK_SIZE_RANGE`](crate::abi::CHUNK_SIZE_RANGE).
    ChunkSize(u32),
    /// The buffer has no room for four chunks, or for more than 2^24.
    BufferSize {
        /// The requested bytes.
        buffer: u64,
        /// The bytes of a chunk.
        chunk: u32,
        /// The number of chunks that fit into the buffer.
        chunks: u64,
    },
    /// The path of the output or the head of the stream is too long.
    About {
        /// The bytes of the path.
        path: usize,
        /// The bytes of the head.
        prelude: usize,
    },
    /// The system has no memory for the region.
    Memory {
        /// The kind of memory.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChunkSize(value) => {
                write!(f, "chunk size {value} is not a power of two from 4 KiB to 16 MiB")
            }
            Self::BufferSize { buffer, chunk, chunks } => {
                let (side, chunks) =
                    if *chunks < MIN_CHUNKS { ("least", MIN_CHUNKS) } else { ("most", MAX_CHUNKS) };
                let kib = chunks.saturating_mul(u64::from(*chunk)) >> 10;
                write!(
                    f,
                    "{buffer} bytes; use at {side} {kib}K, the size of {chunks} chunks of {chunk} bytes"
                )
            }
            Self::About { path, prelude } => write!(
                f,
                "a path of {path} bytes and a head of {prelude} bytes; 4096 and 1048576 are possible"
            ),
            Self::Memory { what, source } => write!(f, "no memory for the ring ({what}): {source}"),
        }
    }
}

impl std::error::Error for RegionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory { source, .. } => Some(source),
            _ => None,
        }
    }
}
