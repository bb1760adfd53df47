//! The bits of every record: the one definition that the writers and the reader share.
//!
//! A record is a header word and the words after it:
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
//! Each module below bears the name of a record and holds the fields of its header. Names in quotes are
//! sections of the format's document, "Fuchsia trace format".

pub use crate::fxt::field::{Field, bits};
pub use crate::fxt::kinds::{
    ArgumentType, EventKind, LargeBlobFormat, LargeKind, MetadataKind, ProfilerKind, RecordType,
    SchedulingKind, ThreadState,
};

/// Declares the fields of headers, each header in a module: `FIELD: lowest bit..=highest bit, "its
/// documentation";`
macro_rules! headers {
    ($(
        $(#[$doc:meta])*
        $module:ident { $($name:ident: $lo:literal..=$hi:literal, $field_doc:literal;)* }
    )*) => {$(
        $(#[$doc])*
        pub mod $module {
            use crate::fxt::field::{Field, bits};
            $(#[doc = $field_doc] pub const $name: Field = bits($lo, $hi);)*
        }
    )*};
}

headers! {
    /// "Record header", of every record except large ones.
    record {
        TYPE: 0..=3, "A [`RecordType`](super::RecordType).";
        SIZE: 4..=15, "The record's size in words, header included.";
    }

    /// "Large record header".
    large {
        SIZE: 4..=35, "The record's size in words, header included.";
        KIND: 36..=39, "A [`LargeKind`](super::LargeKind).";
    }

    /// "Large BLOB record": one field of the header, and the fields of the word after it.
    large_blob {
        FORMAT: 40..=43, "In the header: a [`LargeBlobFormat`](super::LargeBlobFormat).";
        CATEGORY: 0..=15, "A string reference.";
        NAME: 16..=31, "A string reference.";
        ARGS: 32..=35, "The number of arguments, if there is metadata.";
        THREAD: 36..=43, "A thread reference, if there is metadata.";
    }

    /// "Metadata record".
    metadata {
        KIND: 16..=19, "A [`MetadataKind`](super::MetadataKind).";
        PROVIDER: 20..=51, "The provider's id, in the three kinds about a provider.";
        NAME_LENGTH: 52..=59, "Provider info: the length of the name in bytes.";
        EVENT: 52..=55, "Provider event: the event.";
        INFO_KIND: 20..=23, "Trace info: its kind. 0 is the magic number record.";
        MAGIC: 24..=55, "Magic number record: 0x16547846.";
    }

    /// "String record".
    string {
        INDEX: 16..=30, "The index, 1 to [`MAX_STRING_INDEX`](super::MAX_STRING_INDEX).";
        LENGTH: 32..=46, "The length of the string in bytes.";
    }

    /// "Thread record".
    thread {
        INDEX: 16..=23, "The index, 1 to [`MAX_THREAD_INDEX`](super::MAX_THREAD_INDEX).";
    }

    /// "Event record".
    event {
        KIND: 16..=19, "An [`EventKind`](super::EventKind).";
        ARGS: 20..=23, "The number of arguments.";
        THREAD: 24..=31, "A thread reference.";
        CATEGORY: 32..=47, "A string reference.";
        NAME: 48..=63, "A string reference.";
    }

    /// "BLOB record".
    blob {
        NAME: 16..=31, "A string reference.";
        LENGTH: 32..=46, "The length of the data in bytes.";
        KIND: 48..=55, "One of the \"Blob types\".";
    }

    /// "Userspace object record".
    userspace_object {
        PROCESS: 16..=23, "A thread reference, of which only the process counts.";
        NAME: 24..=39, "A string reference.";
        ARGS: 40..=43, "The number of arguments.";
    }

    /// "Kernel object record".
    kernel_object {
        KIND: 16..=23, "The type of the object: 1 for a process, 2 for a thread.";
        NAME: 24..=39, "A string reference.";
        ARGS: 40..=43, "The number of arguments.";
    }

    /// "Scheduling Record".
    scheduling {
        KIND: 60..=63, "A [`SchedulingKind`](super::SchedulingKind).";
    }

    /// "Context Switch Record".
    context_switch {
        ARGS: 16..=19, "The number of arguments.";
        CPU: 20..=35, "The number of the processor.";
        OUTGOING_STATE: 36..=39, "A [`ThreadState`](super::ThreadState).";
    }

    /// "Thread Wakeup Record".
    thread_wakeup {
        ARGS: 16..=19, "The number of arguments.";
        CPU: 20..=35, "The number of the processor.";
    }

    /// "Legacy Context Switch Record".
    legacy_context_switch {
        CPU: 16..=23, "The number of the processor.";
        OUTGOING_STATE: 24..=27, "A [`ThreadState`](super::ThreadState).";
        OUTGOING: 28..=35, "A thread reference.";
        INCOMING: 36..=43, "A thread reference.";
        OUTGOING_PRIORITY: 44..=51, "The priority of the outgoing thread.";
        INCOMING_PRIORITY: 52..=59, "The priority of the incoming thread.";
    }

    /// "Log record".
    log {
        LENGTH: 16..=30, "The length of the message in bytes.";
        THREAD: 32..=39, "A thread reference.";
    }

    /// "Profiler record": the fields that all kinds have.
    profiler {
        KIND: 16..=19, "A [`ProfilerKind`](super::ProfilerKind).";
        THREAD: 20..=27, "A thread reference.";
    }

    /// "Module Record".
    module {
        ID: 28..=43, "The module's id.";
        NAME_LENGTH: 44..=51, "The length of the name in bytes.";
        BUILD_ID_LENGTH: 52..=59, "The length of the build id in bytes.";
    }

    /// "Mmap Record".
    mmap {
        MODULE_ID: 28..=43, "The module's id.";
        FLAGS: 44..=46, "Flags.";
    }

    /// "Backtrace Record".
    backtrace {
        FRAMES: 28..=35, "The number of frames, a word each.";
    }

    /// "Argument header".
    argument {
        TYPE: 0..=3, "An [`ArgumentType`](super::ArgumentType).";
        SIZE: 4..=15, "The argument's size in words, header included.";
        NAME: 16..=31, "A string reference.";
        INTEGER: 32..=63, "The value of a 32-bit integer.";
        STRING: 32..=47, "The value of a string: a string reference.";
        BOOL: 32..=32, "The value of a boolean.";
        BLOB_LENGTH: 32..=63, "The length of a blob in bytes.";
    }

    /// "String references": 16 bits. All zero is the empty string.
    string_ref {
        INLINE: 15..=15, "1 if the string follows inline.";
        INDEX: 0..=14, "The index of a string that is not inline.";
        LENGTH: 0..=14, "The length of an inline string in bytes.";
    }
}

/// "Magic number record": the first word of a trace.
pub const MAGIC: u64 = record::TYPE.set(RecordType::Metadata as u64)
    | record::SIZE.set(1)
    | metadata::KIND.set(MetadataKind::TraceInfo as u64)
    | metadata::MAGIC.set(0x1654_7846);

/// The most bytes of a string ("String references"). The writers cut longer ones.
pub const MAX_STRING: usize = 32_000;
/// The largest index of a string.
pub const MAX_STRING_INDEX: u16 = 32_767;
/// The largest index of a thread.
pub const MAX_THREAD_INDEX: u8 = 255;
/// The most arguments of a record.
pub const MAX_ARGS: usize = 15;
/// The most words of a record, except for large records.
pub const MAX_RECORD_WORDS: usize = 4095;
/// The most bytes of a provider's name.
pub const MAX_PROVIDER_NAME: usize = 255;
/// The most bytes of a module's name and of its build id.
pub const MAX_MODULE_BYTES: usize = 255;
/// The most frames of a backtrace.
pub const MAX_FRAMES: usize = 255;

/// "Provider event metadata": a buffer filled up, and records were probably dropped.
pub const PROVIDER_EVENT_BUFFER_FULL: u8 = 0;
/// "Blob types": raw data.
pub const BLOB_DATA: u8 = 1;
/// "Blob types": a Last Branch Record of Intel's performance monitor.
pub const BLOB_LAST_BRANCH: u8 = 2;
/// "Blob types": a trace in Perfetto's format, [`track_event`](crate::track_event).
pub const BLOB_PERFETTO: u8 = 3;
/// "Kernel object record": the type of a process.
pub const KERNEL_OBJECT_PROCESS: u8 = 1;
/// "Kernel object record": the type of a thread. Its argument "process" is its process.
pub const KERNEL_OBJECT_THREAD: u8 = 2;

/// Returns the size in words of a stream of `len` bytes.
///
/// ```
/// use hairline_formats::fxt::layout::words;
///
/// assert_eq!([0, 1, 8, 9].map(words), [0, 1, 1, 2]);
/// ```
#[inline]
#[must_use]
pub const fn words(len: usize) -> usize {
    len.div_ceil(8)
}

// The document gives these numbers in full.
const _: () = assert!(MAGIC == 0x0016_5478_4604_0010);
const _: () = assert!(record::SIZE.max() == MAX_RECORD_WORDS as u64 && event::ARGS.max() == MAX_ARGS as u64);
const _: () =
    assert!(string::INDEX.max() == MAX_STRING_INDEX as u64 && thread::INDEX.max() == MAX_THREAD_INDEX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_header_do_not_overlap() {
        use record::{SIZE, TYPE};
        let headers: [&[Field]; 18] = [
            &[TYPE, large::SIZE, large::KIND, large_blob::FORMAT],
            &[large_blob::CATEGORY, large_blob::NAME, large_blob::ARGS, large_blob::THREAD],
            &[TYPE, SIZE, metadata::KIND, metadata::PROVIDER, metadata::NAME_LENGTH],
            &[TYPE, SIZE, metadata::KIND, metadata::INFO_KIND, metadata::MAGIC],
            &[TYPE, SIZE, string::INDEX, string::LENGTH],
            &[TYPE, SIZE, event::KIND, event::ARGS, event::THREAD, event::CATEGORY, event::NAME],
            &[TYPE, SIZE, blob::NAME, blob::LENGTH, blob::KIND],
            &[TYPE, SIZE, userspace_object::PROCESS, userspace_object::NAME, userspace_object::ARGS],
            &[TYPE, SIZE, kernel_object::KIND, kernel_object::NAME, kernel_object::ARGS],
            &[
                TYPE,
                SIZE,
                context_switch::ARGS,
                context_switch::CPU,
                context_switch::OUTGOING_STATE,
                scheduling::KIND,
            ],
            &[TYPE, SIZE, thread_wakeup::ARGS, thread_wakeup::CPU, scheduling::KIND],
            &[
                TYPE,
                SIZE,
                legacy_context_switch::CPU,
                legacy_context_switch::OUTGOING_STATE,
                legacy_context_switch::OUTGOING,
                legacy_context_switch::INCOMING,
                legacy_context_switch::OUTGOING_PRIORITY,
                legacy_context_switch::INCOMING_PRIORITY,
                scheduling::KIND,
            ],
            &[TYPE, SIZE, log::LENGTH, log::THREAD],
            &[
                TYPE,
                SIZE,
                profiler::KIND,
                profiler::THREAD,
                module::ID,
                module::NAME_LENGTH,
                module::BUILD_ID_LENGTH,
            ],
            &[TYPE, SIZE, profiler::KIND, profiler::THREAD, mmap::MODULE_ID, mmap::FLAGS],
            &[TYPE, SIZE, profiler::KIND, profiler::THREAD, backtrace::FRAMES],
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
