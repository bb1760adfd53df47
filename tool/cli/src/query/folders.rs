//! The files of `hairline export`.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hairline_tables::TableId;
use hairline_tables::sql::PARTITION;

/// The values of the columns `date`, `service` and `trace`.
pub(crate) type Origin = [String; PARTITION.len()];

/// A file with rows of one table of one trace.
#[derive(Clone, Debug)]
pub(crate) struct TableFile {
    /// The folder that was exported to, as the user named it.
    pub(crate) folder: Arc<str>,
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
}

/// The files of a table, in the order of their paths. `None` if the folder does not have the table. Links
/// below the folder are not followed, as in `hairline export`.
///
/// # Errors
/// Fails if a folder cannot be read.
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
        let Ok(origin) = Origin::try_from(values) else { continue };
        for entry in sorted(&place)? {
            let (path, about) = (entry.path(), entry.metadata()?);
            if about.is_file() && path.extension().is_some_and(|extension| extension == "parquet") {
                all.push(TableFile { folder: Arc::clone(&name), path, origin: origin.clone() });
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

/// A part of a path without its encoding: `a%2Fb` is `a/b`. Null of Hive is the empty text.
pub(crate) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_is_read_as_the_name_it_was() {
        assert_eq!(decoded("web"), "web");
        assert_eq!(decoded("a%2Fb%20%C3%A4"), "a/b ä");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%+1%2"), "%zz%+1%2");
        assert_eq!(decoded("%FF"), "%FF", "no UTF-8");
    }
}
