//! The folders of traces in an export: where complete files go, and how those of an earlier export leave.
//!
//! * A trace whose UUID says that it is the same has one place. If its date or service changes, all its files
//!   move, also those of tables that are not written now. A hash of events is no proof of that: such a trace
//!   replaces only files at its own place.
//! * The row of the table `trace` says that a trace is exported completely. So it leaves first and comes
//!   last: what an interruption leaves has no row.
//! * No link below the output folder is followed: somebody may have planted it.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use hairline_tables::{Place, TableId};

use crate::export::file::Complete;
use crate::text::shown;

/// The name of the only file in a trace's folder.
const NAME: &str = "part-0.parquet";
/// The name of the row of `trace` while other files are replaced. Engines pass over it.
const ASIDE: &str = ".hairline-row";
/// So often a file is moved again, if a parallel export has removed the empty folder meanwhile.
const ATTEMPTS: u32 = 8;

/// The output folder.
pub(super) struct Places<'p> {
    folder: &'p Path,
    /// The places of all traces with a UUID, once they were needed.
    known: Option<HashMap<String, Vec<Place>>>,
}

impl<'p> Places<'p> {
    pub(super) fn new(folder: &'p Path) -> Self {
        Self { folder, known: None }
    }

    /// Moves the complete files of a trace to their place. `is_known`: whether the trace has a UUID.
    pub(super) fn keep(&mut self, files: Vec<Complete>, place: &Place, is_known: bool) -> io::Result<()> {
        let written: Vec<TableId> = files.iter().map(|file| file.table).collect();
        for table in &written {
            self.make_folder(*table, place)?;
        }
        let others = if is_known { self.others(place)? } else { Vec::new() };
        let aside = self.set_row_aside(&others, place, written.contains(&TableId::Trace))?;
        let (rows, files): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.table == TableId::Trace);
        files.into_iter().try_for_each(|file| self.put(file, place))?;
        for other in &others {
            self.move_all(other, place, &written)?;
        }
        rows.into_iter().try_for_each(|row| self.put(row, place))?;
        if aside {
            let own = self.of(TableId::Trace, place);
            std::fs::rename(own.join(ASIDE), own.join(NAME))?;
        }
        if let Some(known) = self.known.as_mut().filter(|_| is_known) {
            known.insert(place.trace.clone(), vec![place.clone()]);
        }
        Ok(())
    }

    /// The folder of a trace in a table.
    fn of(&self, table: TableId, place: &Place) -> PathBuf {
        self.folder.join(table.table().name).join(place.folder())
    }

    /// Creates the folder of a trace in a table.
    fn make_folder(&self, table: TableId, place: &Place) -> io::Result<PathBuf> {
        let mut path = self.folder.join(table.table().name);
        let made = make(&path);
        place.folder().iter().fold(made, |made, level| {
            made?;
            path.push(level);
            make(&path)
        })?;
        Ok(path)
    }

    /// Moves a file to its place.
    fn put(&self, file: Complete, place: &Place) -> io::Result<()> {
        let Complete { table, mut written, removal: _removal } = file;
        for _ in 1..ATTEMPTS {
            match self.make_folder(table, place) {
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
                Ok(own) => match written.persist(own.join(NAME)) {
                    Err(e) if e.error.kind() == ErrorKind::NotFound => written = e.file,
                    moved => return moved.map(drop).map_err(|e| e.error),
                },
            }
        }
        written.persist(self.of(table, place).join(NAME)).map(drop).map_err(|e| e.error)
    }

    /// Removes the row of an earlier export, or sets it aside if no new one follows. Returns whether one is
    /// aside.
    fn set_row_aside(&self, others: &[Place], place: &Place, is_replaced: bool) -> io::Result<bool> {
        let mut is_aside = false;
        for from in std::iter::once(place).chain(others).filter(|from| self.is_real(TableId::Trace, from)) {
            let row = self.of(TableId::Trace, from).join(NAME);
            if is_replaced || is_aside {
                removed(std::fs::remove_file(row))?;
            } else if std::fs::symlink_metadata(&row).is_ok() {
                std::fs::rename(row, self.make_folder(TableId::Trace, place)?.join(ASIDE))?;
                is_aside = true;
            }
            if !is_aside || from != place {
                // That of an export that was interrupted.
                removed(std::fs::remove_file(self.of(TableId::Trace, from).join(ASIDE)))?;
            }
            if from != place {
                self.remove_folders(TableId::Trace, from);
            }
        }
        Ok(is_aside)
    }

    /// Moves the files of a trace from another place, except those that were written now.
    fn move_all(&self, from: &Place, to: &Place, written: &[TableId]) -> io::Result<()> {
        for table in TableId::ALL.into_iter().filter(|table| *table != TableId::Trace) {
            if !self.is_real(table, from) {
                continue;
            }
            let old = self.of(table, from).join(NAME);
            let new = self.of(table, to).join(NAME);
            if written.contains(&table) || std::fs::symlink_metadata(&new).is_ok() {
                removed(std::fs::remove_file(old))?;
            } else if std::fs::symlink_metadata(&old).is_ok_and(|about| about.is_file()) {
                self.make_folder(table, to)?;
                removed(std::fs::rename(old, new))?;
            }
            self.remove_folders(table, from);
        }
        Ok(())
    }

    /// Removes the empty folders of a trace. One with something else in it stays.
    fn remove_folders(&self, table: TableId, place: &Place) {
        let own = self.of(table, place);
        for folder in own.ancestors().take(3) {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }

    /// Whether all levels of a trace's folder are folders.
    fn is_real(&self, table: TableId, place: &Place) -> bool {
        let own = self.of(table, place);
        own.ancestors().take(4).all(|path| std::fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()))
    }

    /// The other places of a trace.
    fn others(&mut self, place: &Place) -> io::Result<Vec<Place>> {
        if self.known.is_none() {
            self.known = Some(self.all()?);
        }
        let of_trace = self.known.iter().filter_map(|known| known.get(&place.trace)).flatten();
        Ok(of_trace.filter(|known| *known != place).cloned().collect())
    }

    /// Looks for the places of all traces with a UUID.
    fn all(&self) -> io::Result<HashMap<String, Vec<Place>>> {
        let mut all: HashMap<String, Vec<Place>> = HashMap::new();
        for table in TableId::ALL {
            let path = self.folder.join(table.table().name);
            if !std::fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir()) {
                continue;
            }
            for date in folders(&path, "date=")? {
                let path = path.join(format!("date={date}"));
                for service in folders(&path, "service=")? {
                    for trace in folders(&path.join(format!("service={service}")), "trace=")? {
                        if trace.len() != UUID {
                            continue;
                        }
                        let places = all.entry(trace.clone()).or_default();
                        let place = Place { date: date.clone(), service: service.clone(), trace };
                        if !places.contains(&place) {
                            places.push(place);
                        }
                    }
                }
            }
        }
        Ok(all)
    }
}

/// The length of a UUID. A hash is shorter.
const UUID: usize = 36;

/// Creates a folder, if there is none.
fn make(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    if std::fs::symlink_metadata(path)?.is_dir() {
        return Ok(());
    }
    Err(io::Error::new(
        ErrorKind::NotADirectory,
        format!("{} is a link or a file, not a folder", shown(path)),
    ))
}

/// The folders in a folder whose names begin so, without that. Links are passed over, and what another export
/// removes meanwhile.
fn folders(folder: &Path, prefix: &str) -> io::Result<Vec<String>> {
    let mut all = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(all),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(prefix))
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            all.push(rest.to_owned());
        }
    }
    Ok(all)
}

/// That a file is not there any more is no failure.
fn removed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
