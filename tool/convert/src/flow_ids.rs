//! The ids of flows that are identified by name and category too, as in JSON and in Perfetto's legacy events.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{FlowStep, Report};

/// The flows of a trace.
#[derive(Debug, Default)]
pub(crate) struct FlowIds {
    /// The first category and name. Their flow ids stay unchanged, because nearly all traces have no others.
    first: Option<(String, String)>,
    /// The latest category and name, and the value that is mixed into their flow ids.
    last: (String, String, u64),
    /// The flows that began.
    begun: HashSet<u64>,
}

/// The limit for flows whose begin is known; some 2 MB.
const MOST: usize = 1 << 16;

impl FlowIds {
    /// Keeps the ids of flows without category and name unchanged, instead of those of the first flow.
    pub(crate) fn keep_bound_ids(&mut self) {
        self.first.get_or_insert_with(Default::default);
    }

    /// The id of a flow in the conversion. Slices that are bound to a flow have neither category nor name.
    pub(crate) fn id(&mut self, category: &str, name: &str, id: u64) -> u64 {
        if (self.last.0.as_str(), self.last.1.as_str()) != (category, name) || self.first.is_none() {
            let key = (category.to_owned(), name.to_owned());
            let mixed = match &self.first {
                Some(first) if *first != key => hash(&key),
                _ => 0,
            };
            self.first.get_or_insert_with(|| key.clone());
            self.last = (key.0, key.1, mixed);
        }
        id ^ self.last.2
    }

    /// Counts a begin with the id of an earlier flow. Importers ignore such a begin.
    pub(crate) fn count(&mut self, id: u64, step: FlowStep, report: &mut Report) {
        if step == FlowStep::Begin {
            if self.begun.len() >= MOST {
                self.begun.clear();
            }
            report.add_many(USED_AGAIN, u64::from(!self.begun.insert(id)));
        }
    }
}

const USED_AGAIN: &str = "flows that begin with the id of an earlier one, whose begin importers ignore";

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
