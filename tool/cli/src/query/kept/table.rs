//! The rows of a table, column by column.
//!
//! The row 3 of block 5 has the number `5 << SHIFT | 3`.

use std::io;

use hairline_tables::sql::PARTITION;
use hairline_tables::{Batch, Data, Kind, TableId, Values};

use super::block::{Block, MOST, SHIFT};
use super::spill::{Bytes, Spill};
use super::texts::Texts;

/// The rows of a table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    /// The number of rows of each block.
    pub(crate) lengths: Vec<u32>,
    pub(crate) rows: u64,
}

/// A column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether the question needs it. Otherwise it has no block.
    pub(crate) is_needed: bool,
    pub(crate) blocks: Vec<(Block, Bytes)>,
    pub(crate) texts: Texts,
}

/// A value of a row, as SQL has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'t> {
    Null,
    Int(i64),
    Float(f64),
    Text(&'t str),
}

/// The place of a block in the temporary file, and its bytes.
pub(super) type Last = (Option<u64>, Vec<u8>);

/// The most blocks: rows have numbers of 32 bits.
const MOST_BLOCKS: usize = (1 << (32 - SHIFT)) - 1;

impl Table {
    /// A table without rows.
    pub(crate) fn new(table: TableId) -> Self {
        let own = table.table().columns.iter().map(|column| (column.name, column.kind));
        let all = own.chain(PARTITION.map(|name| (name, Kind::Text)));
        let column = |(name, kind)| Column {
            name,
            kind,
            is_needed: false,
            blocks: Vec::new(),
            texts: Texts::default(),
        };
        let columns = all.map(column).collect();
        Self { columns, lengths: Vec::new(), rows: 0 }
    }

    /// Adds rows. Their place follows with [`set_place`](Self::set_place).
    pub(crate) fn add(&mut self, batch: &Batch, spill: &Spill) -> io::Result<()> {
        for first in (0..batch.rows).step_by(MOST) {
            if self.lengths.len() == MOST_BLOCKS {
                return Err(io::Error::other("it has more than 4 billion rows: ask a part of them"));
            }
            let rows = (batch.rows - first).min(MOST);
            self.lengths.push(rows as u32); // at most MOST
            self.rows += rows as u64;
        }
        let places = self.columns.len() - PARTITION.len();
        for (index, column) in self.columns.iter_mut().enumerate().filter(|(_, column)| column.is_needed) {
            match batch.columns.get(index).and_then(Option::as_ref) {
                Some(values) => column.add(values, spill)?,
                None if index < places => column.add_nulls(batch.rows),
                None => {} // the place is not known yet
            }
        }
        Ok(())
    }

    /// Names the place of all rows that have none: the columns `date`, `service` and `trace`.
    pub(crate) fn set_place(&mut self, place: &[String; PARTITION.len()]) {
        let first = self.columns.len() - PARTITION.len();
        for (column, text) in self.columns[first..].iter_mut().zip(place).filter(|(c, _)| c.is_needed) {
            let code = i64::from(column.texts.code(text));
            for rows in &self.lengths[column.blocks.len()..] {
                column.blocks.push((Block::repeated(code, *rows), Bytes::default()));
            }
        }
    }

    /// Removes all rows but those of the first blocks.
    pub(crate) fn truncate(&mut self, blocks: usize) {
        self.lengths.truncate(blocks);
        self.rows = self.lengths.iter().map(|rows| u64::from(*rows)).sum();
        self.columns.iter_mut().for_each(|column| column.blocks.truncate(blocks));
    }

    /// A value. `last` has the bytes of the last block that came from the temporary file, and their place.
    #[inline]
    pub(super) fn value(
        &self,
        column: usize,
        row: u32,
        spill: &Spill,
        last: &mut Last,
    ) -> io::Result<Option<i64>> {
        let Some((block, bytes)) = self.columns[column].blocks.get((row >> SHIFT) as usize) else {
            return Ok(None);
        };
        let bytes = match bytes {
            Bytes::Memory(bytes) => &bytes[..],
            Bytes::File { at, len } => {
                if last.0 != Some(*at) {
                    last.0 = None; // until all bytes are there
                    spill.read(*at, *len, &mut last.1)?;
                    last.0 = Some(*at);
                }
                &last.1[..]
            }
        };
        Ok(block.get(bytes, row as usize & (MOST - 1)))
    }

    /// The number of different values of a column, at most.
    pub(crate) fn spread(&self, column: usize) -> u64 {
        self.columns[column].spread().min(self.rows).max(1)
    }
}

impl Column {
    fn add(&mut self, values: &Values, spill: &Spill) -> io::Result<()> {
        let codes: Vec<i64> = match &values.data {
            Data::Text { texts, .. } => {
                (0..texts.len() as u32).map(|code| i64::from(self.texts.code(texts.get(code)))).collect()
            }
            _ => Vec::new(),
        };
        let mut all = Vec::with_capacity(MOST);
        for first in (0..values.data.len()).step_by(MOST) {
            let rows = first..(first + MOST).min(values.data.len());
            let is_valid = if values.is_valid.is_empty() { &[] } else { &values.is_valid[rows.clone()] };
            all.clear();
            match &values.data {
                Data::Int(ints) => all.extend(&ints[rows]),
                Data::Float(floats) => all.extend(floats[rows].iter().map(|float| float.to_bits() as i64)),
                Data::Bool(bools) => all.extend(bools[rows].iter().map(|bool| i64::from(*bool))),
                // Where there is no value, the code may be of no text.
                Data::Text { codes: of, .. } => {
                    all.extend(of[rows].iter().map(|code| codes.get(*code as usize).copied().unwrap_or(0)));
                }
            }
            let mut bytes = Vec::new();
            let block = Block::of(&all, is_valid, &mut bytes);
            self.blocks.push((block, spill.keep(bytes)?));
        }
        Ok(())
    }

    fn add_nulls(&mut self, rows: usize) {
        for first in (0..rows).step_by(MOST) {
            self.blocks.push((Block::nulls((rows - first).min(MOST) as u32), Bytes::default()));
        }
    }

    /// The least value and the largest one. `None` without any.
    pub(crate) fn range(&self) -> Option<(i64, i64)> {
        let valued = self.blocks.iter().map(|(block, _)| block).filter(|block| !block.is_null());
        valued.fold(None, |range, block| {
            let (least, most) = range.unwrap_or((block.least, block.most));
            Some((block.least.min(least), block.most.max(most)))
        })
    }

    /// A value as SQL has it.
    #[inline]
    pub(super) fn shown(&self, value: Option<i64>) -> Value<'_> {
        match (value, self.kind) {
            (None, _) => Value::Null,
            (Some(value), Kind::Int | Kind::Bool) => Value::Int(value),
            (Some(value), Kind::Float) => Value::Float(f64::from_bits(value as u64)),
            (Some(value), Kind::Text) => Value::Text(self.texts.get(value as u32)),
        }
    }

    fn spread(&self) -> u64 {
        match self.kind {
            Kind::Text => self.texts.len() as u64,
            _ => self.range().map_or(1, |(least, most)| (most.wrapping_sub(least) as u64).saturating_add(1)),
        }
    }
}
