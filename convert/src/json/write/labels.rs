//! The text of names and categories, which comes again and again.

use hairline_formats::trace_event_json::Label;

use crate::strings::Text;

/// The labels of names and categories that came lately: those of one place take turns.
#[derive(Debug)]
pub(super) struct Labels {
    all: Vec<Entry>,
    /// That of texts without numbers.
    other: Option<Label>,
}

/// Half a megabyte of them, for a thousand names and more.
const PLACES: usize = 1 << 12;

/// The numbers of a name and a category, and what they are together: the label is None if it is too long.
#[derive(Clone, Debug)]
struct Entry {
    name: u32,
    category: u32,
    label: Option<Label>,
}

impl Default for Labels {
    fn default() -> Self {
        // 0 is the number of "".
        let unnamed = Entry { name: 0, category: 0, label: Label::new("", "") };
        Self { all: vec![unnamed; PLACES], other: None }
    }
}

impl Labels {
    /// The label of a name and a category; None if it is too long.
    #[inline]
    pub(super) fn get(&mut self, name: Text<'_>, category: Text<'_>) -> Option<&Label> {
        let (Some(name_number), Some(category_number)) = (number(name), number(category)) else {
            self.other = Label::new(name.text, category.text);
            return self.other.as_ref();
        };
        // Names come in a row; those of another category begin elsewhere.
        let place = name_number.wrapping_add(category_number.wrapping_mul(619)) as usize % PLACES;
        let entry = self.all.get_mut(place)?;
        if (entry.name, entry.category) != (name_number, category_number) {
            let label = Label::new(name.text, category.text);
            *entry = Entry { name: name_number, category: category_number, label };
        }
        entry.label.as_ref()
    }
}

/// A number from 1, 0 for no text; None if it has none.
#[inline]
pub(super) fn number(text: Text<'_>) -> Option<u32> {
    match text.id {
        Some(id) => id.0.checked_add(1),
        None if text.text.is_empty() => Some(0),
        None => None,
    }
}
