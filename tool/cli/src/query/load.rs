//! Reads the tables and columns that a question names.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use hairline_tables::sql::PARTITION;
use hairline_tables::{Batch, Error, Place, Sink, Source, Summary, TableId, Wanted, read, read_at_once};

use crate::query::folders::{Origin, TableFile, decoded};
use crate::query::inputs::{Inputs, name};
use crate::query::kept::{Spill, Table};
use crate::query::parquet;
use crate::query::scan::Scanned;
use crate::text::shown;
use crate::trace::RowSource;

/// The columns of each table that a question names. A table whose rows are only counted has none.
pub(crate) type Named = BTreeMap<TableId, BTreeSet<usize>>;

/// The tables of a question, and what they are read from.
pub(crate) struct Loader {
    pub(crate) tables: [Arc<Scanned>; TableId::ALL.len()],
    pub(crate) inputs: Inputs,
    spill: Arc<Spill>,
    /// What was read so far.
    named: Named,
    has_traces: bool,
    files: HashSet<PathBuf>,
}

/// Rows on their way to the tables.
struct Adding<'l>(&'l Loader);

impl Sink for Adding<'_> {
    fn batch(&mut self, batch: &mut Batch) -> io::Result<()> {
        self.0.tables[batch.table as usize].change(|table| table.add(batch, &self.0.spill))
    }
}

impl Loader {
    /// Creates tables that keep up to `room` bytes in memory, and the rest in a temporary file.
    pub(crate) fn new(inputs: Inputs, room: usize) -> Self {
        let spill = Arc::new(Spill::new(room));
        let tables = TableId::ALL.map(|table| Arc::new(Scanned::new(Table::new(table), &spill)));
        Self { tables, inputs, spill, named: Named::new(), has_traces: false, files: HashSet::new() }
    }

    /// Reads what the plans of the tables need and is not there yet. Returns whether there was anything.
    ///
    /// # Errors
    /// Fails if an input cannot be read.
    pub(crate) fn load(&mut self) -> Result<bool, String> {
        let used = TableId::ALL.iter().zip(&self.tables).filter_map(|(id, table)| Some((*id, table.used()?)));
        let named: Named = used.collect();
        if named != self.named {
            // A better plan may need other columns: the rows so far lack them.
            self.tables.iter().try_for_each(|table| cut(table, 0)).map_err(|e| e.to_string())?;
            (self.has_traces, self.named) = (false, named);
            self.files.clear();
        }
        let named = &self.named.clone();
        for (table, columns) in named {
            for folder in self.inputs.lacking.get(table).into_iter().flatten() {
                let table = table.table().name;
                let what = format!("{folder}: it has no table `{table}`: export with `--table {table}`");
                self.inputs.notes.incomplete(what);
            }
            let need = |table: &mut Table| {
                columns.iter().for_each(|column| table.columns[*column].is_needed = true);
                Ok(())
            };
            self.tables[*table as usize].change(need).map_err(|e| e.to_string())?;
        }
        let mut has_any = false;
        if !self.has_traces && !named.is_empty() {
            self.has_traces = true;
            for path in self.inputs.traces.clone() {
                has_any = true;
                let summary = self.trace(&path, named).map_err(|e| format!("{}: {e}", name(&path)))?;
                self.inputs.notes.summary(&name(&path), &summary);
            }
        }
        for (table, columns) in named {
            for file in self.missing(*table) {
                has_any = true;
                self.file(*table, columns, &file).map_err(|e| format!("{}: {e}", shown(&file.path)))?;
                self.files.insert(file.path);
            }
        }
        Ok(has_any)
    }

    /// The files that a scan may need and that were not read.
    fn missing(&self, table: TableId) -> Vec<TableFile> {
        let scanned = &self.tables[table as usize];
        let own = table.table().columns.len();
        let files = self.inputs.files.get(&table).into_iter().flatten();
        let is_missing = |file: &&TableFile| {
            let place = |column: usize| file.origin.get(column.checked_sub(own)?).cloned();
            !self.files.contains(&file.path) && scanned.may_need(place)
        };
        files.filter(is_missing).cloned().collect()
    }

    fn file(&self, table: TableId, columns: &BTreeSet<usize>, file: &TableFile) -> io::Result<()> {
        parquet::read(&file.path, table, columns, &mut Adding(self))?;
        self.set_place(table, &file.origin)
    }

    fn set_place(&self, table: TableId, origin: &Origin) -> io::Result<()> {
        self.tables[table as usize].change(|table| {
            table.set_place(origin);
            Ok(())
        })
    }

    /// Reads a trace, once if the rows are then certain.
    fn trace(&self, path: &PathBuf, named: &Named) -> Result<Summary, Error> {
        let mut source = RowSource::new(path, self.inputs.opening);
        let wanted = named.iter().fold(Wanted::nothing(), |wanted, (table, columns)| {
            let all = table.table().columns;
            let names: Vec<&str> = columns.iter().filter_map(|column| Some(all.get(*column)?.name)).collect();
            wanted.columns(*table, &names)
        });
        let needs_place =
            named.iter().any(|(table, columns)| columns.range(table.table().columns.len()..).count() > 0);
        let blocks = TableId::ALL.map(|table| self.tables[table as usize].change(|t| Ok(t.lengths.len())));
        let mut summary = None;
        if source.is_repeatable() {
            // Only the second reading knows the name of a trace without a UUID.
            match read_at_once(&mut source, &wanted, &mut Adding(self)) {
                Ok(all) if all.facts.uuid.is_some() || !needs_place => summary = Some(all),
                Ok(_) | Err(Error::NotAtOnce) => {}
                Err(e) => return Err(e),
            }
        }
        let summary = match summary {
            Some(summary) => summary,
            None => {
                for (table, blocks) in self.tables.iter().zip(blocks) {
                    blocks.and_then(|blocks| cut(table, blocks)).map_err(Error::Sink)?;
                }
                read(&mut source, &wanted, tempfile::tempfile, &mut Adding(self))?
            }
        };
        let place = Place::of(&summary.facts, None);
        let origin: [String; PARTITION.len()] = [place.date, decoded(&place.service), place.trace];
        named.keys().try_for_each(|table| self.set_place(*table, &origin)).map_err(Error::Sink)?;
        Ok(summary)
    }
}

/// Removes all rows of a table but those of the first blocks.
fn cut(table: &Scanned, blocks: usize) -> io::Result<()> {
    table.change(|table| {
        table.truncate(blocks);
        Ok(())
    })
}
