//! Perfetto's TracePackets.

mod read;
mod write;

pub use read::TrackEventReader;
pub use write::TrackEventWriter;
