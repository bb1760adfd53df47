//! FXT, the Fuchsia trace format: records of little-endian 64-bit words.
//!
//! ```text
//! MAGIC | provider info | initialization | string 1 "net" | thread 1 = 7/9 | event net:read @ 1 | ...
//! ```
//!
//! A trace is a row of records. The first word of each has the record's type and size, so that a reader can
//! pass over types that it does not know. [`string_record`] and [`thread_record`] give a string or a thread
//! an index, to which later records refer; a later record can reassign the index. Timestamps are ticks of a
//! clock, whose rate [`initialization`] sets. A slice without arguments takes two records of two words each.
//!
//! The writers cannot fail, and they write only well-formed records. A value that does not fit its field is
//! cut. A record that would exceed [`MAX_RECORD_WORDS`] loses arguments from its end; [`event_words`] says so
//! beforehand.
//!
//! [`RecordReader`] returns the records one by one. It keeps no tables and resolves no index: an index
//! belongs to a provider, and the caller follows the providers' sections.
//!
//! [`layout`] defines the bits of every record, for writing and for reading.

mod argument;
mod blob;
mod carry;
mod cursor;
mod event;
mod field;
mod flows;
mod header;
mod kinds;
mod large;
pub mod layout;
mod log;
mod metadata;
mod object;
#[cfg(feature = "read")]
mod plain;
mod profiler;
mod put;
#[cfg(feature = "read")]
mod read;
mod record;
mod refs;
mod scheduling;
mod tables;
#[cfg(feature = "read")]
mod texts;

pub use argument::{
    ArgumentSlice, ArgumentValue, Arguments, IndexedName, argument_words, put_argument, put_number,
    put_with_name,
};
pub use blob::{blob, blob_header, session_end};
pub use carry::{Carry, Patch};
pub use event::{Event, EventRecord, event, event_header, event_record, event_words};
pub use flows::FlowStarts;
pub use large::{LargeBlob, LargeBlobMetadata, large_blob, large_blob_words};
pub use layout::{
    ArgumentType, BLOB_DATA, BLOB_LAST_BRANCH, BLOB_PERFETTO, EventKind, KERNEL_OBJECT_PROCESS,
    KERNEL_OBJECT_THREAD, MAGIC, MAX_ARGS, MAX_FRAMES, MAX_MODULE_BYTES, MAX_PROVIDER_NAME, MAX_RECORD_WORDS,
    MAX_STRING, MAX_STRING_INDEX, MAX_THREAD_INDEX, PROVIDER_EVENT_BUFFER_FULL, ProfilerKind, RecordType,
    SchedulingKind, ThreadState,
};
pub use log::log;
pub(crate) use metadata::begins_with_section;
pub use metadata::{initialization, magic, provider_event, provider_info, provider_section};
pub use object::{kernel_object, userspace_object};
#[cfg(feature = "read")]
pub use plain::PlainEvent;
pub use profiler::{Backtrace, Frames, Mmap, Module, backtrace, mmap, module};
pub use put::PutWords;
#[cfg(feature = "read")]
pub use read::{LARGE_LIMIT, RecordReader};
pub use record::Record;
pub use refs::{ProcessRef, StringRef, ThreadRef};
pub use scheduling::{
    ContextSwitch, LegacyContextSwitch, ThreadWakeup, context_switch, legacy_context_switch, thread_wakeup,
};
pub use tables::{string_record, string_record_words, thread_record};
