//! Records as they are read.

use super::cursor::{Arguments, Cursor};
use super::large::{self, LargeBlob};
use super::layout::{
    EventKind, MAGIC, MetadataKind, RecordType, blob, event, metadata, record, string, thread,
};
use super::log;
use super::object::{parse_kernel, parse_userspace};
use super::profiler::{self, Backtrace, Frames, Mmap, Module};
use super::refs::{ProcessRef, StringRef, ThreadRef};
use super::scheduling::{self, ContextSwitch, LegacyContextSwitch, ThreadWakeup};
use crate::DecodeError;
use crate::text::valid_prefix;

/// A record. Indices mean what the String and Thread records before it, of the same provider, made them mean.
///
/// Names that are not UTF-8 end where they stop being so.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Record<'a> {
    /// "Magic number record".
    Magic,
    /// "Provider info metadata".
    ProviderInfo {
        /// The provider; its tables begin empty.
        id: u32,
        /// Its name.
        name: &'a str,
    },
    /// "Provider section metadata": what follows is this provider's.
    ProviderSection {
        /// The provider.
        id: u32,
    },
    /// "Provider event metadata".
    ProviderEvent {
        /// The provider.
        id: u32,
        /// What happened; 0: it lost records.
        event: u8,
    },
    /// "Initialization record".
    Initialization {
        /// The rate of the clock of the timestamps that follow.
        ticks_per_second: u64,
    },
    /// "String record". To be ignored if the index is 0.
    String {
        /// The index.
        index: u16,
        /// The string: UTF-8, if its writer kept to the format.
        value: &'a [u8],
    },
    /// "Thread record". To be ignored if the index is 0.
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
        /// Its name.
        name: StringRef<'a>,
        /// What the bytes are.
        kind: u8,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// "Userspace object record".
    UserspaceObject {
        /// Its address.
        pointer: u64,
        /// Where that address is.
        process: ProcessRef,
        /// Its name.
        name: StringRef<'a>,
        /// What else is known of it.
        args: Arguments<'a>,
    },
    /// "Kernel object record".
    KernelObject {
        /// 1 a process, 2 a thread.
        object_type: u8,
        /// Its number.
        koid: u64,
        /// Its name.
        name: StringRef<'a>,
        /// What else is known of it.
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
        /// When, in ticks.
        timestamp: u64,
        /// Who wrote it.
        thread: ThreadRef,
        /// The message: UTF-8, if its writer kept to the format.
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
    /// "Large record header", of a record above the [limit](super::Reader::large_limit): it was passed over
    /// without being kept.
    TooLarge {
        /// Its size, in words.
        words: u64,
    },
    /// A record of a type that this crate does not read.
    Unknown {
        /// The number of its type.
        record_type: u8,
        /// Its size, in words.
        words: u64,
        /// All of it.
        bytes: &'a [u8],
    },
}

/// An event, as it is read.
#[derive(Clone, Debug)]
pub struct EventRecord<'a> {
    /// What happened.
    pub kind: EventKind,
    /// When, in ticks.
    pub timestamp: u64,
    /// Where.
    pub thread: ThreadRef,
    /// Its category.
    pub category: StringRef<'a>,
    /// Its name.
    pub name: StringRef<'a>,
    /// Counter id, end time or correlation id, if the kind [has one](EventKind::has_payload).
    pub payload: Option<u64>,
    args: Arguments<'a>,
}

impl<'a> EventRecord<'a> {
    /// Names and values.
    #[must_use]
    pub fn args(&self) -> Arguments<'a> {
        self.args.clone()
    }
}

/// The event record that `bytes` begin with. None: they begin with something else, or are cut.
#[must_use]
pub fn event_record(bytes: &[u8]) -> Option<(EventRecord<'_>, usize)> {
    let header = u64::from_le_bytes(bytes.first_chunk().copied()?);
    let len = usize::try_from(super::layout::record::SIZE.get(header)).ok()? * 8;
    parse_event_only(bytes.get(..len)?, 0).ok()?.map(|event| (event, len))
}

/// As [`parse`]; None for a record that is no event.
#[inline]
pub(super) fn parse_event_only(bytes: &[u8], offset: u64) -> Result<Option<EventRecord<'_>>, DecodeError> {
    let mut cursor = Cursor::new(bytes, offset);
    let header = cursor.word("a record's header")?;
    if record::TYPE.get(header) == RecordType::Event as u64 {
        parse_event(header, &mut cursor)
    } else {
        Ok(None)
    }
}

/// Reads one record that is whole in `bytes`, at byte `offset` of the input.
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
        Some(RecordType::Event) => parse_event(header, &mut cursor)?.map(Record::Event),
        Some(RecordType::Blob) => Some(Record::Blob {
            name: cursor.string(blob::NAME.get(header), "a blob's name")?,
            kind: blob::KIND.get(header) as u8,
            bytes: cursor.stream(blob::LENGTH.get(header), "a blob")?,
        }),
        Some(RecordType::UserspaceObject) => Some(parse_userspace(header, &mut cursor)?),
        Some(RecordType::KernelObject) => Some(parse_kernel(header, &mut cursor)?),
        Some(RecordType::Scheduling) => scheduling::parse(header, &mut cursor)?,
        Some(RecordType::Log) => Some(log::parse(header, &mut cursor)?),
        Some(RecordType::Profiler) => profiler::parse(header, &mut cursor)?,
        Some(RecordType::Large) => large::parse(header, &mut cursor)?,
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

#[inline]
fn parse_event<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Option<EventRecord<'a>>, DecodeError> {
    let Some(kind) = EventKind::from_number(event::KIND.get(header)) else {
        return Ok(None);
    };
    // In the order of the words.
    let timestamp = cursor.word("a timestamp")?;
    let thread = cursor.thread(event::THREAD.get(header))?;
    let category = cursor.string(event::CATEGORY.get(header), "a category")?;
    let name = cursor.string(event::NAME.get(header), "a name")?;
    let args = cursor.arguments(event::ARGS.get(header))?;
    let payload = kind.has_payload().then(|| cursor.word("an event's last word")).transpose()?;
    Ok(Some(EventRecord { kind, timestamp, thread, category, name, payload, args }))
}
