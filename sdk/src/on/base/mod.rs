//! The layer below all others: clock, locks, atomics, facts of the process and its threads, files, stderr.

pub(crate) mod buffer;
pub(crate) mod clock;
pub(crate) mod few;
pub(crate) mod files;
pub(crate) mod forever;
pub(crate) mod heap;
pub(crate) mod hooks;
pub(crate) mod lease;
pub(crate) mod lock;
pub(crate) mod memory;
pub(crate) mod platform;
pub(crate) mod sets;
pub(crate) mod spot;
pub(crate) mod stacks;
pub(crate) mod stderr;
pub(crate) mod sync;
pub(crate) mod this_thread;
pub(crate) mod uuid;
pub(crate) mod variables;
#[cfg(feature = "sampling")]
pub(crate) mod wakes;
