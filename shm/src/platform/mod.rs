//! The operating system, for this crate. Each platform has one file with the same functions, and no other
//! file of the crate asks which system it is compiled for.
//!
//! ```text
//! linux.rs    Linux                      files in /dev/shm, membarrier, memory that a fork wipes, /proc
//! unix.rs     macOS, the BSDs, Android   files in the directory for temporary files
//! posix.rs      what those two share
//! windows.rs  Windows                    files in the user's directory for temporary files
//! other.rs    WebAssembly and others     no files: the memory of a region is on the heap
//! plain.rs      what all but Linux share
//! ```

#![allow(unsafe_code)] // calls the system
#![cfg_attr(loom, allow(dead_code))] // the models have no files

#[cfg(not(target_has_atomic = "64"))]
compile_error!(
    "hairline needs 64-bit atomics, which this target does not have; depend on it without the feature `enable`"
);

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(any(unix, windows)))]
mod other;
#[cfg(not(target_os = "linux"))]
mod plain;
#[cfg(unix)]
mod posix;
#[cfg(all(unix, not(target_os = "linux")))]
mod unix;
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

/// The namespaces in which the facts about a process have their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Namespaces {
    /// That of the pid: an inode on Linux; 0 if not known.
    pub(crate) pids: u64,
    /// That of the time of the start: an inode on Linux; 0 if the system has no time namespaces.
    pub(crate) time: u64,
}

/// A process, as the system shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Whether it runs no more code: a zombie.
    pub(crate) has_ended: bool,
    /// The time of its start, in units of the system, for readers of this process's time namespace. Together
    /// with the pid it identifies one process for ever.
    pub(crate) start: u64,
}
