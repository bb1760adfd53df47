//! What the service's commands change in the output, which applies it between two passes.

use std::sync::Arc;

use crate::filter::Filter;
use crate::on::base::lock::Mutex;

/// A change of the instances.
#[derive(Debug)]
pub(crate) enum Change {
    /// An instance gets events from here on, and the begins of the slices that are open.
    Join {
        id: u64,
        buffer: u16,
        filter: Filter,
    },
    Leave(u64),
    /// The instance is told again what later packets rely on.
    Again(u64),
}

/// The changes that the output has not applied yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Arc<Mutex<Vec<Change>>>);

impl Changes {
    pub(crate) fn add(&self, change: Change) {
        let mut all = self.take(); // nothing is allocated under the lock
        all.push(change);
        *self.0.lock() = all;
    }

    pub(crate) fn take(&self) -> Vec<Change> {
        std::mem::take(&mut *self.0.lock())
    }
}
