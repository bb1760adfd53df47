//! Perfetto's TrackEvent: a stream of protobuf packets.
//!
//! ```text
//! 0a LEN packet | 0a LEN packet | ...                    a trace is one message, `Trace`, of field 1 only
//! ```
//!
//! The packets of one thread are a **sequence**. They share incremental state: one packet of the sequence
//! sets it, and the packets after it rely on it.
//!
//! * **Interned strings**: an id for a category, a name or an annotation's name ([`interned`]).
//! * **An incremental clock** ([`fields::SEQUENCE_CLOCK`]): each timestamp is relative to the sequence's last
//!   event, so that it is small.
//! * **The default track**: the thread's own.
//!
//! [`sequence_start`] clears all earlier state and sets clock and track anew, at the begin of a sequence and
//! after a loss. A packet that relies on the state has a flag for it.
//!
//! [`PacketReader`] returns the packets one by one and keeps no state. The caller resolves interned ids,
//! sequence by sequence.
//!
//! [`event()`] writes the packet of an event and documents its layout. A traced program waits for event
//! packets; all other packets are rare. [`fields`] has the field numbers.

mod annotation;
mod carry;
mod event;
pub mod fields;
mod heap;
mod ids;
#[cfg(feature = "read")]
mod legacy;
#[cfg(feature = "read")]
mod read;
mod samples;
mod sequence;
mod short;
mod stream;
mod task_state;
mod tracks;
mod waking;

pub use annotation::{
    AnnotationHead, LONGEST_ELEMENT, LONGEST_NUMBER, SHORT_TEXT, annotation_len, most_of_entry,
    put_annotation, put_array, put_element, put_entry, put_named, put_number, put_short_text,
};
pub use carry::{Apart, Carry, Erasure};
pub use event::{
    Callstack, Correlation, CounterValue, Event, Location, LogMessage, event, event_with, put_inline_frame,
};
pub use fields::{
    ChildOrdering, CounterType, CpuMode, EventType, InternedKind, Priority, SiblingMerge, TaskState, Unit,
    UnwindError,
};
pub use heap::{ALLOCATION, HeapDump, HeapSample, heap_dump};
pub use ids::{SequenceId, TrackUuid};
#[cfg(feature = "read")]
pub use legacy::{FlowDirection, LegacyEvent, LegacyId};
#[cfg(feature = "read")]
pub use read::{
    Annotation, AnnotationValue, Annotations, ClockReading, ClockReadings, Compression, CounterDescriptor,
    HeapDumps, HeapSamples, InlineFrames, Integers, InternedEvent, InternedStacks, InternedStrings,
    MAX_PACKET, ModuleSymbols, NestedValue, NestedValues, Numbers, OldTime, Packet, PacketData,
    PacketDefaults, PacketReader, PlainEvent, ProcessDescriptor, Processes, ShortRow, ShortRowEvent, Texts,
    ThreadDescriptor, Threads, TraceAttributes, TrackDescriptor, TrackEvent, TrackUuids, TreeProcess,
    ends_like_cut, valid_texts,
};
pub use samples::{
    AddressSymbols, EVENT_TRACEPOINT, Frame, InternedStack, Line, Mapping, PerfSample, SampledBy,
    WALL_TRACEPOINT, interned_stacks, module_symbols, perf_sample, start_of_samples,
};
pub use sequence::{Interned, Name, SequenceStart, SourceLocation, clock_snapshot, interned, sequence_start};
pub use short::{ShortEvent, put_short_annotation};
pub use stream::{
    AttributeValue, MAX_COMPRESSED, Process, SYNCHRONIZATION_MARKER, SessionEnd, SystemInfo, Thread,
    TraceStats, compressed_packets, hidden_packets, process_threads, process_tree, session_end,
    synchronization_marker, system_info, trace_attributes, trace_stats, trace_stats_of_all, trace_uuid,
};
pub use task_state::{TaskStateEvent, task_state};
pub use tracks::{
    CounterTrack, CustomTrack, ProcessTrack, ThreadTrack, counter_descriptor, custom_descriptor,
    process_descriptor, thread_descriptor,
};
pub use waking::{Waking, waking};
