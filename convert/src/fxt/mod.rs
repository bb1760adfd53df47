//! FXT.

mod levels;
mod read;
mod write;

pub use read::Reader;
pub use write::Writer;
