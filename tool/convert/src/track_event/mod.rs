//! Perfetto's TracePackets.

mod binding;
mod describe;
mod inflated;
mod read;
pub(crate) mod stacks;
mod write;

pub(crate) use binding::binding;
pub(crate) use describe::describe;
pub(crate) use inflated::Inflated;
pub(crate) use read::Again;
pub use read::TrackEventReader;
pub use write::TrackEventWriter;
