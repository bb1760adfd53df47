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
mod detect;
pub mod fxt;
pub mod json;
mod model;
mod open;
mod readings;
mod report;
pub mod slices;
pub mod splice;
pub mod track_event;

pub use context::{Context, StringId, Strings};
pub use detect::{FileKind, detect, is_gzip};
pub use model::{
    Arguments, Categories, Clock, CounterTrack, Event, EventKind, FlowStep, Item, Log, Loss, NoArguments,
    Source, Text, Texts, Trace, Track, TrackId, TrackKind,
};
pub use open::{OpenError, create, open};
pub use report::Report;

use hairline_formats::DecodeError;

/// Reads a trace, item by item.
pub trait Reader {
    /// The next item; None after the last.
    ///
    /// # Errors
    /// Where the bytes are no trace of this format, with the place; after that there is nothing more. An input that ends early is one
    /// too ([`DecodeError::is_truncated`]): what was given out before is good.
    fn next<'s>(&'s mut self, context: &'s mut Context) -> Result<Option<Item<'s>>, DecodeError>;

    /// What was not understood, and was passed over.
    fn report(&self) -> &Report;

    /// Bytes of the input that have been read.
    fn position(&self) -> u64;
}

/// Writes a trace, item by item.
pub trait Writer {
    /// Writes an item, in the nearest form that the format has; what is not said as it was is counted. A text's number may be
    /// the index of a table: each text of one [`Context`] has its own.
    ///
    /// # Errors
    /// Those of the output.
    fn write(&mut self, item: &Item<'_>) -> std::io::Result<()>;

    /// Writes what stands at a trace's end, and flushes the output.
    ///
    /// # Errors
    /// Those of the output.
    fn finish(&mut self) -> std::io::Result<()>;

    /// What could not be said, or not as it was.
    fn report(&self) -> &Report;
}
