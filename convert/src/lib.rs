//! One vocabulary for the three formats: a reader of each gives out [`Item`]s, a writer of each takes them.
//!
//! ```text
//! .pftrace ─┐                                      ┌─ .pftrace
//! .fxt ─────┼─ Reader ── Item, Item, Item ── Writer ┼─ .fxt
//! .json ────┘     └───── Context ─────┘             └─ .json
//! ```
//!
//! An item is what one record, packet or object says, with all references resolved: tracks and strings have numbers of their own
//! ([`TrackId`], [`StringId`]) that hold for the whole conversion, times are nanoseconds. It borrows what it can, so that nothing is
//! allocated for an event. Nothing is sorted and nothing is matched: memory is a buffer, the strings, and what is known of tracks.
//!
//! Several traces become one by reading them one after the other with the same [`Context`], which is told of each
//! [next one](Context::next_input).

mod context;
mod error;
mod format;
mod fxt;
mod json;
mod model;
mod open;
mod readings;
mod report;
pub mod slices;
pub mod splice;
mod stream;
mod strings;
mod track_event;

pub use context::Context;
pub use error::Error;
pub use format::{FileFormat, TraceFormat, detect, is_gzip};
pub use fxt::{FxtReader, FxtWriter};
pub use json::{JsonReader, JsonWriter};
pub use model::{
    Arguments, Categories, Clock, CounterTrack, Event, EventKind, FlowStep, Item, Log, Loss, NoArguments,
    Texts, Trace, Track, TrackId, TrackKind,
};
pub use open::{create, open};
pub use report::Report;
pub use stream::{TraceReader, TraceWriter};
pub use strings::{StringId, Strings, Text};
pub use track_event::{TrackEventReader, TrackEventWriter};
