//! Samples of call stacks of the process's threads.
//!
//! The kernel interrupts a thread and copies its registers and the first 8 to 32 KiB of its stack into a
//! ring. The drain thread reads the rings, unwinds, and writes the samples beside the events. When the
//! session ends, it looks up the functions of all frames. So no thread of the program does anything for it
//! but being interrupted.
//!
//! Unwinding needs packages that not every program should build: the feature `sampling`. Without it the twin
//! has the same functions, and says so.

#[cfg(not(feature = "sampling"))]
mod absent;
#[cfg(feature = "sampling")]
mod present;

#[cfg(not(feature = "sampling"))]
pub(crate) use absent::{Sampling, Slot};
#[cfg(feature = "sampling")]
pub(crate) use present::{Sampling, Slot};
