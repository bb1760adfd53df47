//! What the writer knows of threads between two changes of their states.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{StateChange, TrackId};

/// The limit for threads whose state is remembered.
pub(super) const MOST_THREADS: usize = 1 << 20;

/// What is known of each thread.
#[derive(Debug, Default)]
pub(super) struct Scheduled {
    /// The tracks of threads.
    pub(super) tracks: HashMap<u64, TrackId>,
    pub(super) running: HashMap<u64, bool>,
    pub(super) names: HashMap<u64, Arc<str>>,
}

impl Scheduled {
    /// Whether a change has no effect: the wakeup of a thread that runs.
    pub(super) fn is_idle(&mut self, change: &StateChange) -> bool {
        let running = self.running.get(&change.tid).copied();
        if change.is_wakeup && running == Some(true) {
            return true;
        }
        if running.is_some() || self.running.len() < MOST_THREADS {
            self.running.insert(change.tid, change.state.is_running());
        }
        false
    }
}
