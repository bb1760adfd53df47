//! The operating system, for the command. Each platform has one file with the same items, and no other file
//! of the crate asks which system it is compiled for.
//!
//! ```text
//! linux/      Linux
//! unix.rs     macOS, the BSDs, Android
//! posix/        what those two share
//! folder.rs     a folder that they hold by its descriptor
//! windows.rs  Windows
//! unnamed.rs  what systems share that do not name the user of a connection
//! facts.rs    the types that they share
//! ```

pub(crate) mod facts;
#[cfg(unix)]
mod folder;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod posix;
#[cfg(all(unix, not(target_os = "linux")))]
mod unix;
#[cfg(not(target_os = "linux"))]
mod unnamed;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
