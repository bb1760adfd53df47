//! Values and indices of a table, for a scan.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::index::Index;
use super::spill::Spill;
use super::table::{Last, Table, Value};

/// The columns of an index, and whether it is in order.
type Which = (Vec<usize>, bool);

/// The indices of a table.
#[derive(Debug, Default)]
pub(crate) struct Indices(Mutex<HashMap<Which, Arc<Index>>>);

/// Reads values of a table. Keeps the last block of each column that is in the temporary file.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) table: Arc<Table>,
    indices: Arc<Indices>,
    spill: Arc<Spill>,
    last: Vec<RefCell<Last>>,
    ahead: Vec<RefCell<Ahead>>,
}

/// The values of a column in rows that follow one another in an index. Their blocks are anywhere in memory: a
/// loop over many lets the processor wait for several at a time, which SQLite's steps between two do not.
#[derive(Debug, Default)]
struct Ahead {
    entries: Range<usize>,
    values: Vec<Option<i64>>,
}

/// The rows that are looked up at once.
const AHEAD: usize = 1024;

impl Reader {
    pub(crate) fn new(table: Arc<Table>, indices: Arc<Indices>, spill: Arc<Spill>) -> Self {
        let last = table.columns.iter().map(|_| RefCell::default()).collect();
        let ahead = table.columns.iter().map(|_| RefCell::default()).collect();
        Self { table, indices, spill, last, ahead }
    }

    /// The value of the row of an entry of `index`. All entries are asked for, in their order, and all of the
    /// same index.
    #[inline]
    pub(crate) fn value_in_order(&self, column: usize, index: &Index, entry: usize) -> io::Result<Value<'_>> {
        let mut ahead = self.ahead[column].borrow_mut();
        if !ahead.entries.contains(&entry) {
            let Ahead { entries, values } = &mut *ahead;
            *entries = 0..0; // until all values are there
            values.clear();
            let end = (entry + AHEAD).min(index.len());
            let mut last = self.last[column].borrow_mut();
            for entry in entry..end {
                values.push(self.table.value(column, index.row(entry), &self.spill, &mut last)?);
            }
            *entries = entry..end;
        }
        Ok(self.table.columns[column].shown(ahead.values[entry - ahead.entries.start]))
    }

    /// The rows by some columns: those with equal values follow one another. With `in_order`, they come in
    /// the order of the values, if [`Index::has_order`].
    pub(crate) fn index(&self, columns: &[usize], in_order: bool) -> io::Result<Arc<Index>> {
        let mut indices = self.indices.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (columns.to_vec(), in_order);
        if let Some(index) = indices.get(&key) {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(Index::new(&self.table, columns, in_order, &self.spill)?);
        indices.insert(key, Arc::clone(&index));
        Ok(index)
    }

    /// The value of a row.
    #[inline]
    pub(crate) fn value(&self, index: usize, row: u32) -> io::Result<Value<'_>> {
        let value = self.table.value(index, row, &self.spill, &mut self.last[index].borrow_mut())?;
        Ok(self.table.columns[index].shown(value))
    }
}
