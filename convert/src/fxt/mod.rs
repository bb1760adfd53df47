//! FXT.

mod read;

pub use read::Reader;
