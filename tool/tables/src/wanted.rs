//! Which tables and columns a caller wants.

use std::fmt;

use crate::schema::{TABLES, TableId, slice};

/// Whether a category passes.
type Filter = Box<dyn Fn(&str) -> bool + Send>;

/// Which tables and columns a caller wants. The rest is not computed.
///
/// ```
/// use hairline_tables::{TableId, Wanted};
///
/// let wanted = Wanted::nothing().columns(TableId::Slice, &["name", "duration"]).table(TableId::Trace);
/// assert!(wanted.has_table(TableId::Slice) && !wanted.has_table(TableId::Arg));
/// ```
#[derive(Default)]
pub struct Wanted {
    /// A bit for each column, for each table.
    columns: [u64; TABLES.len()],
    category: Option<Filter>,
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Wanted {
    /// No table.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// All columns of all tables.
    #[must_use]
    pub fn everything() -> Self {
        TableId::ALL.into_iter().fold(Self::nothing(), Self::table)
    }

    /// Adds all columns of a table.
    #[must_use]
    pub fn table(mut self, table: TableId) -> Self {
        self.columns[table as usize] = (1 << table.table().columns.len()) - 1;
        self
    }

    /// Adds columns of a table. Names that the table does not have are ignored. Without any name, batches of
    /// the table have rows, but no columns: enough to count them.
    #[must_use]
    pub fn columns(mut self, table: TableId, names: &[&str]) -> Self {
        let all = names.iter().filter_map(|name| table.table().column(name));
        self.columns[table as usize] |= all.fold(COUNTED, |bits, column| bits | 1 << column);
        self
    }

    /// Keeps only slices and instants of which a category passes, with their arguments and flows.
    #[must_use]
    pub fn category(mut self, passes: impl Fn(&str) -> bool + Send + 'static) -> Self {
        self.category = Some(Box::new(passes));
        self
    }

    /// Whether any column of a table is wanted, or the number of its rows.
    #[must_use]
    pub fn has_table(&self, table: TableId) -> bool {
        self.columns[table as usize] != 0
    }

    /// Whether nothing is wanted that events in brief do not say.
    pub(crate) fn takes_briefs(&self) -> bool {
        let others = [TableId::Instant, TableId::Counter, TableId::Flow, TableId::Arg, TableId::Trace];
        others.iter().all(|table| !self.has_table(*table))
    }

    /// Whether one reading may show all that is wanted.
    pub(crate) fn is_known_at_once(&self) -> bool {
        let others = [TableId::Sched, TableId::Sample].iter().all(|table| !self.has_table(*table));
        let is_divided =
            [slice::running, slice::waiting].iter().any(|column| self.has(TableId::Slice, *column));
        self.takes_briefs() && others && !is_divided
    }

    /// Whether a row of `slice` has numbers of events.
    pub(crate) fn has_numbers(&self) -> bool {
        self.has(TableId::Slice, slice::id) || self.has(TableId::Slice, slice::parent)
    }

    pub(crate) fn has(&self, table: TableId, column: usize) -> bool {
        self.columns[table as usize] >> column & 1 == 1
    }

    /// Whether one of several categories, separated by commas, passes.
    pub(crate) fn passes(&self, categories: &str) -> bool {
        let Some(passes) = &self.category else { return true };
        categories.split(',').any(passes)
    }

    pub(crate) fn has_filter(&self) -> bool {
        self.category.is_some()
    }
}

/// The bit of a table whose rows are counted: above those of its columns.
const COUNTED: u64 = 1 << 63;
