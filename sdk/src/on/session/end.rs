//! The results that a session's drain thread or recorder thread leaves at its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The results of a session or of a snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    pub(crate) records: u64,
    /// Bytes of the trace.
    pub(crate) bytes: u64,
    pub(crate) duration: Duration,
    pub(crate) records_by_sequence: BTreeMap<u32, u64>,
    /// The file that has the trace.
    pub(crate) path: Option<PathBuf>,
    /// Remarks for the summary.
    pub(crate) notes: Vec<String>,
}
