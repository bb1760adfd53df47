//! The rows that a question needs, column by column.
//!
//! ```text
//! Reader ─┬─ Table ── Column ── Block, Block    in memory, or in a temporary file without a name (Spill)
//!         │              └ Texts               each text once; blocks have numbers
//!         └─ Index                             the rows by some columns
//! ```

mod block;
mod index;
mod reader;
mod spill;
mod table;
mod texts;

pub(crate) use block::SHIFT;
pub(crate) use index::Index;
pub(crate) use reader::{Indices, Reader};
pub(crate) use spill::Spill;
pub(crate) use table::{Table, Value};
