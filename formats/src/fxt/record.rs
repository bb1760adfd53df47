//! A record of any type, and its reading: the dispatch over the types.

use crate::DecodeError;
use crate::fxt::argument::Arguments;
use crate::fxt::cursor::Cursor;
use crate::fxt::event::{self, EventRecord};
use crate::fxt::large::{self, LargeBlob};
use crate::fxt::layout::{
    MAGIC, MetadataKind, ProfilerKind, RecordType, SchedulingKind, blob, kernel_object, log, metadata,
    profiler, record, scheduling, string, thread, userspace_object,
};
use crate::fxt::profiler::{Backtrace, Frames, Mmap, Module, parse_backtrace, parse_mmap, parse_module};
use crate::fxt::refs::{ProcessRef, StringRef, ThreadRef};
use crate::fxt::scheduling::{
    ContextSwitch, LegacyContextSwitch, ThreadWakeup, parse_legacy, parse_switch, parse_wakeup,
};
use crate::text::valid_prefix;

/// A record that was read.
///
/// An index refers to the last String or Thread record with that index, of the same provider. A name that is
/// not UTF-8 ends at its first wrong byte; those of an event have U+FFFD in the place of what is wrong.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{self, Record, RecordReader};
///
/// let mut trace = Vec::new();
/// fxt::string_record(&mut trace, 1, "net");
/// fxt::thread_record(&mut trace, 1, 70, 71);
/// let mut reader = RecordReader::new(&trace[..]);
/// let Some((0, Record::String { index: 1, value })) = reader.next()? else { panic!() };
/// assert_eq!(value, b"net");
/// let Some((16, Record::Thread { index: 1, process, thread })) = reader.next()? else { panic!() };
/// assert_eq!((process, thread), (70, 71));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Record<'a> {
    /// "Magic number record".
    Magic,
    /// "Provider info metadata".
    ProviderInfo {
        /// The provider's id. The provider's string and thread tables begin empty.
        id: u32,
        /// The provider's name.
        name: &'a str,
    },
    /// "Provider section metadata": the records that follow belong to this provider.
    ProviderSection {
        /// The provider's id.
        id: u32,
    },
    /// "Provider event metadata".
    ProviderEvent {
        /// The provider's id.
        id: u32,
        /// The event; 0 means that the provider lost records.
        event: u8,
    },
    /// "Initialization record".
    Initialization {
        /// The rate of the clock of all timestamps that follow.
        ticks_per_second: u64,
    },
    /// "String record". Ignore it if the index is 0.
    String {
        /// The index.
        index: u16,
        /// The string. In a correct trace it is UTF-8.
        value: &'a [u8],
    },
    /// "Thread record". Ignore it if the index is 0.
    Thread {
        /// The index.
        index: u8,
        /// The process's koid.
        process: u64,
        /// The thread's koid.
        thread: u64,
    },
    /// "Event record".
    Event(EventRecord<'a>),
    /// "BLOB record". The bytes of records of one name belong together.
    Blob {
        /// The name.
        name: StringRef<'a>,
        /// The type of the data: one of the "Blob types".
        kind: u8,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// "Userspace object record".
    UserspaceObject {
        /// The object's address.
        pointer: u64,
        /// The process in which the address is valid.
        process: ProcessRef,
        /// The name.
        name: StringRef<'a>,
        /// The arguments.
        args: Arguments<'a>,
    },
    /// "Kernel object record".
    KernelObject {
        /// 1 for a process, 2 for a thread.
        object_type: u8,
        /// The object's koid.
        koid: u64,
        /// The name.
        name: StringRef<'a>,
        /// The arguments.
        args: Arguments<'a>,
    },
    /// "Context Switch Record".
    ContextSwitch(ContextSwitch<Arguments<'a>>),
    /// "Thread Wakeup Record".
    ThreadWakeup(ThreadWakeup<Arguments<'a>>),
    /// "Legacy Context Switch Record".
    LegacyContextSwitch(LegacyContextSwitch),
    /// "Log record".
    Log {
        /// The time, in ticks.
        timestamp: u64,
        /// The thread that logged the message.
        thread: ThreadRef,
        /// The message. In a correct trace it is UTF-8.
        message: &'a [u8],
    },
    /// "Module Record".
    Module(Module<'a>),
    /// "Mmap Record".
    Mmap(Mmap),
    /// "Backtrace Record".
    Backtrace(Backtrace<Frames<'a>>),
    /// "Large BLOB record".
    LargeBlob(LargeBlob<'a, Arguments<'a>>),
    /// "Large record header" of a record above the [limit](crate::fxt::RecordReader::large_limit). Its
    /// content was passed over.
    TooLarge {
        /// The record's size, in words.
        words: u64,
    },
    /// A record of a type that this crate does not read.
    Unknown {
        /// The number of the type.
        record_type: u8,
        /// The record's size, in words.
        words: u64,
        /// The whole record, header included.
        bytes: &'a [u8],
    },
}

/// Reads one whole record, which begins at byte `offset` of the input.
pub(super) fn parse(bytes: &[u8], offset: u64) -> Result<Record<'_>, DecodeError> {
    let mut cursor = Cursor::new(bytes, offset);
    let header = cursor.word("a record's header")?;
    let known = match RecordType::from_number(record::TYPE.get(header)) {
        Some(RecordType::Metadata) => parse_metadata(header, &mut cursor)?,
        Some(RecordType::Initialization) => {
            Some(Record::Initialization { ticks_per_second: cursor.word("the clock's rate")? })
        }
        Some(RecordType::String) => Some(Record::String {
            index: string::INDEX.get(header) as u16,
            value: cursor.stream(string::LENGTH.get(header), "a string")?,
        }),
        Some(RecordType::Thread) => Some(Record::Thread {
            index: thread::INDEX.get(header) as u8,
            process: cursor.word("a process")?,
            thread: cursor.word("a thread")?,
        }),
        Some(RecordType::Event) => event::parse(header, &mut cursor)?.map(Record::Event),
        Some(RecordType::Blob) => Some(Record::Blob {
            name: cursor.string(blob::NAME.get(header), "a blob's name")?,
            kind: blob::KIND.get(header) as u8,
            bytes: cursor.stream(blob::LENGTH.get(header), "a blob")?,
        }),
        Some(RecordType::UserspaceObject) => Some(Record::UserspaceObject {
            pointer: cursor.word("a pointer")?,
            process: cursor.process(userspace_object::PROCESS.get(header))?,
            name: cursor.string(userspace_object::NAME.get(header), "a name")?,
            args: Arguments::take(&mut cursor, userspace_object::ARGS.get(header))?,
        }),
        Some(RecordType::KernelObject) => Some(Record::KernelObject {
            object_type: kernel_object::KIND.get(header) as u8,
            koid: cursor.word("a koid")?,
            name: cursor.string(kernel_object::NAME.get(header), "a name")?,
            args: Arguments::take(&mut cursor, kernel_object::ARGS.get(header))?,
        }),
        Some(RecordType::Scheduling) => parse_scheduling(header, &mut cursor)?,
        Some(RecordType::Log) => Some(Record::Log {
            timestamp: cursor.word("a timestamp")?,
            thread: cursor.thread(log::THREAD.get(header))?,
            message: cursor.stream(log::LENGTH.get(header), "a log message")?,
        }),
        Some(RecordType::Profiler) => parse_profiler(header, &mut cursor)?,
        Some(RecordType::Large) => large::parse(header, &mut cursor)?.map(Record::LargeBlob),
        None => None,
    };
    Ok(known.unwrap_or(Record::Unknown {
        record_type: record::TYPE.get(header) as u8,
        words: bytes.len() as u64 / 8,
        bytes,
    }))
}

fn parse_metadata<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, DecodeError> {
    let id = metadata::PROVIDER.get(header) as u32;
    Ok(match MetadataKind::from_number(metadata::KIND.get(header)) {
        Some(MetadataKind::ProviderInfo) => {
            let name = cursor.stream(metadata::NAME_LENGTH.get(header), "a provider's name")?;
            Some(Record::ProviderInfo { id, name: valid_prefix(name) })
        }
        Some(MetadataKind::ProviderSection) => Some(Record::ProviderSection { id }),
        Some(MetadataKind::ProviderEvent) => {
            Some(Record::ProviderEvent { id, event: metadata::EVENT.get(header) as u8 })
        }
        Some(MetadataKind::TraceInfo) if header == MAGIC => Some(Record::Magic),
        Some(MetadataKind::TraceInfo) | None => None,
    })
}

fn parse_scheduling<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, DecodeError> {
    Ok(match SchedulingKind::from_number(scheduling::KIND.get(header)) {
        Some(SchedulingKind::ContextSwitch) => parse_switch(header, cursor)?.map(Record::ContextSwitch),
        Some(SchedulingKind::ThreadWakeup) => Some(Record::ThreadWakeup(parse_wakeup(header, cursor)?)),
        Some(SchedulingKind::LegacyContextSwitch) => {
            parse_legacy(header, cursor)?.map(Record::LegacyContextSwitch)
        }
        None => None,
    })
}

fn parse_profiler<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, DecodeError> {
    Ok(Some(match ProfilerKind::from_number(profiler::KIND.get(header)) {
        Some(ProfilerKind::Module) => Record::Module(parse_module(header, cursor)?),
        Some(ProfilerKind::Mmap) => Record::Mmap(parse_mmap(header, cursor)?),
        Some(ProfilerKind::Backtrace) => Record::Backtrace(parse_backtrace(header, cursor)?),
        None => return Ok(None),
    }))
}
