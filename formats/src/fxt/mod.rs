//! FXT, the Fuchsia trace format: records of little-endian 64-bit words.
//!
//! ```text
//! MAGIC | provider info | initialization | string 1 "net" | thread 1 = 7/9 | event net:read @ 1 | ...
//! ```
//!
//! A trace is a row of records, each with its type and size in the first word, so that a reader can pass
//! over what it does not know. Strings and threads are named once ([`string_record`],
//! [`thread_record`]) and then referred to by a number; a later record may give the number another meaning.
//! Timestamps are ticks of a clock whose rate [`initialization`] tells. A slice without arguments is two
//! records of two words.
//!
//! [`Reader`] gives the records one by one. It resolves no index and keeps no table: what an index means
//! depends on the provider whose section it stands in, and that is for the caller to follow.
//!
//! [`layout`] says which bits mean what, and everything else here goes by it.

mod argument;
mod carry;
mod cursor;
mod field;
mod flows;
mod kinds;
mod large;
pub mod layout;
mod log;
mod object;
mod profiler;
mod read;
mod record;
mod refs;
mod scheduling;
mod write;

pub use argument::{ArgumentSlice, argument_words, put_argument};
pub use carry::{Carry, Patch};
pub use cursor::{ArgumentValue, Arguments};
pub use flows::FlowStarts;
pub use large::{LargeBlob, LargeBlobMetadata, large_blob, large_blob_words};
pub use layout::{
    ArgumentType, BLOB_DATA, BLOB_LAST_BRANCH, BLOB_PERFETTO, EventKind, KERNEL_OBJECT_PROCESS,
    KERNEL_OBJECT_THREAD, MAGIC, MAX_ARGS, MAX_FRAMES, MAX_MODULE_BYTES, MAX_PROVIDER_NAME, MAX_RECORD_WORDS,
    MAX_STRING, MAX_STRING_INDEX, MAX_THREAD_INDEX, PROVIDER_EVENT_BUFFER_FULL, ProfilerKind, RecordType,
    SchedulingKind, ThreadState,
};
pub use log::log;
pub use object::{kernel_object, userspace_object};
pub use profiler::{Backtrace, Frames, Mmap, Module, backtrace, mmap, module};
pub use read::{LARGE_LIMIT, Reader};
pub use record::{EventRecord, Record, event_record};
pub use refs::{ProcessRef, StringRef, ThreadRef};
pub use scheduling::{
    ContextSwitch, LegacyContextSwitch, ThreadWakeup, context_switch, legacy_context_switch, thread_wakeup,
};
pub use write::{
    Event, Put, blob, blob_header, event, event_header, event_words, initialization, magic, provider_event,
    provider_info, provider_section, string_record, string_record_words, thread_record,
};
