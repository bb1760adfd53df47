//! Opening files: one file for each system, with the same functions.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(crate) use linux::{open_at_once, size_on_disk};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{open_at_once, size_on_disk};
