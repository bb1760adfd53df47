//! Perfetto's TracePackets.

mod describe;
mod read;
mod write;

pub(crate) use describe::describe;
pub use read::TrackEventReader;
pub use write::TrackEventWriter;
