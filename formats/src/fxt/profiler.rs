//! Records of a sampling profiler: what is loaded, where it is mapped, and call stacks. To write and to read.

use super::cursor::Cursor;
use super::kinds::ProfilerKind;
use super::layout::{
    MAX_FRAMES, MAX_MODULE_BYTES, RecordType, backtrace as backtrace_fields, mmap as mmap_fields,
    module as module_fields, profiler, words,
};
use super::record::Record;
use super::refs::ThreadRef;
use super::write::{Put, header, put_thread};
use crate::text::valid_prefix;
use crate::{DecodeError, truncate_utf8};

/// "Module Record".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module<'a> {
    /// When, in ticks.
    pub timestamp: u64,
    /// The process that loaded it; by the document an inline one has the thread 0.
    pub thread: ThreadRef,
    /// Its number, to which [`Mmap`] records refer.
    pub id: u16,
    /// Its name. Written: at most [`MAX_MODULE_BYTES`].
    pub name: &'a str,
    /// What tells one build of it from another. Written: at most [`MAX_MODULE_BYTES`].
    pub build_id: &'a [u8],
}

/// "Mmap Record".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap {
    /// When, in ticks.
    pub timestamp: u64,
    /// The process whose memory it is; by the document an inline one has the thread 0.
    pub thread: ThreadRef,
    /// The number of a [`Module`].
    pub module_id: u16,
    /// 3 bits, which the document does not explain. Written: cut to them.
    pub flags: u8,
    /// Where the mapping starts.
    pub start: u64,
    /// "The range of the mmap record".
    pub range: u64,
    /// The address of `start` relative to the module.
    pub vaddr: u64,
}

/// "Backtrace Record". `F` is the type of the frames: a slice to be written, an iterator ([`Frames`]) when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backtrace<F> {
    /// When, in ticks.
    pub timestamp: u64,
    /// Whose call stack it is.
    pub thread: ThreadRef,
    /// All frames of the stack, a word each. Written: the first [`MAX_FRAMES`].
    pub frames: F,
}

/// The frames of a [`Backtrace`], in their order.
#[derive(Clone, Debug)]
pub struct Frames<'a>(&'a [u8]);

impl Iterator for Frames<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len() / 8, Some(self.0.len() / 8))
    }
}

impl ExactSizeIterator for Frames<'_> {}

const fn profiler_header(kind: ProfilerKind, words: usize, thread_bits: u64) -> u64 {
    header(RecordType::Profiler, words) | profiler::KIND.set(kind as u64) | profiler::THREAD.set(thread_bits)
}

/// "Module Record": a program or library that a process has loaded.
///
/// ```text
///  63  60 59      52 51      44 43       28 27    20 19 16 15          4 3      0
/// +------+----------+----------+-----------+--------+-----+-------------+--------+
/// | 0    | build id,| name,    | module id | thread |  0  | size, words |  10    |
/// |      | bytes    | bytes    |           | (ref)  |     |             |        |
/// +------+----------+----------+-----------+--------+-----+-------------+--------+
/// | timestamp                                                                    |
/// +------------------------------------------------------------------------------+
/// | process's and thread's koids, if they are inline                             |
/// +------------------------------------------------------------------------------+
/// | module name                                                                  |
/// +------------------------------------------------------------------------------+
/// | build id                                                                     |
/// +------------------------------------------------------------------------------+
/// ```
pub fn module(out: &mut impl Put, record: &Module<'_>) {
    let name = truncate_utf8(record.name, MAX_MODULE_BYTES);
    let build_id = &record.build_id[..record.build_id.len().min(MAX_MODULE_BYTES)];
    let size = 2 + record.thread.words() + words(name.len()) + words(build_id.len());
    out.word(
        profiler_header(ProfilerKind::Module, size, record.thread.bits())
            | module_fields::ID.set(u64::from(record.id))
            | module_fields::NAME_LENGTH.set(name.len() as u64)
            | module_fields::BUILD_ID_LENGTH.set(build_id.len() as u64),
    );
    out.word(record.timestamp);
    put_thread(out, record.thread);
    out.stream(name.as_bytes());
    out.stream(build_id);
}

/// "Mmap Record": where a part of a module is in memory.
///
/// ```text
///  63       47 46   44 43       28 27    20 19 16 15          4 3      0
/// +-----------+-------+-----------+--------+-----+-------------+--------+
/// | 0         | flags | module id | thread |  1  | size, words |  10    |
/// |           |       |           | (ref)  |     |             |        |
/// +-----------+-------+-----------+--------+-----+-------------+--------+
/// | timestamp                                                           |
/// +---------------------------------------------------------------------+
/// | process's and thread's koids, if they are inline                    |
/// +---------------------------------------------------------------------+
/// | start address                                                       |
/// +---------------------------------------------------------------------+
/// | address range                                                       |
/// +---------------------------------------------------------------------+
/// | vaddr: module relative address                                      |
/// +---------------------------------------------------------------------+
/// ```
pub fn mmap(out: &mut impl Put, record: &Mmap) {
    out.word(
        profiler_header(ProfilerKind::Mmap, 5 + record.thread.words(), record.thread.bits())
            | mmap_fields::MODULE_ID.set(u64::from(record.module_id))
            | mmap_fields::FLAGS.set(u64::from(record.flags)),
    );
    out.word(record.timestamp);
    put_thread(out, record.thread);
    out.word(record.start);
    out.word(record.range);
    out.word(record.vaddr);
}

/// "Backtrace Record": a call stack.
///
/// ```text
///  63             36 35      28 27    20 19 16 15          4 3      0
/// +-----------------+----------+--------+-----+-------------+--------+
/// | 0               | number   | thread |  2  | size, words |  10    |
/// |                 | of frames| (ref)  |     |             |        |
/// +-----------------+----------+--------+-----+-------------+--------+
/// | timestamp                                                        |
/// +------------------------------------------------------------------+
/// | process's and thread's koids, if they are inline                 |
/// +------------------------------------------------------------------+
/// | frames, a word each                                              |
/// +------------------------------------------------------------------+
/// ```
pub fn backtrace(out: &mut impl Put, record: &Backtrace<&[u64]>) {
    let frames = &record.frames[..record.frames.len().min(MAX_FRAMES)];
    let size = 2 + record.thread.words() + frames.len();
    out.word(
        profiler_header(ProfilerKind::Backtrace, size, record.thread.bits())
            | backtrace_fields::FRAMES.set(frames.len() as u64),
    );
    out.word(record.timestamp);
    put_thread(out, record.thread);
    frames.iter().for_each(|frame| out.word(*frame));
}

/// None for a kind of record that the document does not have.
pub(super) fn parse<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, DecodeError> {
    let Some(kind) = ProfilerKind::from_number(profiler::KIND.get(header)) else {
        return Ok(None);
    };
    // In the order of the words.
    let timestamp = cursor.word("a timestamp")?;
    let thread = cursor.thread(profiler::THREAD.get(header))?;
    Ok(Some(match kind {
        ProfilerKind::Module => Record::Module(Module {
            timestamp,
            thread,
            id: module_fields::ID.get(header) as u16,
            name: valid_prefix(cursor.stream(module_fields::NAME_LENGTH.get(header), "a module's name")?),
            build_id: cursor.stream(module_fields::BUILD_ID_LENGTH.get(header), "a build id")?,
        }),
        ProfilerKind::Mmap => Record::Mmap(Mmap {
            timestamp,
            thread,
            module_id: mmap_fields::MODULE_ID.get(header) as u16,
            flags: mmap_fields::FLAGS.get(header) as u8,
            start: cursor.word("a start address")?,
            range: cursor.word("an address range")?,
            vaddr: cursor.word("a vaddr")?,
        }),
        ProfilerKind::Backtrace => Record::Backtrace(Backtrace {
            timestamp,
            thread,
            frames: Frames(cursor.stream(backtrace_fields::FRAMES.get(header) * 8, "a backtrace")?),
        }),
    }))
}
