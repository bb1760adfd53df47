//! The Trace Event Format: JSON, as Chrome's tracing and many others write it.
//!
//! ```text
//! [ {event}, {event}, ...                                                                   the array form
//! { "traceEvents": [ {event}, ... ], "displayTimeUnit": "ns", "otherData": {}, ... }        the object form
//! ```
//!
//! | section of the document | item |
//! |---|---|
//! | JSON Array Format, JSON Object Format | [`JsonReader`], [`Item`]; [`JsonWriter`] |
//! | Event Descriptions | [`Event`] |
//! | Phases, Duration Events ... Context Events, Linking IDs | [`Phase`], [`InstantScope`] |
//! | More about IDs | [`Id`], [`Id2`], [`Event::scope`] |
//! | Metadata Events | [`Metadata`] |
//! | StackFrames Dictionary, Global Samples | [`StackFrame`], [`Sample`] |
//! | Linux Debug Format | not read; `systemTraceEvents` is returned as text |
//!
//! **Units.** Times in a trace are microseconds. Here they are integers in nanoseconds, converted without
//! rounding errors in both directions. A time that exceeds 64 bits of nanoseconds (292 years) is an error.
//!
//! **Limits.** A [`JsonReader`] holds one object of up to [`LIMIT`] bytes at a time. The trace can have any
//! size, and the members of the object form any order. Values can be nested to any depth; values deeper than
//! 32 levels read as "...".
//!
//! **Tolerated faults.** A byte order mark, extra or missing commas, an input that ends between two values,
//! unknown members and elements, two members with one name (the last counts), bytes that are not UTF-8, and
//! numbers written as text. An event that is not JSON is read as what it means: `NaN` and other words,
//! backslashes that begin no escape, control characters and quotes in strings, and more (`tolerant.rs`). Text
//! between events is passed over. A file may have events without an array around them, and several traces.

mod ahead;
mod encode;
mod event;
mod json;
mod number;
mod object;
mod parse;
mod phase;
mod plain;
mod put;
mod read;
mod scan;
mod sections;
mod text;
mod tokens;
mod tolerant;
mod walk;
mod window;
mod write;

pub use encode::{put_event, put_value};
pub use event::{Args, Event, Id, Id2, Metadata, Sample, StackFrame};
pub use json::Json;
pub use phase::{InstantScope, Phase};
pub use plain::{Label, PlainEvent, PlainPhase, TrackIds};
pub use read::{Item, JsonReader, LIMIT};
pub use write::{JsonWriter, TimeUnit};
