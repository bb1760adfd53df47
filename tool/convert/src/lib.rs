//! Reads, writes and converts traces in three formats: FXT, Perfetto's TracePackets and Trace Event JSON.
//!
//! ```text
//! .pftrace ─┐                                                 ┌─ .pftrace
//! .fxt ─────┼─ TraceReader ── Item, Item, Item ── TraceWriter ┼─ .fxt
//! .json ────┘       └──────────── Context ────────────┘       └─ .json
//! ```
//!
//! An [`Item`] is the content of one record, packet or object. All references in it are resolved: tracks and
//! strings have numbers ([`TrackId`], [`StringId`]) that are valid for the whole conversion, and times are in
//! nanoseconds. Items borrow from the reader, so an event needs no allocation.
//!
//! A conversion streams in bounded memory: it neither sorts the whole trace nor pairs begins with ends. It
//! stores a buffer, the strings, the descriptions of tracks, and the events that a format holds back for a
//! moment, such as complete slices of JSON with equal begins.
//!
//! | module | content |
//! |---|---|
//! | [`slices`] | begins and ends paired to slices, for consumers that need durations |
//! | [`timeline`] | how long each thread ran, waited and slept between two moments |
//! | [`sampled`] | stack samples by thread and time |
//! | [`splice`] | traces of one run, format and clock joined byte by byte |
//!
//! The feature `unpack` adds `Unpacked`, which reads inputs that are compressed with gzip, zstd, xz or
//! zip.
//!
//! To merge traces, read them one after the other with the same [`Context`], and call [`Context::next_input`]
//! between them.
//!
//! ```
//! use hairline_convert::{Context, TraceFormat, create, open};
//!
//! let json = br#"[{"name":"read","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]"#;
//! let mut fxt = Vec::new();
//! let (mut reader, mut context) = (open(&json[..], None)?, Context::new());
//! let mut writer = create(TraceFormat::Fxt, &mut fxt);
//! while let Some(item) = reader.next(&mut context)? {
//!     writer.write(&item)?;
//! }
//! writer.finish()?;
//! assert!(writer.report().is_empty() && reader.report().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod brief;
mod by_track;
mod context;
mod error;
mod flow_ids;
mod format;
mod fxt;
mod index;
mod json;
mod kept_track;
mod kinds;
mod model;
mod neighbours;
mod nesting;
mod open;
#[cfg(feature = "unpack")]
mod packed;
mod pids;
mod readings;
mod report;
pub mod sampled;
mod samples;
mod scheduling;
mod shared_ids;
pub mod slices;
pub mod splice;
mod starts;
mod stream;
mod strings;
mod threads;
mod ties;
pub mod timeline;
mod track_event;
mod window;

pub use brief::{BriefEvent, BriefKind, BriefUse, MOST_BRIEF};
pub use by_track::ByTrack;
pub use context::Context;
pub use error::Error;
pub use format::{FileFormat, TraceFormat, detect, is_gzip};
pub use fxt::{FxtReader, FxtWriter};
pub use index::Index;
pub use json::{JsonReader, JsonWriter};
pub use model::{
    Arguments, Categories, Clock, CounterTrack, Detailed, Event, EventDetails, EventKind, FlowStep, Item,
    Log, Loss, NoArguments, Texts, Trace, Track, TrackId, TrackKind,
};
pub use open::{create, open, open_twice};
#[cfg(feature = "unpack")]
pub use packed::Unpacked;
pub use report::Report;
pub use samples::{HeapSums, Sample, SampleKind, Stack, StackFrame, SymbolLine, Symbols};
pub use scheduling::{Copied, RunState, Scheduling, StateChange};
pub use stream::{TraceReader, TraceWriter};
pub use strings::{StringId, Strings, Text};
pub use threads::{ReadAhead, Worker, with_worker, write_behind};
pub use track_event::{TrackEventReader, TrackEventWriter};
