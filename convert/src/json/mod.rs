//! Trace Event JSON.
//!
//! What trace_processor v52 makes of an event is what is meant here too, where the document leaves it open.

mod facts;
mod read;
mod write;

pub use read::JsonReader;
pub use write::JsonWriter;
