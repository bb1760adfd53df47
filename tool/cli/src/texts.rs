//! The names and categories of open slices: each is in memory once.

use std::collections::HashSet;
use std::sync::Arc;

use hairline_convert::Categories;

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

    /// The categories of an event as one text, or `None` as in [`get`](Self::get).
    pub(crate) fn of(&mut self, categories: &Categories<'_>) -> Option<Arc<str>> {
        match categories {
            Categories::None => self.get(""),
            Categories::One(category) => self.get(category.text),
            Categories::Many(_) => {
                let mut all = Vec::new();
                categories.each(&mut |category| all.push(category.text.to_owned()));
                self.get(&all.join(","))
            }
        }
    }
}

/// The categories of a text of [`Texts::of`].
pub(crate) fn categories(text: &str) -> Categories<'_> {
    if text.is_empty() { Categories::None } else { Categories::One(text.into()) }
}
