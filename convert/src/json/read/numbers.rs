//! Ids that are text, and what tells equal ids apart, as numbers.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use hairline_formats::trace_event_json::Id;

use crate::context::Context;

/// A number of 64 bits for what may be of any length.
pub(super) fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The number of an interval or a counter.
pub(super) fn number(id: &Id<'_>) -> u64 {
    id.number().and_then(|number| u64::try_from(number).ok()).unwrap_or_else(|| hash(id))
}

/// Numbers of processes and threads.
#[derive(Debug, Default)]
pub(super) struct MadeIds(HashMap<String, u64>);

impl MadeIds {
    /// How many were made_ids up.
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The number that `id` is, or one made_ids up, with the text that it stands for.
    pub(super) fn number<'t>(&mut self, id: &'t Id<'_>, context: &mut Context) -> (u64, Option<&'t str>) {
        if let Some(number) = id.number().and_then(|number| u64::try_from(number).ok()) {
            return (number, None);
        }
        let Id::Text(text) = id else {
            // Below zero: as the importers of 32 bits do, but without a sign.
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

/// Numbers of flows. In JSON a flow is known by its name and category too, but for one that slices are bound to.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Nothing is mixed into the numbers of the first category and name: nearly always there are no others.
    first: Option<(String, String)>,
    /// The last ones, and what is mixed into their numbers.
    last: (String, String, u64),
}

impl Flows {
    /// The number of a flow; None if it has none.
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
            // Text is hexadecimal, whether it says so or not.
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
