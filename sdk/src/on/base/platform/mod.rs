//! Facts that the operating system knows of the process, its threads and the machine, and its calls.
//!
//! Each platform has one file with the same functions. No other file of the SDK asks which system it is
//! compiled for.
//!
//! ```text
//! linux.rs    Linux
//! unix.rs     macOS, the BSDs, Android
//! posix.rs      what those two share
//! windows.rs  Windows
//! other.rs    WebAssembly and others
//! plain.rs      what those two share: no signals, no fork, threads of the standard library
//! unknown.rs    what all but Linux share: what they do not tell
//! door.rs     the socket of a process that listens, on Linux
//! service.rs  the connection to a service, and memory that both share, on Linux
//! facts.rs    the types that their functions return
//! ```

#[cfg(target_os = "linux")]
pub(crate) mod door;
pub(crate) mod facts;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(any(unix, windows)))]
mod other;
pub(crate) mod own_thread;
#[cfg(not(unix))]
mod plain;
#[cfg(unix)]
mod posix;
pub(crate) mod process;
#[cfg(target_os = "linux")]
pub(crate) mod service;
pub(crate) mod system;
#[cfg(all(unix, not(target_os = "linux")))]
mod unix;
#[cfg(not(target_os = "linux"))]
mod unknown;
pub(crate) mod usage;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(any(unix, windows)))]
pub(crate) use other::*;
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
