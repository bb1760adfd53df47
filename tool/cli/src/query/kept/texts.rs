//! The texts of a column, each once.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// Texts by number.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: String,
    ends: Vec<usize>,
    by_text: HashTable<u32>,
    hasher: RandomState,
}

impl Texts {
    /// The number of texts.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text with a number.
    #[inline]
    pub(crate) fn get(&self, code: u32) -> &str {
        text(&self.bytes, &self.ends, code)
    }

    /// The number of a text.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.by_text.find(self.hasher.hash_one(text), |code| self.get(*code) == text).copied()
    }

    /// The place of each text in their order.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by(|one, other| self.get(*one).cmp(self.get(*other)));
        let mut ranks = vec![0; order.len()];
        for (rank, code) in order.iter().enumerate() {
            ranks[*code as usize] = rank as u32; // as many as codes
        }
        ranks
    }

    /// The number of a text, which is added if it is not there.
    pub(crate) fn code(&mut self, new: &str) -> u32 {
        if let Some(code) = self.find(new) {
            return code;
        }
        let code = self.ends.len() as u32; // there are fewer texts than rows
        self.bytes.push_str(new);
        self.ends.push(self.bytes.len());
        let Self { bytes, ends, by_text, hasher } = self;
        let hash = |code: &u32| hasher.hash_one(text(bytes, ends, *code));
        by_text.insert_unique(hasher.hash_one(new), code, hash);
        code
    }
}

fn text<'t>(bytes: &'t str, ends: &[usize], code: u32) -> &'t str {
    let at = code as usize;
    let begin = if at == 0 { 0 } else { ends[at - 1] };
    &bytes[begin..ends[at]]
}
