//! The types that the functions of each platform return.

use std::fs::File;
use std::path::PathBuf;

/// The name of a file that does not change while the file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// The outcome of an attempt to lock a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// This process has the lock.
    Got,
    /// Another open file has it: of another process, or of this one.
    Taken,
    /// The file system has no locks, or the process may not lock files.
    #[cfg_attr(not(any(unix, windows)), allow(dead_code))] // there is one process
    Impossible,
}

/// The file at a path.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))] // elsewhere there are no such links
pub(crate) enum Link {
    /// No link, or no file.
    None,
    /// A link that only the kernel can follow, to an open file: one of `/proc`.
    OfKernel,
    /// A link of this user to this path, relative to its own directory.
    To(PathBuf),
}

/// What a process has used, for all of its threads. Times are in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resources {
    pub(crate) cpu: Option<u64>,
    pub(crate) faults: Option<u64>,
    pub(crate) major_faults: Option<u64>,
    pub(crate) waits: Option<u64>,
    pub(crate) preemptions: Option<u64>,
}

/// The machine, as the system describes it; empty and 0 for what it does not say.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    pub(crate) host: String,
    pub(crate) sysname: String,
    pub(crate) release: String,
    pub(crate) version: String,
    pub(crate) machine: String,
    pub(crate) page_size: u64,
    pub(crate) processors: u64,
    pub(crate) ram_bytes: u64,
}

/// What a connection has.
#[derive(Debug)]
pub(crate) enum Received {
    /// A packet of so many bytes, with a file.
    Packet(usize, Option<File>),
    /// Nothing yet.
    Nothing,
    /// Its end, or a packet that is too long.
    End,
}

/// What a service has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))] // elsewhere nothing connects
pub(crate) enum Heard {
    /// So many bytes.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// Its end.
    End,
}

/// Who has something for this process.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    pub(crate) door: bool,
    /// In the order of the visitors.
    pub(crate) visitors: Vec<bool>,
}
