//! What stands before the chunks: read by offset, checked, and then believed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::RecoverError;
use crate::abi::{
    ABI_VERSION, CHUNK_HEADER_SIZE, CHUNK_SIZE_RANGE, LOSS_REASONS, LossReason, MAGIC, MAX_PATH, MAX_PRELUDE,
    NO_FILE, OVERFLOW_OVERWRITE, REGION_ACTIVE, REGION_CLOSED, REGION_HEADER_SIZE, RegionHeader,
};
use crate::backing::pid_in;
use crate::process::{self, Life};

/// How far the session had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionState {
    /// It had not begun: nothing was recorded.
    Starting,
    /// It was recording.
    Active,
    /// It had ended: nothing is missing in the output.
    Closed,
}

/// What a region says of itself.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The process.
    pub pid: u32,
    /// Field 22 of its `/proc/PID/stat`; 0 if not known.
    pub process_start: u64,
    /// The executable's name.
    pub process_name: String,
    /// The session's random number.
    pub session: [u8; 16],
    /// How far it had come.
    pub state: SessionState,
    /// The output's format, as the session numbers them.
    pub format: u32,
    /// What happens when no chunk is free, as `RegionHeader::overflow`.
    pub overflow: u32,
    /// Bytes of a chunk.
    pub chunk_size: u32,
    /// Number of chunks.
    pub chunk_count: u32,
    /// The output's path, if it is a file.
    pub output: Option<PathBuf>,
    /// So many of the file's first bytes are whole; None where the output is no file.
    pub output_len: Option<u64>,
    /// Where the output was about to go on in another file.
    pub next_output: Option<NextOutput>,
    /// The inode of the output, if it has gone on in another file.
    pub output_inode: Option<u64>,
    /// Bytes that the drain handed to the output, before any compression; what a batch in hand at the end adds is not in.
    pub output_bytes: u64,
    /// What the output begins with.
    pub prelude: Vec<u8>,
    /// Whether the stream's tail is among those bytes.
    pub has_tail: bool,
    /// The trace's number for the process's own track.
    pub process_track: u64,
    /// The trace's time when the writer thread looked last, in ns; 0 if it never did.
    pub last_look: u64,
    pub(super) batches_done: u64,
    pub(super) chunks_offset: u64,
    lost: [u64; LOSS_REASONS.len()],
    namespace: u64,
}

/// A file that stands at the output's path if the process was killed just after it was put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextOutput {
    /// Its inode.
    pub inode: u64,
    /// So many of its first bytes are whole.
    pub len: u64,
    /// The number that the file before it has then.
    pub number: u64,
}

impl Facts {
    /// Events lost for `reason`.
    #[must_use]
    pub fn lost(&self, reason: LossReason) -> u64 {
        self.lost[reason as usize]
    }

    /// Whether the session overwrote its oldest chunks and had no output until somebody asked: a flight recorder.
    #[must_use]
    pub fn overwrites(&self) -> bool {
        self.overflow == OVERFLOW_OVERWRITE
    }

    /// Whether the process lives.
    #[must_use]
    pub fn life(&self) -> Life {
        process::life(self.pid, self.process_start, self.namespace)
    }
}

/// Why the header cannot be read.
pub(super) enum Wrong {
    Io(io::Error),
    Version(u32),
    What(&'static str),
}

impl Wrong {
    pub(super) fn at(self, path: PathBuf) -> RecoverError {
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

/// Reads and checks. The order of the checks is that of trust: nothing is used before it was compared.
pub(super) fn read(file: &File, file_len: u64, path: &Path) -> Result<Facts, Wrong> {
    let mut raw = Raw([0; REGION_HEADER_SIZE]);
    match file.read_exact_at(&mut raw.0, 0) {
        // Killed between making the file and giving it a length.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof && file_len == 0 => {}
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Err(Wrong::What("too short")),
        other => other.map_err(Wrong::Io)?,
    }
    match raw.bytes(offset_of!(RegionHeader, magic)) {
        MAGIC => {}
        [0, 0, 0, 0, 0, 0, 0, 0] => return unborn(path), // stored last
        _ => return Err(Wrong::What("it begins otherwise")),
    }
    let version = raw.u32(offset_of!(RegionHeader, abi_version));
    if version != ABI_VERSION {
        return Err(Wrong::Version(version));
    }
    let header_size = raw.u32(offset_of!(RegionHeader, header_size));
    require(header_size as usize == REGION_HEADER_SIZE, "header size")?;
    require(
        raw.u32(offset_of!(RegionHeader, chunk_header_size)) as usize == CHUNK_HEADER_SIZE,
        "chunk header size",
    )?;
    let state = match raw.u32(offset_of!(RegionHeader, state)) {
        REGION_ACTIVE => SessionState::Active,
        REGION_CLOSED => SessionState::Closed,
        _ => SessionState::Starting,
    };
    let chunk_size = raw.u32(offset_of!(RegionHeader, chunk_size));
    require(chunk_size.is_power_of_two() && CHUNK_SIZE_RANGE.contains(&chunk_size), "chunk size")?;
    let chunk_count = raw.u32(offset_of!(RegionHeader, chunk_count));
    let chunks_offset = raw.u64(offset_of!(RegionHeader, chunks_offset));
    let end =
        u64::from(chunk_count).checked_mul(u64::from(chunk_size)).and_then(|n| n.checked_add(chunks_offset));
    require(chunk_count > 0 && end.is_some_and(|end| end <= file_len), "more chunks than bytes")?;
    let (output, prelude) = about(file, &raw, chunks_offset)?;
    let batches_done = raw.u64(offset_of!(RegionHeader, batches_done));
    let slot = offset_of!(RegionHeader, output_len) + if batches_done & 1 == 1 { 8 } else { 0 };
    let output_len = raw.u64(slot);
    let next = |n: usize| raw.u64(offset_of!(RegionHeader, next_output) + 8 * n);
    let tail_batch = raw.u64(offset_of!(RegionHeader, tail_batch));
    let name: [u8; 64] = raw.bytes(offset_of!(RegionHeader, process_name));
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(Facts {
        pid: raw.u32(offset_of!(RegionHeader, pid)),
        process_start: raw.u64(offset_of!(RegionHeader, process_start)),
        process_name: String::from_utf8_lossy(name).into_owned(),
        session: raw.bytes(offset_of!(RegionHeader, session)),
        state,
        format: raw.u32(offset_of!(RegionHeader, format)),
        overflow: raw.u32(offset_of!(RegionHeader, overflow)),
        chunk_size,
        chunk_count,
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
        chunks_offset,
        lost: LOSS_REASONS.map(|reason| raw.u64(offset_of!(RegionHeader, lost) + 8 * reason as usize)),
        namespace: raw.u64(offset_of!(RegionHeader, pid_namespace)),
    })
}

/// Path and head of the stream, which stand between header and chunks.
fn about(file: &File, raw: &Raw, chunks_offset: u64) -> Result<(Option<PathBuf>, Vec<u8>), Wrong> {
    let offset = u64::from(raw.u32(offset_of!(RegionHeader, about_offset)));
    let path_len = raw.u32(offset_of!(RegionHeader, path_len)) as usize;
    let prelude_len = raw.u32(offset_of!(RegionHeader, prelude_len)) as usize;
    require(path_len <= MAX_PATH && prelude_len <= MAX_PRELUDE, "length of path or head")?;
    let len = path_len + prelude_len;
    let end = offset + len as u64; // far below 2^33
    require(offset >= REGION_HEADER_SIZE as u64 && end <= chunks_offset, "place of path and head")?;
    let mut about = vec![0; len];
    file.read_exact_at(&mut about, offset).map_err(Wrong::Io)?;
    let prelude = about.split_off(path_len);
    require(!about.contains(&0), "a path with a zero in it")?;
    let output = (!about.is_empty()).then(|| PathBuf::from(OsString::from_vec(about)));
    Ok((output, prelude))
}

/// The header is not complete: the process was killed before, or is about to complete it. The file's name has
/// the pid, and nothing says in which namespace, so [`Facts::life`] is never Dead.
fn unborn(path: &Path) -> Result<Facts, Wrong> {
    let pid = path.file_name().and_then(|name| pid_in(name.to_str()?));
    Ok(Facts {
        pid: pid.ok_or(Wrong::What("empty"))?,
        process_start: 0,
        process_name: String::new(),
        session: [0; 16],
        state: SessionState::Starting,
        format: 0,
        overflow: 0,
        chunk_size: 0,
        chunk_count: 0,
        output: None,
        output_len: None,
        next_output: None,
        output_inode: None,
        output_bytes: 0,
        prelude: Vec::new(),
        has_tail: false,
        process_track: 0,
        last_look: 0,
        batches_done: 0,
        chunks_offset: 0,
        lost: [0; LOSS_REASONS.len()],
        namespace: 0,
    })
}
