//! Texts of a profile, each once, by their number.

use std::collections::HashMap;
use std::rc::Rc;

#[derive(Debug, Default)]
pub(super) struct Texts {
    numbers: HashMap<Rc<str>, u32>,
    all: Vec<Rc<str>>,
}

impl Texts {
    /// Returns the number of a text: from 0, without gaps.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (number, text) = (self.all.len() as u32, Rc::<str>::from(text)); // the readers have limits
        self.numbers.insert(Rc::clone(&text), number);
        self.all.push(text);
        number
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|text| &**text)
    }
}
