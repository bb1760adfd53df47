//! The JSON text of names and categories.

use hairline_formats::trace_event_json::Label;

use crate::Text;

/// A cache of labels: the JSON text of a name and a category.
#[derive(Debug)]
pub(super) struct Labels {
    all: Vec<Entry>,
    /// The label of texts without numbers.
    other: Option<Label>,
}

/// The size of the cache: half a megabyte, enough for more than a thousand names.
const PLACES: usize = 1 << 12;

/// A cached label with the numbers of its name and category. The label is `None` if it is too long.
#[derive(Clone, Debug)]
struct Entry {
    name: u32,
    category: u32,
    label: Option<Label>,
}

impl Default for Labels {
    fn default() -> Self {
        // Number 0 is the empty text.
        let unnamed = Entry { name: 0, category: 0, label: Label::new("", "") };
        Self { all: vec![unnamed; PLACES], other: None }
    }
}

impl Labels {
    /// Returns the label of a name and a category, or `None` if it is too long.
    #[inline]
    pub(super) fn get(&mut self, name: Text<'_>, category: Text<'_>) -> Option<&Label> {
        let (Some(name_number), Some(category_number)) = (number(name), number(category)) else {
            self.other = Label::new(name.text, category.text);
            return self.other.as_ref();
        };
        // Names have consecutive numbers. The factor keeps the names of another category apart.
        let place = name_number.wrapping_add(category_number.wrapping_mul(619)) as usize % PLACES;
        let entry = self.all.get_mut(place)?;
        if (entry.name, entry.category) != (name_number, category_number) {
            let label = Label::new(name.text, category.text);
            *entry = Entry { name: name_number, category: category_number, label };
        }
        entry.label.as_ref()
    }
}

/// A number from 1, or 0 for the empty text. Returns `None` for a text without a number.
#[inline]
pub(super) fn number(text: Text<'_>) -> Option<u32> {
    match text.id {
        Some(id) => id.0.checked_add(1),
        None if text.text.is_empty() => Some(0),
        None => None,
    }
}
