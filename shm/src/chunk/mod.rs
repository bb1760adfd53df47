//! A chunk, for the thread that writes it ([`WriteChunk`]) and for the drain or the window ([`ReadChunk`]).

mod read;
mod write;

pub(crate) use read::{Damaged, ReadChunk};
pub use write::WriteChunk;
