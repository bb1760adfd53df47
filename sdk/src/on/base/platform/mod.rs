//! Facts that the operating system knows of the process, its threads and the machine.

pub(crate) mod own_thread;
pub(crate) mod process;
pub(crate) mod system;
pub(crate) mod usage;
