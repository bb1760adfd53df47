//! Which bits of which word hold what: used by the writer and the reader alike.
//!
//! A record is a header word and what follows it:
//!
//! ```text
//!  63                                        16 15          4 3      0
//! +--------------------------------------------+-------------+--------+
//! | varies by type                             | size, words |  type  |  word 0
//! +--------------------------------------------+-------------+--------+
//! | further words, and streams padded with zeros to 8 bytes           |  words 1..size
//! +-------------------------------------------------------------------+
//! ```
//!
//! Each module below is named after a record and holds the fields of its header. Sections in quotes
//! are those of the format's document, "Fuchsia trace format".

pub use super::field::{Field, bits};
pub use super::kinds::{
    ArgumentType, EventKind, LargeBlobFormat, LargeKind, MetadataKind, ProfilerKind, RecordType,
    SchedulingKind, ThreadState,
};

/// "Record header", of every record but the large ones.
pub mod record {
    use super::{Field, bits};
    /// A [`RecordType`](super::RecordType).
    pub const TYPE: Field = bits(0, 3);
    /// Words of the record, this one included.
    pub const SIZE: Field = bits(4, 15);
}

/// "Large record header".
pub mod large {
    use super::{Field, bits};
    /// Words of the record, this one included.
    pub const SIZE: Field = bits(4, 35);
    /// A [`LargeKind`](super::LargeKind).
    pub const KIND: Field = bits(36, 39);
}

/// "Large BLOB record": a field of the header, and those of the word after it.
pub mod large_blob {
    use super::{Field, bits};
    /// Header: a [`LargeBlobFormat`](super::LargeBlobFormat).
    pub const FORMAT: Field = bits(40, 43);
    /// String reference.
    pub const CATEGORY: Field = bits(0, 15);
    /// String reference.
    pub const NAME: Field = bits(16, 31);
    /// Number of arguments, if there is metadata.
    pub const ARGS: Field = bits(32, 35);
    /// Thread reference, if there is metadata.
    pub const THREAD: Field = bits(36, 43);
}

/// "Metadata record".
pub mod metadata {
    use super::{Field, bits};
    /// A [`MetadataKind`](super::MetadataKind).
    pub const KIND: Field = bits(16, 19);
    /// The provider's number, in the three kinds about a provider.
    pub const PROVIDER: Field = bits(20, 51);
    /// Provider info: bytes of the name.
    pub const NAME_LENGTH: Field = bits(52, 59);
    /// Provider event: what happened.
    pub const EVENT: Field = bits(52, 55);
    /// Trace info: which. 0 is the magic number record.
    pub const INFO_KIND: Field = bits(20, 23);
    /// Magic number record: 0x16547846.
    pub const MAGIC: Field = bits(24, 55);
}

/// "String record".
pub mod string {
    use super::{Field, bits};
    /// The index, 1 to [`MAX_STRING_INDEX`](super::MAX_STRING_INDEX).
    pub const INDEX: Field = bits(16, 30);
    /// Bytes of the string.
    pub const LENGTH: Field = bits(32, 46);
}

/// "Thread record".
pub mod thread {
    use super::{Field, bits};
    /// The index, 1 to [`MAX_THREAD_INDEX`](super::MAX_THREAD_INDEX).
    pub const INDEX: Field = bits(16, 23);
}

/// "Event record".
pub mod event {
    use super::{Field, bits};
    /// An [`EventKind`](super::EventKind).
    pub const KIND: Field = bits(16, 19);
    /// Number of arguments.
    pub const ARGS: Field = bits(20, 23);
    /// Thread reference.
    pub const THREAD: Field = bits(24, 31);
    /// String reference.
    pub const CATEGORY: Field = bits(32, 47);
    /// String reference.
    pub const NAME: Field = bits(48, 63);
}

/// "BLOB record".
pub mod blob {
    use super::{Field, bits};
    /// String reference.
    pub const NAME: Field = bits(16, 31);
    /// Bytes of the payload.
    pub const LENGTH: Field = bits(32, 46);
    /// What the payload is.
    pub const KIND: Field = bits(48, 55);
}

/// "Userspace object record".
pub mod userspace_object {
    use super::{Field, bits};
    /// Thread reference, of which only the process counts.
    pub const PROCESS: Field = bits(16, 23);
    /// String reference.
    pub const NAME: Field = bits(24, 39);
    /// Number of arguments.
    pub const ARGS: Field = bits(40, 43);
}

/// "Kernel object record".
pub mod kernel_object {
    use super::{Field, bits};
    /// What the object is: 1 a process, 2 a thread.
    pub const KIND: Field = bits(16, 23);
    /// String reference.
    pub const NAME: Field = bits(24, 39);
    /// Number of arguments.
    pub const ARGS: Field = bits(40, 43);
}

/// "Scheduling Record".
pub mod scheduling {
    use super::{Field, bits};
    /// A [`SchedulingKind`](super::SchedulingKind).
    pub const KIND: Field = bits(60, 63);
}

/// "Context Switch Record".
pub mod context_switch {
    use super::{Field, bits};
    /// Number of arguments.
    pub const ARGS: Field = bits(16, 19);
    /// Number of the processor.
    pub const CPU: Field = bits(20, 35);
    /// A [`ThreadState`](super::ThreadState).
    pub const OUTGOING_STATE: Field = bits(36, 39);
}

/// "Thread Wakeup Record".
pub mod thread_wakeup {
    use super::{Field, bits};
    /// Number of arguments.
    pub const ARGS: Field = bits(16, 19);
    /// Number of the processor.
    pub const CPU: Field = bits(20, 35);
}

/// "Legacy Context Switch Record".
pub mod legacy_context_switch {
    use super::{Field, bits};
    /// Number of the processor.
    pub const CPU: Field = bits(16, 23);
    /// A [`ThreadState`](super::ThreadState).
    pub const OUTGOING_STATE: Field = bits(24, 27);
    /// Thread reference.
    pub const OUTGOING: Field = bits(28, 35);
    /// Thread reference.
    pub const INCOMING: Field = bits(36, 43);
    /// Priority of the outgoing thread.
    pub const OUTGOING_PRIORITY: Field = bits(44, 51);
    /// Priority of the incoming thread.
    pub const INCOMING_PRIORITY: Field = bits(52, 59);
}

/// "Log record".
pub mod log {
    use super::{Field, bits};
    /// Bytes of the message.
    pub const LENGTH: Field = bits(16, 30);
    /// Thread reference.
    pub const THREAD: Field = bits(32, 39);
}

/// "Profiler record". The thread stands in the same place in all kinds.
pub mod profiler {
    use super::{Field, bits};
    /// A [`ProfilerKind`](super::ProfilerKind).
    pub const KIND: Field = bits(16, 19);
    /// Thread reference.
    pub const THREAD: Field = bits(20, 27);
}

/// "Module Record".
pub mod module {
    use super::{Field, bits};
    /// The module's number.
    pub const ID: Field = bits(28, 43);
    /// Bytes of the name.
    pub const NAME_LENGTH: Field = bits(44, 51);
    /// Bytes of the build id.
    pub const BUILD_ID_LENGTH: Field = bits(52, 59);
}

/// "Mmap Record".
pub mod mmap {
    use super::{Field, bits};
    /// The module's number.
    pub const MODULE_ID: Field = bits(28, 43);
    /// Flags.
    pub const FLAGS: Field = bits(44, 46);
}

/// "Backtrace Record".
pub mod backtrace {
    use super::{Field, bits};
    /// Number of frames, a word each.
    pub const FRAMES: Field = bits(28, 35);
}

/// "Argument header".
pub mod argument {
    use super::{Field, bits};
    /// An [`ArgumentType`](super::ArgumentType).
    pub const TYPE: Field = bits(0, 3);
    /// Words of the argument, this one included.
    pub const SIZE: Field = bits(4, 15);
    /// String reference.
    pub const NAME: Field = bits(16, 31);
    /// The 32-bit integers.
    pub const INTEGER: Field = bits(32, 63);
    /// A string argument's value: a string reference.
    pub const STRING: Field = bits(32, 47);
    /// A boolean.
    pub const BOOL: Field = bits(32, 32);
    /// Bytes of a blob.
    pub const BLOB_LENGTH: Field = bits(32, 63);
}

/// "String references": 16 bits, of which all zero mean the empty string.
pub mod string_ref {
    use super::{Field, bits};
    /// Set if the string follows inline.
    pub const INLINE: Field = bits(15, 15);
    /// Not inline: the index.
    pub const INDEX: Field = bits(0, 14);
    /// Inline: bytes of the string.
    pub const LENGTH: Field = bits(0, 14);
}

/// "Magic number record": the first word of a trace.
pub const MAGIC: u64 = record::TYPE.set(RecordType::Metadata as u64)
    | record::SIZE.set(1)
    | metadata::KIND.set(MetadataKind::TraceInfo as u64)
    | metadata::MAGIC.set(0x1654_7846);

/// The longest string, in bytes ("String references"); longer ones are cut by the writers.
pub const MAX_STRING: usize = 32_000;
/// The largest index of a string.
pub const MAX_STRING_INDEX: u16 = 32_767;
/// The largest index of a thread.
pub const MAX_THREAD_INDEX: u8 = 255;
/// The most arguments of a record.
pub const MAX_ARGS: usize = 15;
/// The longest record, in words, but for large records.
pub const MAX_RECORD_WORDS: usize = 4095;
/// The longest name of a provider, in bytes.
pub const MAX_PROVIDER_NAME: usize = 255;
/// The longest name and the longest build id of a module, in bytes.
pub const MAX_MODULE_BYTES: usize = 255;
/// The most frames of a backtrace.
pub const MAX_FRAMES: usize = 255;

/// "Provider event metadata": a buffer filled up, records were likely dropped.
pub const PROVIDER_EVENT_BUFFER_FULL: u8 = 0;
/// "Blob types": raw data.
pub const BLOB_DATA: u8 = 1;
/// "Blob types": a Last Branch Record of Intel's performance monitor.
pub const BLOB_LAST_BRANCH: u8 = 2;
/// "Blob types": a trace in Perfetto's format, [`track_event`](crate::track_event).
pub const BLOB_PERFETTO: u8 = 3;
/// "Kernel object record": the type of a process.
pub const KERNEL_OBJECT_PROCESS: u8 = 1;
/// "Kernel object record": the type of a thread, which has its process as the argument "process".
pub const KERNEL_OBJECT_THREAD: u8 = 2;

/// Words of a stream of `len` bytes.
#[inline]
#[must_use]
pub const fn words(len: usize) -> usize {
    len.div_ceil(8)
}

// What the document gives in full.
const _: () = assert!(MAGIC == 0x0016_5478_4604_0010);
const _: () = assert!(record::SIZE.max() == MAX_RECORD_WORDS as u64 && event::ARGS.max() == MAX_ARGS as u64);
const _: () =
    assert!(string::INDEX.max() == MAX_STRING_INDEX as u64 && thread::INDEX.max() == MAX_THREAD_INDEX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_header_do_not_overlap() {
        let headers: [&[Field]; 18] = [
            &[record::TYPE, large::SIZE, large::KIND, large_blob::FORMAT],
            &[large_blob::CATEGORY, large_blob::NAME, large_blob::ARGS, large_blob::THREAD],
            &[record::TYPE, record::SIZE, metadata::KIND, metadata::PROVIDER, metadata::NAME_LENGTH],
            &[record::TYPE, record::SIZE, metadata::KIND, metadata::INFO_KIND, metadata::MAGIC],
            &[record::TYPE, record::SIZE, string::INDEX, string::LENGTH],
            &[
                record::TYPE,
                record::SIZE,
                event::KIND,
                event::ARGS,
                event::THREAD,
                event::CATEGORY,
                event::NAME,
            ],
            &[record::TYPE, record::SIZE, blob::NAME, blob::LENGTH, blob::KIND],
            &[
                record::TYPE,
                record::SIZE,
                userspace_object::PROCESS,
                userspace_object::NAME,
                userspace_object::ARGS,
            ],
            &[record::TYPE, record::SIZE, kernel_object::KIND, kernel_object::NAME, kernel_object::ARGS],
            &[
                record::TYPE,
                record::SIZE,
                context_switch::ARGS,
                context_switch::CPU,
                context_switch::OUTGOING_STATE,
                scheduling::KIND,
            ],
            &[record::TYPE, record::SIZE, thread_wakeup::ARGS, thread_wakeup::CPU, scheduling::KIND],
            &[
                record::TYPE,
                record::SIZE,
                legacy_context_switch::CPU,
                legacy_context_switch::OUTGOING_STATE,
                legacy_context_switch::OUTGOING,
                legacy_context_switch::INCOMING,
                legacy_context_switch::OUTGOING_PRIORITY,
                legacy_context_switch::INCOMING_PRIORITY,
                scheduling::KIND,
            ],
            &[record::TYPE, record::SIZE, log::LENGTH, log::THREAD],
            &[
                record::TYPE,
                record::SIZE,
                profiler::KIND,
                profiler::THREAD,
                module::ID,
                module::NAME_LENGTH,
                module::BUILD_ID_LENGTH,
            ],
            &[record::TYPE, record::SIZE, profiler::KIND, profiler::THREAD, mmap::MODULE_ID, mmap::FLAGS],
            &[record::TYPE, record::SIZE, profiler::KIND, profiler::THREAD, backtrace::FRAMES],
            &[argument::TYPE, argument::SIZE, argument::NAME, argument::INTEGER],
            &[string_ref::INLINE, string_ref::LENGTH],
        ];
        for fields in headers {
            let union = fields.iter().fold(0, |union, field| union | field.set(u64::MAX));
            let bits: u32 = fields.iter().map(|field| field.set(u64::MAX).count_ones()).sum();
            assert_eq!(union.count_ones(), bits, "{fields:?}");
        }
    }
}
