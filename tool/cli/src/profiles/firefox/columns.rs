//! The columns of a table, and times in them.

use std::io::{self, Write};

use serde_json::Value;

#[allow(clippy::cast_precision_loss)] // times are relative to the first one
pub(super) fn milliseconds(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Writes a column of a table: `"name":[...],`.
pub(super) fn column(
    output: &mut dyn Write,
    name: &str,
    values: impl Iterator<Item = Value>,
) -> io::Result<()> {
    write!(output, r#""{name}":["#)?;
    for (n, value) in values.enumerate() {
        let comma = if n > 0 { "," } else { "" };
        write!(output, "{comma}{value}")?;
    }
    output.write_all(b"],")
}
