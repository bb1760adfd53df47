//! The system calls: one file for each system, with the same functions.

#[cfg(all(target_os = "linux", target_endian = "little"))]
mod linux;
#[cfg(not(all(target_os = "linux", target_endian = "little")))]
mod unsupported;

#[cfg(all(target_os = "linux", target_endian = "little"))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", target_endian = "little")))]
pub(crate) use unsupported::*;
