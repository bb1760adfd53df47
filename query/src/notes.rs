//! What the user has to know besides the rows: what is missing, and why.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hairline_tables::Summary;

use crate::text::complain;

/// The notes of one question. A trace may be read several times for it; each note is shown once.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<All>);

#[derive(Debug, Default)]
struct All {
    /// Whether a note means that rows are missing.
    notes: BTreeMap<String, bool>,
}

impl Notes {
    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something that takes nothing from the answer.
    pub(crate) fn note(&self, what: String) {
        self.all().notes.entry(what).or_insert(false);
    }

    /// Notes that the answer lacks rows.
    pub(crate) fn incomplete(&self, what: String) {
        self.all().notes.insert(what, true);
    }

    /// Notes what the tables of a trace lack.
    pub(crate) fn summary(&self, name: &str, summary: &Summary) {
        for (what, count) in summary.report.iter().chain(summary.left_out.iter()) {
            self.note(format!("{name}: {count} {what}"));
        }
        let facts = &summary.facts;
        if facts.lost_events > 0 || facts.losses > 0 {
            self.note(format!(
                "{name}: {} events are missing, lost at {} places while it was recorded",
                facts.lost_events, facts.losses
            ));
        }
        if let Some(e) = &summary.stopped {
            self.incomplete(format!("{name}: {e}; the tables have everything before that"));
        }
    }

    /// Prints the notes.
    pub(crate) fn show(&self) {
        self.all().notes.keys().for_each(complain);
    }

    pub(crate) fn is_complete(&self) -> bool {
        !self.all().notes.values().any(|is_incomplete| *is_incomplete)
    }
}
