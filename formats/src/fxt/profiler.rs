//! Profiler records, written and read: loaded modules, their mappings, and call stacks.

use crate::fxt::cursor::Cursor;
use crate::fxt::header::header;
use crate::fxt::layout::{
    MAX_FRAMES, MAX_MODULE_BYTES, ProfilerKind, RecordType, backtrace as backtrace_fields,
    mmap as mmap_fields, module as module_fields, profiler, words,
};
use crate::fxt::put::PutWords;
use crate::fxt::refs::ThreadRef;
use crate::text::valid_prefix;
use crate::{DecodeError, truncate_utf8};

/// "Module Record".
///
/// ```
/// use hairline_formats::fxt::{self, Mmap, Module, ThreadRef};
///
/// let thread = ThreadRef::Inline { process: 70, thread: 0 };
/// let mut trace = Vec::new();
/// let module = Module { timestamp: 1, thread, id: 3, name: "libm.so.6", build_id: &[0xab, 0xcd] };
/// fxt::module(&mut trace, &module);
/// assert_eq!(trace.len(), 56); // header, timestamp, 2 words of thread, 2 of name, 1 of build id
/// let at = Mmap { timestamp: 2, thread, module_id: 3, flags: 0, start: 0x7000, range: 0x1000, vaddr: 0 };
/// fxt::mmap(&mut trace, &at);
/// assert_eq!(trace.len(), 56 + 56); // its module is the one with id 3
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module<'a> {
    /// The time, in ticks.
    pub timestamp: u64,
    /// The process that loaded the module. By the document, an inline reference has the thread 0.
    pub thread: ThreadRef,
    /// The module's id, to which [`Mmap`] records refer.
    pub id: u16,
    /// The module's name. The writer cuts it to [`MAX_MODULE_BYTES`].
    pub name: &'a str,
    /// The build id. The writer cuts it to [`MAX_MODULE_BYTES`].
    pub build_id: &'a [u8],
}

/// "Mmap Record".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap {
    /// The time, in ticks.
    pub timestamp: u64,
    /// The process that has the mapping. By the document, an inline reference has the thread 0.
    pub thread: ThreadRef,
    /// The id of a [`Module`].
    pub module_id: u16,
    /// 3 bits, which the document does not explain. The writer drops further bits.
    pub flags: u8,
    /// The mapping's first address.
    pub start: u64,
    /// "The range of the mmap record", in the document's words.
    pub range: u64,
    /// The address of `start` relative to the module.
    pub vaddr: u64,
}

/// "Backtrace Record". `F` is the type of the frames: a slice to write, an iterator ([`Frames`]) when read.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{self, Backtrace, Record, RecordReader, ThreadRef};
///
/// let mut trace = Vec::new();
/// let thread = ThreadRef::Index(1);
/// fxt::backtrace(&mut trace, &Backtrace { timestamp: 10, thread, frames: &[0x7010, 0x7020][..] });
/// let mut reader = RecordReader::new(&trace[..]);
/// let Some((_, Record::Backtrace(read))) = reader.next()? else { panic!() };
/// assert_eq!(read.frames.collect::<Vec<_>>(), [0x7010, 0x7020]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backtrace<F> {
    /// The time, in ticks.
    pub timestamp: u64,
    /// The thread whose call stack it is.
    pub thread: ThreadRef,
    /// The frames of the stack, a word each. The writer keeps the first [`MAX_FRAMES`].
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

/// Writes a "Module Record": a program or library that a process has loaded.
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
pub fn module(out: &mut impl PutWords, record: &Module<'_>) {
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
    record.thread.put(out);
    out.stream(name.as_bytes());
    out.stream(build_id);
}

/// Writes an "Mmap Record": the addresses of a part of a module.
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
pub fn mmap(out: &mut impl PutWords, record: &Mmap) {
    out.word(
        profiler_header(ProfilerKind::Mmap, 5 + record.thread.words(), record.thread.bits())
            | mmap_fields::MODULE_ID.set(u64::from(record.module_id))
            | mmap_fields::FLAGS.set(u64::from(record.flags)),
    );
    out.word(record.timestamp);
    record.thread.put(out);
    out.word(record.start);
    out.word(record.range);
    out.word(record.vaddr);
}

/// Writes a "Backtrace Record": a call stack.
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
pub fn backtrace(out: &mut impl PutWords, record: &Backtrace<&[u64]>) {
    let frames = &record.frames[..record.frames.len().min(MAX_FRAMES)];
    let size = 2 + record.thread.words() + frames.len();
    out.word(
        profiler_header(ProfilerKind::Backtrace, size, record.thread.bits())
            | backtrace_fields::FRAMES.set(frames.len() as u64),
    );
    out.word(record.timestamp);
    record.thread.put(out);
    frames.iter().for_each(|frame| out.word(*frame));
}

// Each field that is read moves the cursor, so the fields follow the order of the words.

pub(super) fn parse_module<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Module<'a>, DecodeError> {
    Ok(Module {
        timestamp: cursor.word("a timestamp")?,
        thread: cursor.thread(profiler::THREAD.get(header))?,
        id: module_fields::ID.get(header) as u16,
        name: valid_prefix(cursor.stream(module_fields::NAME_LENGTH.get(header), "a module's name")?),
        build_id: cursor.stream(module_fields::BUILD_ID_LENGTH.get(header), "a build id")?,
    })
}

pub(super) fn parse_mmap(header: u64, cursor: &mut Cursor<'_>) -> Result<Mmap, DecodeError> {
    Ok(Mmap {
        timestamp: cursor.word("a timestamp")?,
        thread: cursor.thread(profiler::THREAD.get(header))?,
        module_id: mmap_fields::MODULE_ID.get(header) as u16,
        flags: mmap_fields::FLAGS.get(header) as u8,
        start: cursor.word("a start address")?,
        range: cursor.word("an address range")?,
        vaddr: cursor.word("a vaddr")?,
    })
}

pub(super) fn parse_backtrace<'a>(
    header: u64,
    cursor: &mut Cursor<'a>,
) -> Result<Backtrace<Frames<'a>>, DecodeError> {
    Ok(Backtrace {
        timestamp: cursor.word("a timestamp")?,
        thread: cursor.thread(profiler::THREAD.get(header))?,
        frames: Frames(cursor.stream(backtrace_fields::FRAMES.get(header) * 8, "a backtrace")?),
    })
}
