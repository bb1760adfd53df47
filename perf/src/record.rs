//! The bytes of a ring as typed records.
//!
//! ```text
//! +-----------------------+
//! | type: 32 bits         |  `perf_event_header`
//! | misc: 16, size: 16    |
//! +-----------------------+
//! | the record's fields   |
//! +-----------------------+
//! | pid, tid: 32 each     |  `sample_id`: the stamp. A sample has its fields at the start instead.
//! | time: 64              |
//! | id: 64                |
//! | cpu, 0: 32 each       |
//! +-----------------------+
//! ```
//!
//! Names, paths and stacks come from programs that are traced. A record whose lengths contradict each other
//! is [`Record::Other`] or `None`, never a panic.

use crate::abi::{self, misc, record, sample};
use crate::attributes::Layout;

/// Which thread a record is about, when and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// `CLOCK_BOOTTIME`, in ns.
    pub time: u64,
    /// The number of the event: [`Event::id`](crate::Event::id). Inherited events have that of the first one.
    pub id: u64,
    /// The number of the processor.
    pub cpu: u32,
}

/// A process and one of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// What a context switch does to the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The thread runs from now on.
    In,
    /// The thread waits: it sleeps or is blocked.
    OutWaiting,
    /// The thread lost its processor, and could go on.
    OutPreempted,
}

/// A file that is mapped to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// The process, and the thread that mapped.
    pub task: Task,
    /// The first address.
    pub address: u64,
    /// The size, in bytes.
    pub size: u64,
    /// The offset of the first address in the file, in bytes: a multiple of the page size.
    pub offset: u64,
    /// The device (major, minor), the inode and its generation. 0 if the record has a build id instead.
    pub device: (u32, u32),
    /// The inode.
    pub inode: u64,
    /// The build id, if the record has one.
    pub build_id: &'a [u8],
    /// `PROT_*`
    pub protection: u32,
    /// The path, or a name such as `[vdso]` or `//anon`.
    pub path: &'a [u8],
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// A context switch of the stamp's thread.
    Switch {
        /// Into the thread or out of it.
        direction: Direction,
    },
    /// A thread or a process was started.
    Fork {
        /// The new thread.
        child: Task,
        /// The thread that started it.
        parent: Task,
        /// The time of the start.
        time: u64,
    },
    /// A thread has ended.
    Exit {
        /// The thread.
        task: Task,
        /// The time of the end.
        time: u64,
    },
    /// A thread has a new name.
    Comm {
        /// The thread.
        task: Task,
        /// At most 15 bytes, of any encoding.
        name: &'a [u8],
        /// Whether the thread has executed a program, of which this is the name.
        is_exec: bool,
    },
    /// A file was mapped.
    Mmap(Mapping<'a>),
    /// The ring was full: the kernel has dropped records.
    Lost {
        /// Their number.
        records: u64,
    },
    /// A sample of the stamp's thread.
    Sample {
        /// Whether the thread was in user mode.
        is_user: bool,
        /// The instruction. 0 if the samples have none.
        address: u64,
        /// The call chain, innermost first: native 64-bit words. Markers (`PERF_CONTEXT_*`, the highest 4095
        /// numbers) stand among the addresses.
        call_chain: Words<'a>,
        /// The user registers, in the order of their numbers. Empty if the thread had none.
        registers: Words<'a>,
        /// The first bytes of the user stack.
        stack: &'a [u8],
        /// The raw fields of a tracepoint.
        raw: &'a [u8],
    },
    /// A record that this crate does not read.
    Other {
        /// `PERF_RECORD_*`
        kind: u32,
    },
}

/// Native 64-bit words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    /// Returns the words that these bytes are. Those of a last word that is not whole are left out.
    #[must_use]
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        Self(&bytes[..bytes.len() / 8 * 8])
    }

    /// Returns the bytes of the words.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the words.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + 'a {
        self.0.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
    }

    /// Returns their number.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len() / 8
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// The part of a record that is not read yet.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn half(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn task(&mut self) -> Option<Task> {
        Some(Task { pid: self.half()?, tid: self.half()? })
    }

    fn words(&mut self, count: u64) -> Option<Words<'a>> {
        let bytes = usize::try_from(count).ok()?.checked_mul(8)?;
        self.bytes(bytes).map(Words)
    }

    /// Takes the rest up to its first NUL.
    fn text(&mut self) -> &'a [u8] {
        let rest = std::mem::take(&mut self.0);
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// The size of the stamp at the end of a record.
const STAMP: usize = 32;

/// Parses one record with its header. `None`: the record is shorter than its fields.
pub(crate) fn parse(bytes: &[u8], layout: Layout) -> Option<(Record<'_>, Stamp)> {
    let mut cursor = Cursor(bytes);
    let kind = cursor.half()?;
    let sizes = cursor.bytes(4)?;
    let misc = u16::from_ne_bytes([sizes[0], sizes[1]]);
    if kind == record::SAMPLE {
        return parse_sample(&mut cursor, misc, layout);
    }
    let (fields, stamp) = cursor.0.split_at_checked(cursor.0.len().checked_sub(STAMP)?)?;
    let stamp = parse_stamp(stamp, layout)?;
    let time = |time: u64| time.wrapping_add(layout.clock_offset);
    let mut fields = Cursor(fields);
    let record = match kind {
        record::SWITCH => Record::Switch { direction: direction(misc) },
        record::FORK => {
            let (child, parent) = fork_tasks(&mut fields)?;
            Record::Fork { child, parent, time: time(fields.word()?) }
        }
        record::EXIT => {
            let (task, _) = fork_tasks(&mut fields)?;
            Record::Exit { task, time: time(fields.word()?) }
        }
        record::COMM => {
            let is_exec = misc & misc::COMM_EXEC != 0;
            Record::Comm { task: fields.task()?, name: fields.text(), is_exec }
        }
        record::MMAP2 => Record::Mmap(parse_mapping(&mut fields, misc)?),
        record::LOST => {
            fields.word()?; // the id of the event
            Record::Lost { records: fields.word()? }
        }
        kind => Record::Other { kind },
    };
    Some((record, stamp))
}

fn direction(misc: u16) -> Direction {
    match (misc & misc::SWITCH_OUT != 0, misc & misc::SWITCH_OUT_PREEMPT != 0) {
        (false, _) => Direction::In,
        (true, false) => Direction::OutWaiting,
        (true, true) => Direction::OutPreempted,
    }
}

fn parse_stamp(bytes: &[u8], layout: Layout) -> Option<Stamp> {
    let mut cursor = Cursor(bytes);
    let task = cursor.task()?;
    let time = cursor.word()?.wrapping_add(layout.clock_offset);
    let (id, cpu) = (cursor.word()?, cursor.half()?);
    Some(Stamp { pid: task.pid, tid: task.tid, time, id, cpu })
}

/// The tasks of FORK and EXIT stand as pid, ppid, tid, ptid.
fn fork_tasks(fields: &mut Cursor<'_>) -> Option<(Task, Task)> {
    let (pid, parent_pid, tid, parent_tid) = (fields.half()?, fields.half()?, fields.half()?, fields.half()?);
    Some((Task { pid, tid }, Task { pid: parent_pid, tid: parent_tid }))
}

fn parse_mapping<'a>(fields: &mut Cursor<'a>, misc: u16) -> Option<Mapping<'a>> {
    let task = fields.task()?;
    let (address, size, offset) = (fields.word()?, fields.word()?, fields.word()?);
    let mut file = Cursor(fields.bytes(24)?);
    let (mut device, mut inode, mut build_id) = ((0, 0), 0, &[][..]);
    if misc & misc::MMAP_BUILD_ID != 0 {
        let length = usize::from(file.bytes(4)?[0]);
        build_id = file.bytes(length)?;
    } else {
        device = (file.half()?, file.half()?);
        inode = file.word()?;
    }
    let protection = fields.half()?;
    fields.half()?; // MAP_*
    Some(Mapping { task, address, size, offset, device, inode, build_id, protection, path: fields.text() })
}

/// The fields of a sample stand in the order of the kernel's `PERF_RECORD_SAMPLE`.
fn parse_sample<'a>(cursor: &mut Cursor<'a>, misc: u16, layout: Layout) -> Option<(Record<'a>, Stamp)> {
    let has = |field| layout.sample_type & field != 0;
    let address = if has(sample::IP) { cursor.word()? } else { 0 };
    let stamp = parse_stamp(cursor.bytes(STAMP)?, layout)?;
    let mut call_chain = Words::default();
    if has(sample::CALLCHAIN) {
        let count = cursor.word()?;
        call_chain = cursor.words(count)?;
    }
    let mut raw = &[][..];
    if has(sample::RAW) {
        let size = cursor.half()?;
        raw = cursor.bytes(size as usize)?;
    }
    let mut registers = Words::default();
    if has(sample::REGS_USER) && cursor.word()? != abi::REGS_ABI_NONE {
        registers = cursor.words(u64::from(layout.registers))?;
    }
    let mut stack = &[][..];
    if has(sample::STACK_USER) {
        let size = usize::try_from(cursor.word()?).ok()?;
        if size > 0 {
            let whole = cursor.bytes(size)?;
            let filled = usize::try_from(cursor.word()?).ok()?;
            stack = whole.get(..filled)?;
        }
    }
    let is_user = misc & misc::CPU_MODE == misc::USER;
    Some((Record::Sample { is_user, address, call_chain, registers, stack, raw }, stamp))
}

#[cfg(test)]
mod tests;
