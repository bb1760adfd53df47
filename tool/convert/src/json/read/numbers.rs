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

/// The number in the id of a flow. A text is hexadecimal, with or without `0x`.
pub(super) fn flow_number(id: &Id<'_>) -> Option<u64> {
    match id {
        Id::Number(number) => Some(*number),
        Id::Negative(_) => None,
        Id::Text(text) => u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok(),
    }
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
