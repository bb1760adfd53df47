//! The memory of a ring: one file for each system, with the same functions.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub(crate) use linux::Memory;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::Memory;
