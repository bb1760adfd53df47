//! The Trace Event Format: JSON, as Chrome's tracing and many others write it.
//!
//! ```text
//! [ {event}, {event}, ...                                                      the array form; a ] at its end is optional
//! { "traceEvents": [ {event}, ... ], "displayTimeUnit": "ns", "otherData": {}, ... }            the object form
//! ```
//!
//! | the document's section | here |
//! |---|---|
//! | JSON Array Format, JSON Object Format | [`Reader`], [`Item`]; [`Writer`] |
//! | Event Descriptions | [`Event`] |
//! | Phases, Duration Events ... Context Events, Linking IDs | [`Phase`], [`InstantScope`] |
//! | More about IDs | [`Id`], [`Id2`], [`Event::scope`] |
//! | Metadata Events | [`Metadata`] |
//! | StackFrames Dictionary, Global Samples | [`StackFrame`], [`Sample`] |
//! | Linux Debug Format | not here; a `systemTraceEvents` is handed out as the text that it is |
//!
//! **Units.** Times in a trace are microseconds; here they are nanoseconds, exact in both directions: they never are floating
//! point numbers. Times beyond 64 bits of nanoseconds (292 years) are an error.
//!
//! **Limits.** A [`Reader`] holds one object at a time, of up to [`LIMIT`] bytes; the object form may be of any size and order. Values may be
//! nested as deep as they like; what is deeper than 32 levels is shown as "...".
//!
//! **What is forgiven.** A byte order mark, commas too many or too few, an input that ends between two things, members and elements that
//! nobody knows, two members of a name (the last counts), bytes that are not UTF-8, numbers as text. Comments, `NaN` and
//! control characters in strings are not JSON: an object that has them is an error, and the next one is read.

mod encode;
mod event;
mod json;
mod number;
mod parse;
mod phase;
mod plain;
mod put;
mod read;
mod scan;
mod window;
mod write;

pub use encode::{put_event, put_value};
pub use event::{Args, Event, Id, Id2, Metadata, Sample, StackFrame};
pub use json::Json;
pub use phase::{InstantScope, Phase};
pub use plain::{Label, Place, Plain, PlainKind};
pub use read::{Item, LIMIT, Reader};
pub use write::{TimeUnit, Writer};
