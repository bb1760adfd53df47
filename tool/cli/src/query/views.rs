//! The tables and views of `hairline export`'s folders, in the SQL of other engines.

use std::ffi::OsString;
use std::path::Path;

use hairline_tables::sql::{Engine, statements};

use crate::outcome::Outcome;
use crate::text::{complain, put, written};

/// What engines take as patterns, each others, and only some can be told not to.
const PATTERN: [char; 6] = ['*', '?', '[', ']', '{', '}'];

/// Prints the statements for an engine.
pub(crate) fn run(engine: Engine, folders: &[OsString]) -> Outcome {
    // Without folders, the statements are for a place that the user puts in.
    let example = [OsString::from("DIR")];
    let folders = if folders.is_empty() { &example } else { folders };
    let mut names = Vec::with_capacity(folders.len());
    for folder in folders {
        let Some(name) = folder.to_str() else {
            complain(format_args!("{}: SQL has no text for this path", Path::new(folder).display()));
            return Outcome::Usage;
        };
        if let Some(sign) = name.chars().find(|c| PATTERN.contains(c)) {
            complain(format_args!(
                "{name}: engines take `{sign}` in a path as a pattern: rename the folder, or ask from inside it with `.`"
            ));
            return Outcome::Usage;
        }
        names.push(name);
    }
    // A folder that is not here, as one in an object store, may have every table.
    let has = |folder: &str, table: hairline_tables::TableId| {
        let folder = Path::new(folder);
        !folder.is_dir() || folder.join(table.table().name).is_dir()
    };
    written(put(statements(engine, &names, has)), "stdout")
}
