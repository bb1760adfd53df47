//! Memory that comes from the kernel, never from the program's allocator.
//!
//! An event may come from a signal handler that interrupts the program in `malloc`, as the first event of its
//! thread or of its callsite. An allocation there would wait for ever for a lock that its own thread holds.
//! So each container that an event can fill has its memory from here:
//!
//! ```text
//! blocks.rs   blocks of memory, from the kernel: no lock, also none of the C library
//! list.rs     a list that grows
//! own.rs      a value with one owner
//! table.rs    a hash table
//! shared.rs   a text with several owners
//! text.rs     a text that grows
//! ```

mod blocks;
mod list;
mod own;
mod shared;
mod table;
mod text;

pub(crate) use crate::on::base::memory::blocks::leak;
pub(crate) use crate::on::base::memory::list::{Bytes, List};
pub(crate) use crate::on::base::memory::own::Own;
pub(crate) use crate::on::base::memory::shared::SharedText;
pub(crate) use crate::on::base::memory::table::Table;
pub(crate) use crate::on::base::memory::text::Text;
