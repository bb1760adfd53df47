//! The names of open slices: each is in memory once.

use std::collections::HashSet;
use std::sync::Arc;

/// The bytes of all names.
const MOST_BYTES: usize = 64 << 20;

/// Each text once.
#[derive(Clone, Default)]
pub(crate) struct Texts {
    all: HashSet<Arc<str>>,
    bytes: usize,
}

impl Texts {
    /// The text, or `None` if the names of open slices are too large.
    pub(crate) fn get(&mut self, text: &str) -> Option<Arc<str>> {
        if let Some(known) = self.all.get(text) {
            return Some(Arc::clone(known));
        }
        self.bytes += text.len();
        if self.bytes > MOST_BYTES {
            self.all.retain(|text| Arc::strong_count(text) > 1);
            self.bytes = self.all.iter().map(|text| text.len()).sum::<usize>() + text.len();
        }
        let text = (self.bytes <= MOST_BYTES).then(|| Arc::<str>::from(text))?;
        self.all.insert(Arc::clone(&text));
        Some(text)
    }
}
