//! The schema as Markdown, for `docs/guide/schema.md`.

use std::fmt::Write;

use crate::schema::TABLES;

/// All tables and columns as Markdown. `docs/guide/schema.md` has this text, and a test compares both.
#[must_use]
pub fn markdown() -> String {
    let mut out = String::new();
    for table in TABLES {
        let _ = write!(out, "## `{}`\n\n{}\n", table.name, table.doc);
        if let Some(column) = table.sorted_by {
            let _ = writeln!(out, "The rows of a row group are sorted by `{}`.", table.columns[column].name);
        }
        out.push_str("\n| column | type | |\n|---|---|---|\n");
        for column in table.columns {
            let or_null = if column.is_optional { " or null" } else { "" };
            let kind = column.kind.name();
            let _ = writeln!(out, "| `{}` | {kind}{or_null} | {} |", column.name, column.doc);
        }
        out.push('\n');
    }
    out
}
