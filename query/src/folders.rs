//! The files of `hairline export`.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::sync::Arc;

use hairline_tables::TableId;
use hairline_tables::sql::PARTITION;

use crate::place::{Origin, decoded};

/// A file with rows of one table of one trace.
#[derive(Clone, Debug)]
pub(crate) struct TableFile {
    /// The folder that was exported to, as the user named it.
    pub(crate) folder: Arc<str>,
    /// An absolute path.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) origin: Origin,
}

/// The files of a table, in the order of their paths. `None` if the folder does not have the table. Links
/// below the folder are not followed, as in `hairline export`.
///
/// # Errors
/// Fails if a folder cannot be read, or a path is no text.
pub(crate) fn files(folder: &Path, name: &str, table: TableId) -> io::Result<Option<Vec<TableFile>>> {
    let top = folder.join(table.table().name);
    if !fs::symlink_metadata(&top).is_ok_and(|about| about.is_dir()) {
        return Ok(None);
    }
    let mut places = vec![(top, Vec::new())];
    for level in PARTITION {
        let mut inner = Vec::new();
        for (place, values) in places {
            for entry in sorted(&place)? {
                let name = entry.file_name();
                let value = name.to_str().and_then(|name| name.strip_prefix(level)?.strip_prefix('='));
                if let Some(value) = value
                    && entry.file_type()?.is_dir()
                {
                    let value = decoded(value);
                    inner.push((entry.path(), [&values[..], &[value]].concat()));
                }
            }
        }
        places = inner;
    }
    let (mut all, name) = (Vec::new(), Arc::<str>::from(name));
    for (place, values) in places {
        let Ok(origin) = values.try_into().map(Origin) else { continue };
        for entry in sorted(&place)? {
            let (path, about) = (entry.path(), entry.metadata()?);
            if about.is_file() && path.extension().is_some_and(|extension| extension == "parquet") {
                let text = path.to_str().ok_or_else(|| io::Error::other("a path below it is not UTF-8"))?;
                let (folder, path, origin) = (Arc::clone(&name), text.to_owned(), origin.clone());
                all.push(TableFile { folder, path, bytes: about.len(), origin });
            }
        }
    }
    Ok(Some(all))
}

/// The entries of a folder, without hidden ones and those that are not complete.
fn sorted(folder: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.retain(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}
