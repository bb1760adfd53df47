//! What the user has to know besides the rows: what is missing, and why.

use std::collections::BTreeMap;

use hairline_tables::Summary;

use crate::text::{complain, count, described};

/// The notes of one question, each once, and whether it means that rows are missing.
#[derive(Debug, Default)]
pub(crate) struct Notes(BTreeMap<String, bool>);

impl Notes {
    /// Notes something that takes nothing from the answer.
    pub(crate) fn note(&mut self, what: String) {
        self.0.entry(what).or_insert(false);
    }

    /// Notes that the answer lacks rows.
    pub(crate) fn incomplete(&mut self, what: String) {
        self.0.insert(what, true);
    }

    /// Notes what the tables of a trace lack.
    pub(crate) fn summary(&mut self, name: &str, summary: &Summary) {
        for (what, number) in summary.report.iter().chain(summary.left_out.iter()) {
            self.note(format!("{name}: {number} {}", described(number, what)));
        }
        let facts = &summary.facts;
        if facts.lost_events > 0 || facts.losses > 0 {
            let what = match facts.lost_events {
                0 => "events are missing, nobody knows how many".to_owned(),
                1 => "1 event is missing".to_owned(),
                lost => format!("{lost} events are missing"),
            };
            let places = match facts.losses {
                0 => String::new(),
                losses => format!(" at {}", count(losses, "place")),
            };
            self.note(format!("{name}: {what}, lost{places} while it was recorded"));
        }
        if let Some(e) = &summary.stopped {
            self.incomplete(format!("{name}: {e}; the tables have everything before that"));
        }
    }

    /// Prints the notes.
    pub(crate) fn show(&self) {
        self.0.keys().for_each(complain);
    }

    pub(crate) fn is_complete(&self) -> bool {
        !self.0.values().any(|is_incomplete| *is_incomplete)
    }
}
