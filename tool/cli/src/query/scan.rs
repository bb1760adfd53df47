//! The tables of a trace as virtual tables of SQLite.
//!
//! The planner names the conditions that a scan may use, and the scan chooses: rows with given values come
//! from an index, and blocks whose least and largest values do not meet a comparison are passed over. SQLite
//! checks each condition again. For `group by`, `distinct` and `order by` the rows come in groups or in
//! order, so that SQLite need not sort.

// SQLite calls the two types of this file through pointers to their first field, which rusqlite asks of them.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_int};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hairline_tables::Kind;
use hairline_tables::sql::PARTITION;
use rusqlite::types::{Null, ValueRef};
use rusqlite::vtab::{
    Context, DistinctMode, Filters, IndexConstraintOp as Op, IndexInfo, Module, VTab, VTabConnection,
    VTabCursor,
};
use rusqlite::{Connection, Error, Result, ffi};

use crate::query::kept::{Index, Indices, Reader, SHIFT, Spill, Table, Value};

/// A table, and what the planner has chosen of it.
#[derive(Debug)]
pub(crate) struct Scanned(Mutex<State>);

#[derive(Debug)]
struct State {
    table: Arc<Table>,
    indices: Arc<Indices>,
    spill: Arc<Spill>,
    plans: Vec<Arc<Plan>>,
    /// A bit for each column that a plan needs. `None` before the first plan.
    used: Option<u64>,
}

/// How a scan finds its rows. The values of its conditions come in the order of `equal` and `compared`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Plan {
    /// The columns whose values are given.
    equal: Vec<usize>,
    /// The columns of integers that are compared.
    compared: Vec<(usize, Comparison)>,
    /// The columns whose equal values follow one another.
    grouped: Vec<usize>,
    /// Whether they come in the order of the values.
    is_sorted: bool,
    /// Columns of texts that equal a constant: they say of which places a scan may need rows.
    constants: Vec<(usize, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Above,
    Below,
}

impl Scanned {
    /// `spill` has the blocks that are not in memory.
    pub(crate) fn new(table: Table, spill: &Arc<Spill>) -> Self {
        let (table, spill) = (Arc::new(table), Arc::clone(spill));
        let indices = Arc::default();
        Self(Mutex::new(State { table, indices, spill, plans: Vec::new(), used: None }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the plans. No scan uses them any more.
    pub(crate) fn forget_plans(&self) {
        self.state().plans.clear();
    }

    /// The columns that plans need, and those before them did. `None` if there is no plan, so no scan.
    pub(crate) fn used(&self) -> Option<BTreeSet<usize>> {
        let state = self.state();
        let columns = 0..state.table.columns.len();
        state.used.map(|used| columns.filter(|column| used >> column & 1 == 1).collect())
    }

    /// Whether a scan may need rows of a place: with `text` in a column, by a function.
    pub(crate) fn may_need(&self, text: impl Fn(usize) -> Option<String>) -> bool {
        let meets = |(column, value): &(usize, String)| text(*column).is_none_or(|text| text == *value);
        self.state().plans.iter().any(|plan| plan.constants.iter().all(meets))
    }

    /// Changes the table. No scan reads it meanwhile.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Table) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state();
        let table = Arc::get_mut(&mut state.table);
        change(table.ok_or_else(|| io::Error::other("the table is being read"))?)
    }

    fn reader(&self, plan: c_int) -> Option<(Reader, Arc<Plan>)> {
        let state = self.state();
        let plan = state.plans.get(usize::try_from(plan).ok()?)?;
        let State { table, indices, spill, .. } = &*state;
        let reader = Reader::new(Arc::clone(table), Arc::clone(indices), Arc::clone(spill));
        Some((reader, Arc::clone(plan)))
    }
}

/// Makes a table known to a connection.
pub(crate) fn register(connection: &Connection, name: &str, table: &Arc<Scanned>) -> Result<()> {
    const MODULE: Module<'static, Rows> = Module::eponymous_only_module();
    connection.create_module(name, &MODULE, Some(Arc::clone(table)))
}

/// The virtual table.
#[repr(C)]
struct Rows {
    base: ffi::sqlite3_vtab,
    scanned: Arc<Scanned>,
}

// SAFETY: the struct is `repr(C)`, and its first field is the one of SQLite.
unsafe impl<'v> VTab<'v> for Rows {
    type Aux = Arc<Scanned>;
    type Cursor = Scan;

    fn connect(
        _: &mut VTabConnection,
        scanned: Option<&Self::Aux>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let scanned = scanned.ok_or_else(|| failure("a table without rows"))?;
        let column = |(name, kind): (&str, Kind)| {
            let affinity = match kind {
                Kind::Int | Kind::Bool => "integer",
                Kind::Float => "real",
                Kind::Text => "text",
            };
            format!("\"{name}\" {affinity}")
        };
        let state = scanned.state();
        let columns = state.table.columns.iter().map(|c| column((c.name, c.kind)));
        let statement = format!("create table t ({})", columns.collect::<Vec<_>>().join(", "));
        drop(state);
        let statement = CString::new(statement).map_err(failure)?;
        Ok((statement.into(), Self { base: ffi::sqlite3_vtab::default(), scanned: Arc::clone(scanned) }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut state = self.scanned.state();
        let table = Arc::clone(&state.table);
        // The last bit stands for all columns from the 64th on; no table has so many.
        state.used = Some(state.used.unwrap_or(0) | info.col_used());
        let mut plan = Plan::default();
        let (mut equal, mut compared) = (Vec::new(), Vec::new());
        for (n, condition) in info.constraints().enumerate().filter(|(_, condition)| condition.is_usable()) {
            let Ok(column) = usize::try_from(condition.column()) else { continue };
            let Some(kind) = table.columns.get(column).map(|column| column.kind) else { continue };
            let is_equal = condition.operator() == Op::SQLITE_INDEX_CONSTRAINT_EQ;
            let is_exact = kind != Kind::Text || info.collation(n)?.eq_ignore_ascii_case("binary");
            if is_equal && is_exact && kind != Kind::Float && !plan.equal.contains(&column) {
                plan.equal.push(column);
                equal.push(n);
            }
            if let (true, Some(ValueRef::Text(text))) =
                (is_equal && is_exact, info.rhs_value(n).ok().flatten())
                && let (Ok(text), Kind::Text) = (std::str::from_utf8(text), kind)
            {
                plan.constants.push((column, text.to_owned()));
            }
            let comparison = match condition.operator() {
                Op::SQLITE_INDEX_CONSTRAINT_EQ => Some(Comparison::Equal),
                Op::SQLITE_INDEX_CONSTRAINT_GT | Op::SQLITE_INDEX_CONSTRAINT_GE => Some(Comparison::Above),
                Op::SQLITE_INDEX_CONSTRAINT_LT | Op::SQLITE_INDEX_CONSTRAINT_LE => Some(Comparison::Below),
                _ => None,
            };
            if let Some(comparison) = comparison.filter(|_| kind == Kind::Int) {
                plan.compared.push((column, comparison));
                compared.push(n);
            }
        }
        // The place of rows is the same in all rows of a block.
        let places = table.columns.len() - PARTITION.len();
        if plan.equal.iter().all(|column| *column >= places) {
            compared.append(&mut equal);
            plan.compared.extend(plan.equal.drain(..).map(|column| (column, Comparison::Equal)));
        }
        let spread = plan.equal.iter().map(|column| table.spread(*column));
        let spread = spread.fold(1_u64, u64::saturating_mul).min(table.rows).max(1);
        if !plan.equal.is_empty() {
            plan.compared.clear();
            compared.clear();
        }
        for (argument, n) in equal.iter().chain(&compared).enumerate() {
            info.constraint_usage(*n).set_argv_index(argument as c_int + 1);
        }
        #[allow(clippy::cast_precision_loss)] // an estimate
        let rows = ((table.rows / spread) as f64).max(1.0) / 2_f64.powi(compared.len() as i32);
        let is_free = matches!(info.distinct(), DistinctMode::Grouped | DistinctMode::Distinct);
        let is_rising = info.order_bys().all(|by| !by.is_order_by_desc());
        let order = info.order_bys().map(|by| usize::try_from(by.column()).ok());
        let order = order.map(|column| column.filter(|column| table.columns[*column].kind != Kind::Float));
        if let Some(order) = order.collect::<Option<Vec<_>>>()
            && !order.is_empty()
            && (is_free || is_rising && Index::has_order(&table, &order))
            && plan.equal.is_empty()
            && plan.compared.is_empty()
        {
            plan.grouped = order;
            plan.is_sorted = !is_free;
            info.set_order_by_consumed(true);
        }
        info.set_estimated_rows(rows as i64);
        info.set_estimated_cost(rows + 10.0);
        let known = state.plans.iter().position(|known| **known == plan);
        let number = known.unwrap_or(state.plans.len());
        if known.is_none() {
            state.plans.push(Arc::new(plan));
        }
        info.set_idx_num(number as c_int); // a statement has few plans
        Ok(true)
    }

    fn open(&'v mut self) -> Result<Scan> {
        let (base, scanned) = (ffi::sqlite3_vtab_cursor::default(), Arc::clone(&self.scanned));
        Ok(Scan { base, scanned, reader: None, source: Source::ALL, row: None })
    }
}

fn failure(e: impl ToString) -> Error {
    Error::ModuleError(e.to_string())
}

/// A scan of a table.
#[repr(C)]
struct Scan {
    base: ffi::sqlite3_vtab_cursor,
    scanned: Arc<Scanned>,
    /// What it reads, with the number of the plan and what it compares.
    reader: Option<Reading>,
    source: Source,
    /// The current row. `None` after the last one.
    row: Option<u32>,
}

struct Reading {
    number: c_int,
    plan: Arc<Plan>,
    values: Reader,
    /// What columns are compared with.
    bounds: Vec<(usize, Comparison, i64)>,
}

/// Where the rows after the current one come from.
enum Source {
    /// Rows of `block` before `end`, a number of a row, then the next blocks.
    Blocks {
        block: usize,
        end: u32,
    },
    Index {
        index: Arc<Index>,
        entries: Range<usize>,
    },
    /// All entries of an index. `entry` is the current one, and one before the first at the begin.
    Groups {
        index: Arc<Index>,
        entry: usize,
    },
}

impl Source {
    const ALL: Self = Self::Blocks { block: 0, end: 0 };
    const NONE: Self = Self::Blocks { block: usize::MAX, end: 0 };
}

// SAFETY: the struct is `repr(C)`, and its first field is the one of SQLite.
unsafe impl VTabCursor for Scan {
    fn filter(&mut self, number: c_int, _: Option<&str>, values: &Filters<'_>) -> Result<()> {
        if self.reader.as_ref().is_none_or(|reading| reading.number != number) {
            let (values, plan) = self.scanned.reader(number).ok_or_else(|| failure("no such plan"))?;
            self.reader = Some(Reading { number, plan, values, bounds: Vec::new() });
        }
        let Some(reading) = &mut self.reader else { return Ok(()) };
        self.source = reading.source(values)?;
        self.row = None;
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        let Some(reading) = &self.reader else { return Ok(()) };
        self.row = match &mut self.source {
            Source::Blocks { block, end } => match self.row.map(|row| row + 1).filter(|row| row < end) {
                Some(row) => Some(row),
                None => {
                    let found = reading.next_block(*block);
                    found.map(|(next, rows)| {
                        let first = (next as u32) << SHIFT; // below 2^32
                        (*block, *end) = (next + 1, first + rows);
                        first
                    })
                }
            },
            Source::Index { index, entries } => entries.next().map(|entry| index.row(entry)),
            Source::Groups { index, entry } => {
                *entry = entry.wrapping_add(1);
                (*entry < index.len()).then(|| index.row(*entry))
            }
        };
        Ok(())
    }

    fn eof(&self) -> bool {
        self.row.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let (Some(reading), Some(row)) = (&self.reader, self.row) else { return context.set_result(Null) };
        let value = match &self.source {
            Source::Groups { index, entry } => reading.values.value_in_order(column as usize, index, *entry),
            _ => reading.values.value(column as usize, row),
        };
        match value.map_err(failure)? {
            Value::Null => context.set_result(Null),
            Value::Int(value) => context.set_result(value),
            Value::Float(value) => context.set_result(value),
            Value::Text(text) => context.set_result(text),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(i64::from(self.row.unwrap_or(0)))
    }
}

impl Reading {
    /// Where the rows for these values come from.
    fn source(&mut self, values: &Filters<'_>) -> Result<Source> {
        let (plan, table) = (&self.plan, &self.values.table);
        let given = || values.iter().take(plan.equal.len() + plan.compared.len());
        if given().any(|value| value == ValueRef::Null) {
            return Ok(Source::NONE); // nothing equals null
        }
        if !plan.grouped.is_empty() {
            let index = self.values.index(&plan.grouped, plan.is_sorted).map_err(failure)?;
            return Ok(Source::Groups { index, entry: usize::MAX });
        }
        self.bounds.clear();
        if !plan.equal.is_empty() {
            // A value of another type may equal one of this column's: SQLite knows.
            let keys = given().zip(&plan.equal).map(|(value, column)| {
                let column = &table.columns[*column];
                match (value, column.kind) {
                    (ValueRef::Integer(int), Kind::Int | Kind::Bool) => Some(Some(int)),
                    (ValueRef::Text(text), Kind::Text) => {
                        let text = std::str::from_utf8(text).ok()?;
                        Some(column.texts.find(text).map(i64::from))
                    }
                    _ => None,
                }
            });
            let Some(keys) = keys.collect::<Option<Vec<_>>>() else {
                return Ok(Source::ALL);
            };
            if keys.contains(&None) {
                return Ok(Source::NONE); // no row has such a text
            }
            let index = self.values.index(&plan.equal, false).map_err(failure)?;
            let entries = index.find(&keys);
            return Ok(Source::Index { index, entries });
        }
        for (value, (column, comparison)) in given().zip(&plan.compared) {
            match value {
                ValueRef::Integer(int) => self.bounds.push((*column, *comparison, int)),
                ValueRef::Text(text) if table.columns[*column].kind == Kind::Text => {
                    let text = std::str::from_utf8(text).ok();
                    let code = text.and_then(|text| table.columns[*column].texts.find(text));
                    let Some(code) = code else { return Ok(Source::NONE) };
                    self.bounds.push((*column, *comparison, i64::from(code)));
                }
                _ => {}
            }
        }
        Ok(Source::ALL)
    }

    /// The next block from this one on that may have rows, and the number of its rows.
    fn next_block(&self, from: usize) -> Option<(usize, u32)> {
        let table = &self.values.table;
        let may_have = |block: &usize| {
            self.bounds.iter().all(|(column, comparison, bound)| {
                let Some((values, _)) = table.columns[*column].blocks.get(*block) else { return true };
                !values.is_null()
                    && match comparison {
                        Comparison::Equal => values.least <= *bound && *bound <= values.most,
                        Comparison::Above => values.most >= *bound,
                        Comparison::Below => values.least <= *bound,
                    }
            })
        };
        let block = (from..table.lengths.len()).find(may_have)?;
        Some((block, table.lengths[block]))
    }
}
