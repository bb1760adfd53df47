//! Trace Event JSON.
//!
//! What trace_processor v52 makes of an event is what is meant here too, where the document leaves it open.

mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

/// The member of `otherData` that has the nanoseconds to be added to each time, as text.
///
/// Importers hold microseconds as floating point numbers, which are exact to the nanosecond for 26 days only.
const TIME_OFFSET: &str = "timeOffsetNs";

/// The other members of `otherData` that this crate knows.
mod facts {
    pub(super) const UUID: &str = "uuid";
    pub(super) const WRITER: &str = "writer";
    pub(super) const SYSTEM: &str = "system";
    pub(super) const CLOCKS: &str = "clocks";
    pub(super) const CLOCK_ID: &str = "id";
    pub(super) const CLOCK_TIME: &str = "timeNs";
}
