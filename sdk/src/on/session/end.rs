//! What is asked of a session's own thread, what it answers, and what it leaves behind.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What the writer thread leaves behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) duration: Duration,
    pub(crate) records_by_sequence: HashMap<u32, u64>,
    /// The file that it is in.
    pub(crate) path: Option<PathBuf>,
    /// What is worth knowing of it.
    pub(crate) notes: Vec<String>,
}

/// What is asked of the writer thread, and what it answers.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) flushes_asked: u64,
    pub(crate) flushes_done: u64,
    pub(crate) stop: bool,
    /// Snapshots that panics ask for.
    pub(crate) panics_asked: u64,
    pub(crate) panics_done: u64,
    /// The first error of the output. Shared, so that a copy needs no allocation under the lock.
    pub(crate) error: Option<Arc<std::io::Error>>,
    /// Set when the writer thread is done.
    pub(crate) end: Option<Arc<End>>,
}
