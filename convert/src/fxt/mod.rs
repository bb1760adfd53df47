//! FXT.

mod levels;
mod read;
mod write;

pub use read::FxtReader;
pub use write::FxtWriter;
