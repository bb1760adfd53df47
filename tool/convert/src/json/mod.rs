//! Trace Event JSON.
//!
//! Where the format's document is ambiguous, this module follows trace_processor v52.

mod facts;
mod read;
mod write;

pub use read::JsonReader;
pub use write::JsonWriter;
