//! The Markdown tables.

use std::fmt::Write;

use hairline_benches::machine;
use serde_json::Value;

use crate::bench::Row;

/// The figure of a peer in a row, if it has one.
fn figure<'v>(peer: &'v Value, row: Row) -> Option<&'v Value> {
    peer["rows"].as_array()?.iter().find(|figure| figure["row"] == row.name())
}

/// `median (min)`, and how many times two clock reads, or nothing.
fn cell(peer: &Value, row: Row) -> String {
    let Some(figure) = figure(peer, row) else { return String::new() };
    let number = |key: &str| figure[key].as_f64().unwrap_or(f64::NAN);
    format!("{:.1} ({:.1})", number("ns_median"), number("ns_min"))
}

/// Median of two clock reads in the peer's process.
fn floor(peer: &Value) -> f64 {
    let first = peer["rows"].as_array().and_then(|rows| rows.first());
    first.and_then(|figure| figure["floor_ns_median"].as_f64()).unwrap_or(f64::NAN)
}

/// Both tables, and how each peer was set up.
pub fn markdown(peers: &[Value]) -> String {
    let mut text = format!("{}\n\nns, median (minimum)\n", machine::processor());
    let events = [Row::Disabled, Row::Scope, Row::Arguments, Row::Instant, Row::Counter];
    table(&mut text, peers, &events, Row::Scope, "scope / two clock reads");
    table(&mut text, peers, &[Row::Span], Row::Span, "span / two clock reads");
    text.push_str(
        "\n| killed after 1,000 thousand scopes | thousands in its file | after recovery |\n|---|---|---|\n",
    );
    for peer in peers.iter().filter(|peer| peer["killed"].is_object()) {
        let (left, repaired) =
            (thousands(&peer["killed"]["in_the_file"]), thousands(&peer["killed"]["after_repair"]));
        let _ = writeln!(text, "| {} | {left} | {repaired} |", peer["peer"].as_str().unwrap_or(""));
    }
    text.push('\n');
    for peer in peers {
        let field = |key: &str| peer[key].as_str().unwrap_or("");
        let _ = writeln!(
            text,
            "* {}: {} {}; {}",
            field("peer"),
            field("package"),
            field("version"),
            field("setup")
        );
    }
    text
}

fn thousands(counts: &Value) -> String {
    let counts = counts.as_array().into_iter().flatten().filter_map(Value::as_u64);
    counts.map(|count| (count / 1000).to_string()).collect::<Vec<_>>().join(", ")
}

/// One table, of the peers that have `main`.
fn table(text: &mut String, peers: &[Value], rows: &[Row], main: Row, ratio: &str) {
    let heads: String = rows.iter().map(|row| format!(" {} |", row.name())).collect();
    let _ = write!(
        text,
        "\n| | two clock reads |{heads} {ratio} |\n|---|---:|{}---:|\n",
        "---:|".repeat(rows.len())
    );
    for peer in peers {
        let Some(median) = figure(peer, main).and_then(|figure| figure["ns_median"].as_f64()) else {
            continue;
        };
        let cells: String = rows.iter().map(|row| format!(" {} |", cell(peer, *row))).collect();
        let name = peer["peer"].as_str().unwrap_or("");
        let floor = floor(peer);
        let _ = writeln!(text, "| {name} | {floor:.1} |{cells} {:.1} |", median / floor);
    }
}
