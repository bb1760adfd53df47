//! FXT, the Fuchsia trace format.

mod levels;
mod read;
mod write;

pub use read::FxtReader;
pub use write::FxtWriter;
