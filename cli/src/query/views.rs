//! The tables and views of `hairline export`'s folders, in the SQL of other engines.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use hairline_tables::sql::{Engine, statements};

use crate::outcome::Outcome;
use crate::query::find::in_path;
use crate::text::{complain, put, written};

/// The programs of engines.
const PROGRAMS: [(&str, Engine); 5] = [
    ("duckdb", Engine::DuckDb),
    ("clickhouse", Engine::ClickHouse),
    ("clickhouse-local", Engine::ClickHouse),
    ("datafusion-cli", Engine::DataFusion),
    ("spark-sql", Engine::Spark),
];

/// What engines take as patterns, each others, and only some can be told not to.
const PATTERN: [char; 6] = ['*', '?', '[', ']', '{', '}'];

/// The first engine that is installed, and its program.
pub(crate) fn engine_here() -> Option<(Engine, &'static str)> {
    let here = PROGRAMS.into_iter().find(|(program, _)| in_path(program).is_some());
    here.map(|(program, engine)| (engine, program))
}

/// Whether a path is a folder that `hairline export` wrote.
pub(crate) fn is_exported(path: &OsStr) -> bool {
    Path::new(path).join("trace").is_dir()
}

/// `--views ENGINE [DIR...]`
pub(crate) fn run(arguments: &[OsString]) -> Outcome {
    let names = Engine::ALL.map(Engine::name).join(", ");
    let Some((name, folders)) = arguments.split_first() else {
        complain(format_args!("--views needs an engine: {names}"));
        return Outcome::Usage;
    };
    let Some(engine) = Engine::ALL.into_iter().find(|engine| name == engine.name()) else {
        complain(format_args!("--views: the engines are {names}"));
        return Outcome::Usage;
    };
    // Without folders, the statements are for a place that the user puts in.
    let example = [OsString::from("DIR")];
    print(engine, if folders.is_empty() { &example } else { folders })
}

/// Prints the statements for an engine.
pub(crate) fn print(engine: Engine, folders: &[OsString]) -> Outcome {
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
