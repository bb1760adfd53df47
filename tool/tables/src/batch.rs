//! Rows of one table, column by column.

use crate::schema::TableId;

/// Rows of one table. A batch has at most [`MOST_ROWS`](crate::MOST_ROWS) rows, and they are sorted by the
/// table's [`sorted_by`](crate::Table::sorted_by), if that column is wanted.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The table.
    pub table: TableId,
    /// The number of rows; never 0.
    pub rows: usize,
    /// The columns, in the order of the schema. `None` for those that are not [wanted](crate::Wanted).
    pub columns: Vec<Option<Values>>,
}

/// The values of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// The values: one for each row, also where there is none.
    pub data: Data,
    /// Whether each row has a value. Empty if all have one.
    pub is_valid: Vec<bool>,
}

/// The values of a column, by kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Of a [`Kind::Int`](crate::Kind::Int).
    Int(Vec<i64>),
    /// Of a [`Kind::Float`](crate::Kind::Float).
    Float(Vec<f64>),
    /// Of a [`Kind::Bool`](crate::Kind::Bool).
    Bool(Vec<bool>),
    /// Of a [`Kind::Text`](crate::Kind::Text).
    Text {
        /// The index of each row's text. 0 where there is no value: check that before a look into `texts`.
        codes: Vec<u32>,
        /// The texts, each once.
        texts: Dictionary,
    },
}

impl Data {
    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text { codes, .. } => codes.len(),
        }
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Data {
    fn default() -> Self {
        Self::Int(Vec::new())
    }
}

/// Texts, one after the other in one string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dictionary {
    /// All texts.
    pub bytes: String,
    /// The end of each text, after a 0.
    pub offsets: Vec<u32>,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self { bytes: String::new(), offsets: vec![0] }
    }
}

impl Dictionary {
    /// The number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text with an index.
    ///
    /// # Panics
    /// Panics if there is none.
    #[must_use]
    pub fn get(&self, code: u32) -> &str {
        let at = code as usize;
        &self.bytes[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    pub(crate) fn push(&mut self, text: &str) -> u32 {
        let code = self.len() as u32; // fewer than bytes
        self.bytes.push_str(text);
        self.offsets.push(self.bytes.len() as u32); // a batch ends long before 4 GiB
        code
    }
}
