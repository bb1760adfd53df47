//! Everything before the chunks: the header, the path of the output, the head of the stream.

#![cfg_attr(not(feature = "recovery"), allow(dead_code))] // fields that only recovery reads

use std::fs::{File, Metadata};
use std::io;
use std::mem::offset_of;
use std::path::{Path, PathBuf};

use crate::abi::{
    ABI_VERSION, CHUNK_HEADER_SIZE, CHUNK_SIZE_RANGE, MAGIC, MAX_PATH, MAX_PRELUDE, MAX_TAPE, NO_FILE,
    OVERFLOW_OVERWRITE, REGION_ACTIVE, REGION_CLOSED, REGION_HEADER_SIZE, RegionHeader, TAPES,
};
use crate::backing::pid_in;
use crate::loss::{LOSS_REASONS, LossReason};
use crate::platform::{self, Namespaces};
use crate::process::{self, Life};
use crate::recover::error::RecoverError;

/// The stage that a session has reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionState {
    /// The session has not started recording.
    #[default]
    Starting,
    /// The session is recording.
    Active,
    /// The session has ended. The output is complete.
    Closed,
}

/// The content of a region's header.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The traced process.
    pub pid: u32,
    /// The start time of the process: field 22 of `/proc/PID/stat`; 0 if not known.
    pub process_start: u64,
    /// The name of the executable.
    pub process_name: String,
    /// The random number of the session.
    pub session: [u8; 16],
    /// The stage of the session.
    pub state: SessionState,
    /// The format of the output, by the session's numbers.
    pub format: u32,
    /// The behaviour when no chunk is free: [`OVERFLOW_DROP`](crate::abi::OVERFLOW_DROP) or
    /// [`OVERFLOW_OVERWRITE`].
    pub overflow: u32,
    /// Bytes of a chunk, header included.
    pub chunk_size: u32,
    /// Number of chunks.
    pub chunk_count: u32,
    /// The path of the output, if the output is a file.
    pub output: Option<PathBuf>,
    /// The length up to which the output is complete; `None` if the output is no file.
    pub output_len: Option<u64>,
    /// The next file of the output, if the process was killed while it changed files.
    pub next_output: Option<NextOutput>,
    /// The inode of the output, if the session has changed files.
    pub output_inode: Option<u64>,
    /// Bytes that the drain has written to the output, before compression. Without the batch that was under
    /// way.
    pub output_bytes: u64,
    /// The first bytes of the output.
    pub prelude: Vec<u8>,
    /// Whether the output has the tail of the stream.
    pub has_tail: bool,
    /// The uuid of the process's track in the trace.
    pub process_track: u64,
    /// The time of the drain thread's last pass, in ns of the trace's clock; 0 if there was none.
    pub last_look: u64,
    pub(super) batches_done: u64,
    pub(super) chunks_offset: u64,
    #[cfg_attr(not(feature = "recovery"), allow(dead_code))]
    pub(super) tapes: [Option<TapePlace>; TAPES],
    lost: [u64; LOSS_REASONS.len()],
    namespaces: Namespaces,
}

/// The place of the tape (`tape/`), and the positions of its entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct TapePlace {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// The file that the session was about to continue in. It is at the output's path if the process was killed
/// just after the rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextOutput {
    /// The inode of the file.
    pub inode: u64,
    /// The length up to which the file is complete.
    pub len: u64,
    /// The number that the previous file gets in its new name.
    pub number: u64,
}

impl Facts {
    /// The number of events lost for `reason`.
    #[must_use]
    pub fn lost(&self, reason: LossReason) -> u64 {
        self.lost[reason as usize]
    }

    /// Adds events that were lost to a full ring.
    #[cfg(feature = "recovery")]
    pub(super) fn add_lost_to_full_ring(&mut self, lost: u64) {
        let counted = &mut self.lost[LossReason::BufferFull as usize];
        *counted = counted.saturating_add(lost);
    }

    /// Whether the session overwrites its oldest chunks: a flight recorder, without an output until the first
    /// snapshot.
    #[must_use]
    pub fn overwrites(&self) -> bool {
        self.overflow == OVERFLOW_OVERWRITE
    }

    /// Whether the process is alive.
    #[must_use]
    pub fn life(&self) -> Life {
        process::life(self.pid, self.process_start, self.namespaces)
    }
}

/// Why the header cannot be read.
enum Wrong {
    Io(io::Error),
    Version(u32),
    What(&'static str),
}

impl Wrong {
    fn at(self, path: PathBuf) -> RecoverError {
        match self {
            Self::Io(source) => RecoverError::File { path, source },
            Self::Version(found) => RecoverError::Version { path, found },
            Self::What(what) => RecoverError::NotARegion { path, what },
        }
    }
}

fn require(holds: bool, what: &'static str) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(Wrong::What(what)) }
}

/// The header's bytes, read by the offsets of its fields.
struct Raw([u8; REGION_HEADER_SIZE]);

impl Raw {
    fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0[offset + i])
    }

    fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.bytes(offset))
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes(offset))
    }
}

/// The check that a file of another user fails.
pub(super) const NOT_OURS: &str = "not a regular file of this user";

/// Whether a file can be a region that this process may recover, by its metadata alone.
pub(super) fn is_ours(metadata: &Metadata) -> bool {
    metadata.is_file() && platform::is_own(metadata)
}

/// Reads the header of the region in `file`. `path` is for messages, and for the pid if there is no header.
pub(super) fn facts_of(file: &File, path: &Path) -> Result<Facts, RecoverError> {
    let metadata = file.metadata().map_err(|source| RecoverError::File { path: path.to_owned(), source })?;
    if !is_ours(&metadata) {
        return Err(RecoverError::NotARegion { path: path.to_owned(), what: NOT_OURS });
    }
    read(file, metadata.len(), path).map_err(|e| e.at(path.to_owned()))
}

/// Reads the number of chunks that threads have tried to overwrite.
#[cfg(feature = "recovery")]
pub(super) fn next_oldest(file: &File) -> io::Result<u64> {
    let mut raw = [0; 8];
    platform::read_exact_at(file, &mut raw, offset_of!(RegionHeader, next_oldest) as u64)?;
    Ok(u64::from_le_bytes(raw))
}

/// Reads the position of a tape's oldest entry.
#[cfg(feature = "recovery")]
pub(super) fn tape_begin(file: &File, number: usize) -> io::Result<u64> {
    let mut raw = [0; 8];
    platform::read_exact_at(file, &mut raw, (offset_of!(RegionHeader, tape_begin) + 8 * number) as u64)?;
    Ok(u64::from_le_bytes(raw))
}

/// Reads and checks the header. Each number is checked before it is used.
fn read(file: &File, file_len: u64, path: &Path) -> Result<Facts, Wrong> {
    let mut raw = Raw([0; REGION_HEADER_SIZE]);
    match platform::read_exact_at(file, &mut raw.0, 0) {
        // The process was killed before it gave the file a length.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof && file_len == 0 => {}
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Err(Wrong::What("too short")),
        other => other.map_err(Wrong::Io)?,
    }
    match raw.bytes(offset_of!(RegionHeader, magic)) {
        MAGIC => {}
        [0, 0, 0, 0, 0, 0, 0, 0] => return unborn(path), // the magic number is stored last
        _ => return Err(Wrong::What("it begins otherwise")),
    }
    let version = raw.u32(offset_of!(RegionHeader, abi_version));
    if version != ABI_VERSION {
        return Err(Wrong::Version(version));
    }
    let chunks = chunks(&raw, file_len)?;
    let (output, prelude) = about(file, &raw, chunks.offset)?;
    let batches_done = raw.u64(offset_of!(RegionHeader, batches_done));
    let slot = offset_of!(RegionHeader, output_len) + if batches_done & 1 == 1 { 8 } else { 0 };
    let output_len = raw.u64(slot);
    let next = |n: usize| raw.u64(offset_of!(RegionHeader, next_output) + 8 * n);
    let tail_batch = raw.u64(offset_of!(RegionHeader, tail_batch));
    Ok(Facts {
        pid: raw.u32(offset_of!(RegionHeader, pid)),
        process_start: raw.u64(offset_of!(RegionHeader, process_start)),
        process_name: process_name(&raw),
        session: raw.bytes(offset_of!(RegionHeader, session)),
        state: match raw.u32(offset_of!(RegionHeader, state)) {
            REGION_ACTIVE => SessionState::Active,
            REGION_CLOSED => SessionState::Closed,
            _ => SessionState::Starting,
        },
        format: raw.u32(offset_of!(RegionHeader, format)),
        overflow: raw.u32(offset_of!(RegionHeader, overflow)),
        chunk_size: chunks.size,
        chunk_count: chunks.count,
        output,
        output_len: (output_len != NO_FILE).then_some(output_len),
        next_output: (next(3) > batches_done).then(|| NextOutput {
            inode: next(0),
            len: next(1),
            number: next(2),
        }),
        output_inode: (1..=batches_done).contains(&next(3)).then(|| next(0)),
        output_bytes: raw.u64(offset_of!(RegionHeader, output_bytes)),
        prelude,
        has_tail: tail_batch != 0 && tail_batch <= batches_done,
        process_track: raw.u64(offset_of!(RegionHeader, process_track)),
        last_look: raw.u64(offset_of!(RegionHeader, last_look)),
        batches_done,
        chunks_offset: chunks.offset,
        tapes: std::array::from_fn(|number| tape(&raw, number, file_len)),
        lost: LOSS_REASONS.map(|reason| raw.u64(offset_of!(RegionHeader, lost) + 8 * reason as usize)),
        namespaces: Namespaces {
            pids: raw.u64(offset_of!(RegionHeader, pid_namespace)),
            time: raw.u64(offset_of!(RegionHeader, time_namespace)),
        },
    })
}

/// The chunks of a region: all of them are inside the file.
struct Chunks {
    size: u32,
    count: u32,
    offset: u64,
}

fn chunks(raw: &Raw, file_len: u64) -> Result<Chunks, Wrong> {
    let header_size = raw.u32(offset_of!(RegionHeader, header_size));
    require(header_size as usize == REGION_HEADER_SIZE, "header size")?;
    let chunk_header_size = raw.u32(offset_of!(RegionHeader, chunk_header_size));
    require(chunk_header_size as usize == CHUNK_HEADER_SIZE, "chunk header size")?;
    let size = raw.u32(offset_of!(RegionHeader, chunk_size));
    require(size.is_power_of_two() && CHUNK_SIZE_RANGE.contains(&size), "chunk size")?;
    let count = raw.u32(offset_of!(RegionHeader, chunk_count));
    let offset = raw.u64(offset_of!(RegionHeader, chunks_offset));
    let end = u64::from(count).checked_mul(u64::from(size)).and_then(|n| n.checked_add(offset));
    require(count > 0 && end.is_some_and(|end| end <= file_len), "more chunks than bytes")?;
    Ok(Chunks { size, count, offset })
}

/// A tape outside of the file, or a longer one than any, is none.
fn tape(raw: &Raw, number: usize, file_len: u64) -> Option<TapePlace> {
    let tape = TapePlace {
        offset: raw.u64(offset_of!(RegionHeader, tape_offset) + 8 * number),
        len: raw.u64(offset_of!(RegionHeader, tape_len) + 8 * number),
        begin: raw.u64(offset_of!(RegionHeader, tape_begin) + 8 * number),
        end: raw.u64(offset_of!(RegionHeader, tape_end) + 8 * number),
    };
    let is_inside = tape.offset.checked_add(tape.len).is_some_and(|end| end <= file_len);
    (is_inside && tape.len <= u64::from(MAX_TAPE)).then_some(tape)
}

fn process_name(raw: &Raw) -> String {
    let name: [u8; 64] = raw.bytes(offset_of!(RegionHeader, process_name));
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// The path of the output and the head of the stream, which are between the bitmap and the chunks.
fn about(file: &File, raw: &Raw, chunks_offset: u64) -> Result<(Option<PathBuf>, Vec<u8>), Wrong> {
    let offset = u64::from(raw.u32(offset_of!(RegionHeader, about_offset)));
    let path_len = raw.u32(offset_of!(RegionHeader, path_len)) as usize;
    let prelude_len = raw.u32(offset_of!(RegionHeader, prelude_len)) as usize;
    require(path_len <= MAX_PATH && prelude_len <= MAX_PRELUDE, "length of path or head")?;
    let len = path_len + prelude_len;
    let end = offset + len as u64; // far below 2^33
    require(offset >= REGION_HEADER_SIZE as u64 && end <= chunks_offset, "place of path and head")?;
    let mut about = vec![0; len];
    platform::read_exact_at(file, &mut about, offset).map_err(Wrong::Io)?;
    let prelude = about.split_off(path_len);
    require(!about.contains(&0), "a path with a zero in it")?;
    let output = (!about.is_empty()).then(|| platform::path_of(about));
    Ok((output, prelude))
}

/// The facts of a region whose header is not complete: the process was killed before it stored the magic
/// number, or is about to. Only the file name has the pid. Its namespace is not known, so [`Facts::life`] is
/// never `Dead`.
fn unborn(path: &Path) -> Result<Facts, Wrong> {
    let pid = path.file_name().and_then(|name| pid_in(name.to_str()?));
    Ok(Facts { pid: pid.ok_or(Wrong::What("empty"))?, ..Facts::default() })
}
