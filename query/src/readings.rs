//! A trace is read once instead of twice, as long as no row of it was printed: a question can be asked again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The readings for one attempt to answer a question.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// Whether traces may be read at once.
    are_at_once: AtomicBool,
    /// The number of readings at once that have not come to the end of their traces.
    open: AtomicUsize,
    has_failed: AtomicBool,
}

impl Readings {
    pub(crate) fn new(at_once: bool) -> Self {
        Self { are_at_once: AtomicBool::new(at_once), ..Self::default() }
    }

    /// Begins a reading. Returns whether it may be one at once.
    pub(crate) fn begin(&self) -> bool {
        // Either `close` sees this reading, or this sees that it is too late. SeqCst: each side stores before
        // it loads what the other one stores.
        self.open.fetch_add(1, Ordering::SeqCst);
        if self.are_at_once.load(Ordering::SeqCst) {
            return true;
        }
        self.end();
        false
    }

    /// Ends a reading: its rows are as two readings would show them.
    pub(crate) fn end(&self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    /// Ends a reading whose rows, some of which the engine has, are of no use.
    pub(crate) fn fail(&self) {
        self.has_failed.store(true, Ordering::SeqCst);
    }

    /// Whether the question has to be asked again.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    /// From now on rows are printed, and traces read twice. Returns whether all rows so far are certain.
    pub(crate) fn close(&self) -> bool {
        self.are_at_once.store(false, Ordering::SeqCst);
        self.open.load(Ordering::SeqCst) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_certain_when_all_readings_came_to_the_end() {
        let readings = Readings::new(true);
        assert!(readings.begin() && readings.begin());
        readings.end();
        assert!(!readings.close(), "one is still reading");
        assert!(!readings.begin(), "rows are printed");
        readings.end();
        assert!(readings.close());
        assert!(!Readings::new(false).begin());
    }
}
