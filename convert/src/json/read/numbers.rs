//! Numbers for ids that are text, or that are unique only with other values.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use hairline_formats::trace_event_json::Id;

use crate::Context;

/// Hashes a value of any length to 64 bits.
pub(super) fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The number of an interval or a counter.
pub(super) fn number(id: &Id<'_>) -> u64 {
    id.number().and_then(|number| u64::try_from(number).ok()).unwrap_or_else(|| hash(id))
}

/// The numbers of processes and threads whose id is a text.
#[derive(Debug, Default)]
pub(super) struct MadeIds(HashMap<String, u64>);

impl MadeIds {
    /// The count of such ids.
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the number of a process or thread. If `id` is a text, assigns a new number, and returns the
    /// text as well.
    pub(super) fn number<'t>(&mut self, id: &'t Id<'_>, context: &mut Context) -> (u64, Option<&'t str>) {
        if let Some(number) = id.number().and_then(|number| u64::try_from(number).ok()) {
            return (number, None);
        }
        let Id::Text(text) = id else {
            // A negative id becomes its lower 32 bits, as in importers with 32-bit ids.
            return (id.number().map_or(0, |number| number as u32).into(), None);
        };
        if let Some(number) = self.0.get(&**text) {
            return (*number, Some(text));
        }
        let number = context.new_owner();
        self.0.insert(text.clone().into_owned(), number);
        (number, Some(text))
    }
}

/// The numbers of flows. In JSON, name and category are part of a flow's identity, except for flows that
/// slices are bound to.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// The first category and name. Their flow ids stay unchanged, because nearly all traces have no others.
    first: Option<(String, String)>,
    /// The latest category and name, and the value that is mixed into their flow ids.
    last: (String, String, u64),
}

impl Flows {
    /// Returns the number of a flow, or `None` if its id is not a number.
    pub(super) fn number(
        &mut self,
        category: &str,
        name: &str,
        id: &Id<'_>,
        context: &Context,
    ) -> Option<u64> {
        let id = match id {
            Id::Number(number) => *number,
            Id::Negative(_) => return None,
            // A text id is hexadecimal, with or without 0x.
            Id::Text(text) => u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()?,
        };
        if (self.last.0.as_str(), self.last.1.as_str()) != (category, name) || self.first.is_none() {
            let key = (category.to_owned(), name.to_owned());
            let mixed = match &self.first {
                Some(first) if *first != key => hash(&key),
                _ => 0,
            };
            self.first.get_or_insert_with(|| key.clone());
            self.last = (key.0, key.1, mixed);
        }
        Some(context.flow(id) ^ self.last.2)
    }
}
