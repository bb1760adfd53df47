//! Perfetto's TrackEvent: a stream of protobuf packets.
//!
//! ```text
//! 0a LEN packet | 0a LEN packet | ...                    a trace is one message, `Trace`, of field 1 only
//! ```
//!
//! The packets of one thread are a **sequence**. They share state, which one packet of the sequence sets and the
//! later ones rely on:
//!
//! * **interned strings**: a number for a category, a name or an annotation's name ([`interned`]);
//! * **a clock that counts from the last event** ([`fields::SEQUENCE_CLOCK`]), so that a timestamp is a small delta;
//! * **the default track**, the thread's own.
//!
//! [`sequence_start`] declares all state before it void and sets clock and track anew. That is how a sequence begins,
//! and how it goes on after a loss. A packet that relies on the state says so in its flags.
//!
//! [`Reader`] gives the packets one by one and keeps no state: what a number means is for the caller to follow,
//! sequence by sequence.
//!
//! The packets of events are what a traced program waits for; the rest is written rarely. [`event`] is the plain
//! encoder; its layout stands there. Field numbers: [`fields`].

mod annotation;
mod carry;
mod event;
pub mod fields;
mod legacy;
mod read;
mod sequence;
mod stream;
mod tracks;

pub use annotation::{annotation_len, put_annotation, put_named};
pub use carry::Carry;
pub use event::{Correlation, CounterValue, Event, Location, LogMessage, event, event_with};
pub use fields::{ChildOrdering, CounterType, EventType, Priority, SiblingMerge, Unit};
pub use legacy::{FlowDirection, LegacyEvent, LegacyId};
pub use read::{
    Annotation, AnnotationValue, Annotations, ClockReading, ClockReadings, CounterDescriptor, Data, Defaults,
    Integers, InternedStrings, Numbers, Packet, PlainEvent, ProcessDescriptor, Processes, Reader, Texts,
    ThreadDescriptor, TrackDescriptor, TrackEvent, TreeProcess,
};
pub use sequence::{Interned, Name, SequenceStart, SourceLocation, clock_snapshot, interned, sequence_start};
pub use stream::{
    MAX_COMPRESSED, Process, SYNCHRONIZATION_MARKER, SystemInfo, TraceStats, compressed_packets,
    process_tree, synchronization_marker, system_info, trace_stats, trace_stats_of_all, trace_uuid,
};
pub use tracks::{
    CounterTrack, CustomTrack, ProcessTrack, ThreadTrack, counter_descriptor, custom_descriptor,
    process_descriptor, thread_descriptor,
};
