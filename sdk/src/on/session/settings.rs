//! The settings that a running session keeps.

use std::path::PathBuf;
use std::time::Duration;

use crate::builder::{Config, Detail, Requester};
use crate::options::Overflow;
use crate::process_counters::ProcessCounters;

/// The upper limit of [`Settings::patience`], so that a deadline never overflows.
const LONGEST_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// The settings of a running session.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) detail: Detail,
    /// The longest wait of an event for a chunk. Zero: events do not wait.
    pub(crate) patience: Duration,
    /// Time between two heartbeats of the stream.
    pub(crate) heartbeat: Duration,
    /// The absolute path of the output, if the output is a file.
    pub(crate) path: Option<PathBuf>,
    /// The counters of the process that are sampled.
    pub(crate) counters: Option<ProcessCounters>,
    /// Whether panics are recorded as instants.
    pub(crate) record_panics: bool,
    pub(crate) requester: Requester,
    /// Whether a heap profile is asked for.
    pub(crate) profiles_heap: bool,
    /// A note for each setting that has no effect.
    pub(crate) without_effect: Vec<String>,
}

impl Settings {
    /// Takes the settings from `config`. `path` is the output's path.
    pub(crate) fn new(config: &Config, path: Option<PathBuf>, without_effect: Vec<String>) -> Self {
        let patience = match config.overflow {
            Overflow::Block(longest) => longest.min(LONGEST_PATIENCE),
            _ => Duration::ZERO,
        };
        let &Config { counters, detail, heartbeat, record_panics, requester, .. } = config;
        let profiles_heap = config.heap_profile.is_some();
        Self {
            counters,
            detail,
            patience,
            heartbeat,
            path,
            record_panics,
            requester,
            profiles_heap,
            without_effect,
        }
    }
}
