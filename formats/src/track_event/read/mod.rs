//! Reads packets and what they contain.

mod annotation;
mod chrome;
mod event;
mod heap;
mod interned;
mod interned_event;
mod nested;
mod packet;
mod plain;
mod reader;
mod repeated;
mod rest;
mod samples;
mod short_row;
mod short_tags;
mod stream;
mod texts;
mod track;

pub use annotation::{Annotation, AnnotationValue, Annotations};
pub use event::{InlineFrames, OldTime, TrackEvent};
pub use heap::{HeapDumps, HeapSamples};
pub use interned::InternedStrings;
pub use interned_event::InternedEvent;
pub use nested::{NestedValue, NestedValues};
pub use packet::{ClockReading, ClockReadings, Compression, Packet, PacketData, PacketDefaults};
pub use plain::PlainEvent;
pub use reader::{MAX_PACKET, PacketReader, ends_like_cut};
pub use repeated::{Integers, Numbers, Texts, TrackUuids};
pub use samples::{InternedStacks, ModuleSymbols};
pub use short_row::{ShortRow, ShortRowEvent};
pub use stream::{Processes, Threads, TraceAttributes, TreeProcess};
pub use texts::valid_texts;
pub use track::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
