//! All statements with which an engine sees folders as tables.

use crate::schema::TableId;
use crate::sql::engine::Engine;
use crate::sql::views;

/// The statements with which an engine sees folders of `hairline export` as tables, followed by the
/// [views](views::ALL). A folder is a path or the URL of an object store. `has` says whether a folder has a
/// table; a table that no folder has is empty.
///
/// ```
/// use hairline_tables::sql::{Engine, statements};
///
/// let text = statements(Engine::DuckDb, &["fleet"], |_, _| true);
/// assert!(text.contains("create or replace view slice as\nselect * from read_parquet('fleet/slice/*"));
/// assert!(text.contains("create or replace view by_name as"));
/// ```
#[must_use]
pub fn statements(engine: Engine, folders: &[&str], has: impl Fn(&str, TableId) -> bool) -> String {
    let mut text = engine.settings().to_owned();
    for table in TableId::ALL {
        let folders: Vec<&str> = folders.iter().copied().filter(|folder| has(folder, table)).collect();
        text += &engine.table(&folders, table);
    }
    for view in views::ALL {
        text += &format!("-- {}\n{}", view.doc, engine.view(view.name, &view.query(engine)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_end_its_quotes() {
        let hostile = "a'; drop table x; --\\";
        for engine in Engine::ALL {
            let text = statements(engine, &[hostile], |_, table| table == TableId::Slice);
            let expected = match engine {
                Engine::DuckDb => "'a''; drop table x; --\\/slice/*",
                Engine::ClickHouse => "'a''; drop table x; --\\\\/slice/*",
                Engine::DataFusion => "'a''; drop table x; --\\/slice/'",
                Engine::Spark => "parquet.`a'; drop table x; --\\/slice`",
            };
            assert!(text.contains(expected), "{engine:?}: {text}");
        }
    }

    #[test]
    fn several_folders_are_one_table() {
        for engine in Engine::ALL {
            let text = statements(engine, &["one", "two/"], |_, table| table == TableId::Slice);
            assert!(text.contains("one/slice") && text.contains("two/slice"), "{engine:?}: {text}");
            assert_eq!(text.matches("union all").count(), 1, "{engine:?}: {text}");
        }
    }
}
