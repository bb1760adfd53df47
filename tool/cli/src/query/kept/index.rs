//! The rows of a table in the order of some columns, for joins and groups.
//!
//! An entry is a key of 32 bits and the number of a row. If the values of the columns have at most 2^32
//! combinations, the key is the combination; names, depths and ids of one trace are such. Otherwise it is a
//! hash, and rows of one hash are put in order by their values, so that equal ones follow one another.

use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};
use std::io;

use hairline_tables::Kind;

use super::block::SHIFT;
use super::spill::{Bytes, Spill};
use super::table::{Last, Table};

/// See [above](self).
#[derive(Debug)]
pub(crate) struct Index {
    entries: Vec<u64>,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Combination(Vec<Values>),
    Hash(RandomState),
}

/// The values of a column that a combination may have.
#[derive(Debug)]
struct Values {
    least: i64,
    /// The number of values, with null, which is the first one.
    count: u64,
    /// The rank of each text, if the order counts. Without it, empty.
    ranks: Vec<u32>,
}

impl Values {
    fn number(&self, value: Option<i64>) -> Option<u64> {
        let Some(value) = value else { return Some(0) };
        let above = value.checked_sub(self.least).and_then(|above| u64::try_from(above).ok())?;
        let above = self.ranks.get(above as usize).map_or(above, |rank| u64::from(*rank));
        above.checked_add(1).filter(|above| *above < self.count)
    }
}

/// The number of combinations of values that columns may have, if a key can be one.
fn combinations(table: &Table, columns: &[usize]) -> Option<u64> {
    let counts = columns.iter().map(|column| count(table, *column).1);
    let all = counts.into_iter().try_fold(1_u64, u64::checked_mul);
    all.filter(|all| *all <= 1 << 32)
}

/// The least value of a column, and how many there may be, with null.
fn count(table: &Table, column: usize) -> (i64, u64) {
    let column = &table.columns[column];
    let (least, most) = match column.kind {
        Kind::Text => (0, column.texts.len() as i64),
        _ => column.range().unwrap_or_default(),
    };
    (least, (most.wrapping_sub(least) as u64).saturating_add(2))
}

impl Key {
    fn of(&self, values: &[Option<i64>]) -> Option<u32> {
        match self {
            Self::Combination(columns) => {
                let mut all = 0;
                for (value, column) in values.iter().zip(columns) {
                    all = all * column.count + column.number(*value)?;
                }
                Some(all as u32) // `combinations` has checked that it fits
            }
            Self::Hash(hasher) => Some(hasher.hash_one(values) as u32),
        }
    }
}

impl Index {
    /// With `in_order`, the entries are in the order of the values, if a key can be a combination.
    pub(super) fn new(table: &Table, columns: &[usize], in_order: bool, spill: &Spill) -> io::Result<Self> {
        let combinations = combinations(table, columns);
        let values = |column: &usize| {
            let ((least, count), texts) = (count(table, *column), &table.columns[*column].texts);
            Values { least, count, ranks: if in_order { texts.ranks() } else { Vec::new() } }
        };
        let key = match combinations {
            Some(_) => Key::Combination(columns.iter().map(values).collect()),
            None => Key::Hash(RandomState::new()),
        };
        let mut entries = Vec::with_capacity(table.rows as usize);
        let mut read = vec![Vec::new(); columns.len()];
        let mut values = vec![None; columns.len()];
        for (block, rows) in table.lengths.iter().enumerate() {
            let mut of_block = Vec::with_capacity(columns.len());
            for (column, read) in columns.iter().zip(&mut read) {
                let Some((block, bytes)) = table.columns[*column].blocks.get(block) else {
                    of_block.push(None); // a column that was not read has no values
                    continue;
                };
                let bytes = match bytes {
                    Bytes::Memory(bytes) => &bytes[..],
                    Bytes::File { at, len } => {
                        spill.read(*at, *len, read)?;
                        &read[..]
                    }
                };
                of_block.push(Some((block, bytes)));
            }
            for row in 0..*rows {
                for (value, block) in values.iter_mut().zip(&of_block) {
                    *value = block.and_then(|(block, bytes)| block.get(bytes, row as usize));
                }
                let key = u64::from(key.of(&values).unwrap_or(0));
                entries.push(key << 32 | (block as u64) << SHIFT | u64::from(row));
            }
        }
        let few = combinations.filter(|all| *all <= (entries.len() as u64 / 4).max(1024));
        match few {
            Some(keys) => entries = counted(&entries, keys as usize),
            None => entries.sort_unstable(),
        }
        if matches!(key, Key::Hash(_)) {
            part_collisions(&mut entries, table, columns, spill)?;
        }
        Ok(Self { entries, key })
    }

    /// Whether an index of these columns can have the order of their values.
    pub(crate) fn has_order(table: &Table, columns: &[usize]) -> bool {
        combinations(table, columns).is_some()
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The row of an entry.
    #[inline]
    pub(crate) fn row(&self, entry: usize) -> u32 {
        self.entries[entry] as u32
    }

    /// The entries whose rows may have these values in the columns.
    pub(crate) fn find(&self, values: &[Option<i64>]) -> std::ops::Range<usize> {
        let Some(key) = self.key.of(values) else { return 0..0 };
        let key = u64::from(key) << 32;
        let begin = self.entries.partition_point(|entry| *entry >> 32 << 32 < key);
        let end = self.entries[begin..].partition_point(|entry| *entry >> 32 << 32 == key);
        begin..begin + end
    }
}

/// Sorts entries with few keys: the places of each are counted first.
fn counted(entries: &[u64], keys: usize) -> Vec<u64> {
    let mut places = vec![0_usize; keys + 1];
    for entry in entries {
        places[(entry >> 32) as usize + 1] += 1;
    }
    for key in 0..keys {
        places[key + 1] += places[key];
    }
    let mut sorted = vec![0; entries.len()];
    for entry in entries {
        let place = &mut places[(entry >> 32) as usize];
        sorted[*place] = *entry;
        *place += 1;
    }
    sorted
}

/// Puts rows of one hash in the order of their values, if these differ.
fn part_collisions(entries: &mut [u64], table: &Table, columns: &[usize], spill: &Spill) -> io::Result<()> {
    let mut failed = None;
    let mut last = Last::default();
    let mut order = |one: &u64, other: &u64| {
        for column in columns {
            let [one, other] = [*one, *other].map(|entry| {
                let value = table.value(*column, entry as u32, spill, &mut last);
                value.unwrap_or_else(|e| {
                    failed = Some(e);
                    None
                })
            });
            match one.cmp(&other) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        Ordering::Equal
    };
    for run in entries.chunk_by_mut(|one, other| one >> 32 == other >> 32).filter(|run| run.len() > 1) {
        let first = run[0];
        if run[1..].iter().any(|entry| order(&first, entry) != Ordering::Equal) {
            run.sort_by(&mut order);
        }
    }
    failed.map_or(Ok(()), Err)
}
