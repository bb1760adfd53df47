//! Perfetto's TracePackets.

mod binding;
mod describe;
mod read;
pub(crate) mod stacks;
mod write;

pub(crate) use binding::binding;
pub(crate) use describe::describe;
pub(crate) use read::Again;
pub use read::TrackEventReader;
pub use write::TrackEventWriter;
