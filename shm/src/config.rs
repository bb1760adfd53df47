//! What a region is to be like.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::abi::{CHUNK_SIZE_RANGE, TAPES};
#[cfg(doc)]
use crate::abi::{MAX_PATH, MAX_PRELUDE, MAX_TAPE};
use crate::backing::BackingChoice;
use crate::error::RegionError;
use crate::platform;

/// The settings of a region.
///
/// ```
/// use hairline_shm::{BackingChoice, Region, RegionConfig};
///
/// let region = Region::create(&RegionConfig {
///     buffer_size: 1 << 20,
///     chunk_size: 64 << 10,
///     backing: BackingChoice::Heap,
///     overwrite: false,
///     format: 0,
///     session: [7; 16],
///     process_name: "server".to_owned(),
///     about: Default::default(), // no file to recover
///     tapes: [0; 3],
/// })?;
/// assert_eq!((region.chunk_count(), region.chunk_size()), (16, 65_536));
/// # Ok::<(), hairline_shm::RegionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RegionConfig {
    /// Bytes of all chunks together, rounded down to whole chunks.
    pub buffer_size: u64,
    /// Bytes of one chunk, header included: a power of two, 4 KiB to 16 MiB.
    pub chunk_size: u32,
    /// The memory to use.
    pub backing: BackingChoice,
    /// Whether threads overwrite the oldest chunk when no chunk is free. Such a region is not drained.
    pub overwrite: bool,
    /// For the header: the format of the output, by the caller's numbers.
    pub format: u32,
    /// For the header: the random number of the session.
    pub session: [u8; 16],
    /// For the header: the name of the executable, cut to 63 bytes.
    pub process_name: String,
    /// For recovery: facts about the output.
    pub about: About,
    /// Bytes of each [`Tape`](crate::Tape), rounded up to whole pages, at most [`MAX_TAPE`]; 0
    /// for none.
    pub tapes: [u32; TAPES],
}

/// Facts about the output of a session, for [`recover`](crate::recover).
///
/// ```
/// use hairline_shm::recover::RegionFile;
/// use hairline_shm::{About, Backing, BackingChoice, Region, RegionConfig};
///
/// let about = About { output: "/tmp/trace.fxt".into(), prelude: b"head".to_vec(), process_track: 7 };
/// let config = RegionConfig { about, backing: BackingChoice::File, ..RegionConfig::small() };
/// let region = Region::create(&config)?;
/// region.activate(Some(4)); // the output has its head
/// region.note_time(1_000);
///
/// let Backing::File(path) = region.backing() else { panic!() };
/// let file = RegionFile::open(path.as_ref())?; // as recovery does after a kill
/// let facts = file.facts();
/// assert_eq!(facts.output.as_deref(), Some("/tmp/trace.fxt".as_ref()));
/// assert_eq!((&facts.prelude[..], facts.output_len, facts.last_look), (&b"head"[..], Some(4), 1_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The absolute path of the output; empty if the output is no file. At most [`MAX_PATH`] bytes.
    pub output: PathBuf,
    /// The first bytes of the output. At most [`MAX_PRELUDE`] bytes.
    pub prelude: Vec<u8>,
    /// The uuid of the process's track in the trace.
    pub process_track: u64,
}

impl About {
    pub(crate) fn parts(&self) -> [Cow<'_, [u8]>; 2] {
        [platform::bytes_of(&self.output), (&self.prelude).into()]
    }
}

impl RegionConfig {
    /// Sixteen chunks of 4 KiB on the heap, for tests and examples.
    #[must_use]
    pub fn small() -> Self {
        Self {
            buffer_size: 16 * 4096,
            chunk_size: 4096,
            backing: BackingChoice::Heap,
            overwrite: false,
            format: 0,
            session: [0; 16],
            process_name: String::new(),
            about: About::default(),
            tapes: [0; TAPES],
        }
    }

    /// Returns the number of chunks in a buffer of `buffer_size` bytes. Allocates nothing: for a program that
    /// checks the sizes before another one creates the region.
    ///
    /// ```
    /// use hairline_shm::RegionConfig;
    ///
    /// assert_eq!(RegionConfig::chunks_of(1 << 20, 16 << 10)?, 64);
    /// assert!(RegionConfig::chunks_of(63 << 10, 16 << 10).is_err());
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    ///
    /// # Errors
    /// If a size is out of range.
    pub fn chunks_of(buffer_size: u64, chunk_size: u32) -> Result<u32, RegionError> {
        if !chunk_size.is_power_of_two() || !CHUNK_SIZE_RANGE.contains(&chunk_size) {
            return Err(RegionError::ChunkSize(chunk_size));
        }
        let chunks = buffer_size / u64::from(chunk_size);
        match u32::try_from(chunks) {
            Ok(n @ 4..=0x100_0000) => Ok(n),
            _ => Err(RegionError::BufferSize { buffer: buffer_size, chunk: chunk_size, chunks }),
        }
    }

    /// Returns the number of chunks.
    pub(crate) fn chunk_count(&self) -> Result<u32, RegionError> {
        Self::chunks_of(self.buffer_size, self.chunk_size)
    }
}
