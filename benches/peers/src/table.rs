//! The Markdown tables.

use std::fmt::Write;

use hairline_benches::machine;
use serde_json::Value;

use crate::bench::Row;

/// A number, if there is one.
fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or(f64::NAN)
}

fn name(peer: &Value) -> &str {
    peer["peer"].as_str().unwrap_or("")
}

/// A list of a peer.
fn list<'v>(peer: &'v Value, key: &str) -> &'v [Value] {
    peer[key].as_array().map_or(&[], Vec::as_slice)
}

/// The figure of a peer in a row, if there is one.
fn figure(peer: &Value, row: Row) -> Option<&Value> {
    list(peer, "rows").iter().find(|figure| figure["row"] == row.name())
}

/// Returns all tables, and the setup of each peer.
pub fn markdown(peers: &[Value]) -> String {
    let mut text = format!("{}\n", machine::processor());
    let events = [Row::Disabled, Row::Scope, Row::Arguments, Row::Instant, Row::Counter];
    let build = if cfg!(debug_assertions) { ", debug build" } else { "" };
    let title = |what: &str| format!("## One thread{what}{build}\n\nns, median (minimum)");
    one_thread(&mut text, peers, &title(""), &events, Row::Scope);
    let more = [Row::Named, Row::Late, Row::Nested];
    one_thread(&mut text, peers, &title(", more than a plain scope"), &more, Row::Late);
    let anywhere = title(", 64 callsites at random");
    one_thread(&mut text, peers, &anywhere, &[Row::Anywhere], Row::Anywhere);
    one_thread(&mut text, peers, &title(", spans of `tracing`"), &[Row::Span], Row::Span);
    short(&mut text, peers);
    two_threads(&mut text, peers);
    floods(&mut text, peers);
    footprint(&mut text, peers);
    killed(&mut text, peers);
    text.push_str("\n## How each is set up\n\n");
    for peer in peers {
        let field = |key: &str| peer[key].as_str().unwrap_or("");
        let _ =
            writeln!(text, "* {}: {} {}; {}", name(peer), field("package"), field("version"), field("setup"));
    }
    text
}

/// Writes a table under its title, or nothing if there are no rows. The first column has names, the others
/// numbers.
fn section(text: &mut String, title: &str, columns: &[&str], rows: &str) {
    if !rows.is_empty() {
        let heads: String = columns.iter().map(|column| format!(" {column} |")).collect();
        let _ = write!(text, "\n{title}\n\n| |{heads}\n|---|{}\n{rows}", "---:|".repeat(columns.len()));
    }
}

/// The table of the peers that have the row `main`.
fn one_thread(text: &mut String, peers: &[Value], title: &str, rows: &[Row], main: Row) {
    let ratio = format!("{} / two clock reads", main.name());
    let names = rows.iter().map(|row| row.name());
    let columns: Vec<&str> = ["two clock reads"].into_iter().chain(names).chain([ratio.as_str()]).collect();
    let mut table = String::new();
    for peer in peers {
        let Some(measured) = figure(peer, main) else { continue };
        let cell = |row: &Row| {
            let of = |figure| format!("{:.1} ({:.1})", number(figure, "ns_median"), number(figure, "ns_min"));
            format!(" {} |", figure(peer, *row).map_or_else(String::new, of))
        };
        let cells: String = rows.iter().map(cell).collect();
        let floor = number(measured, "floor_ns_median");
        let ratio = number(measured, "ns_median") / floor;
        let _ = writeln!(table, "| {} | {floor:.1} |{cells} {ratio:.2} |", name(peer));
    }
    section(text, title, &columns, &table);
}

fn short(text: &mut String, peers: &[Value]) {
    let mut table = String::new();
    for peer in peers.iter().filter(|peer| peer["short"].is_object()) {
        let [median, min] = ["ms_median", "ms_min"].map(|key| number(&peer["short"], key));
        let _ = writeln!(table, "| {} | {median:.2} ({min:.2}) |", name(peer));
    }
    let title =
        "## Short programs\n\nFrom the peer's start to a whole file with one scope; median (minimum) of 40";
    section(text, title, &["ms"], &table);
}

fn two_threads(text: &mut String, peers: &[Value]) {
    let columns = [
        "scope on one, ns",
        "on each of two",
        "throughput of two / one",
        "by the minima",
        "two clock reads: two / one",
        "arithmetic: two / one",
    ];
    let mut table = String::new();
    for peer in peers {
        for row in list(peer, "threads") {
            let scope = &row["operation"];
            let times = |which: &str| {
                let [median, min] = ["median", "min"].map(|of| number(scope, &format!("{which}_ns_{of}")));
                format!("{median:.1} ({min:.1})")
            };
            let _ = writeln!(
                table,
                "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} |",
                name(peer),
                times("alone"),
                times("each"),
                number(scope, "gain_median"),
                number(scope, "gain_of_minima"),
                number(&row["floor"], "gain_median"),
                number(&row["arithmetic"], "gain_median"),
            );
        }
    }
    let title = "## Two threads\n\nEach on its own core, at once; ns, median (minimum)";
    section(text, title, &columns, &table);
}

/// One figure of all runs of a flood, sorted.
fn column(runs: &[Value], key: &str) -> Vec<f64> {
    let mut column: Vec<f64> = runs.iter().filter_map(|run| run[key].as_f64()).collect();
    column.sort_by(f64::total_cmp);
    column
}

fn floods(text: &mut String, peers: &[Value]) {
    let scopes =
        peers.iter().flat_map(|peer| list(peer, "floods")).find_map(|flood| flood["scopes"].as_u64());
    let Some(scopes) = scopes else { return };
    let columns = [
        "ns a scope",
        "of the scope row",
        "scopes lost",
        "bytes a scope",
        "peak memory, MiB",
        "complete after, s",
        "a plain write of the file, s",
    ];
    let title = format!(
        "## Flood\n\n{scopes} scopes from one thread, as fast as they come; the fastest run, \
         the most that was lost"
    );
    let mut table = String::new();
    for peer in peers {
        let row = figure(peer, Row::Scope).or_else(|| figure(peer, Row::Span));
        for flood in list(peer, "floods") {
            let runs = list(flood, "runs");
            let least = |key: &str| column(runs, key).first().copied();
            let most = |key: &str| column(runs, key).last().copied().unwrap_or(f64::NAN);
            let ns = least("ns").unwrap_or(f64::NAN);
            let ratio = row.map_or(f64::NAN, |row| ns / number(row, "ns_min"));
            // For each scope that was not lost. The head and the tail of the stream are included.
            let each = |run: &Value| number(run, "bytes") / (scopes as f64 - number(run, "lost"));
            let bytes = runs.last().map_or(f64::NAN, each);
            let plain = least("plain_write_s").map_or_else(String::new, |s| format!("{s:.2}"));
            let _ = writeln!(
                table,
                "| {}: {} | {ns:.1} | {ratio:.2} | {} | {bytes:.1} | {:.0} | {:.2} | {plain} |",
                name(peer),
                flood["name"].as_str().unwrap_or(""),
                most("lost"),
                most("peak_memory") / f64::from(1 << 20),
                least("complete_s").unwrap_or(f64::NAN),
            );
        }
    }
    section(text, &title, &columns, &table);
}

fn footprint(text: &mut String, peers: &[Value]) {
    let Some(some) = peers.iter().map(|peer| list(peer, "footprint")).find(|rows| !rows.is_empty()) else {
        return;
    };
    let every = some.iter().map(|row| format!("a scope every {} instructions", row["instructions"]));
    let columns: Vec<String> =
        every.flat_map(|every| [every, "two clock reads as often".to_owned()]).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = String::new();
    for peer in peers.iter().filter(|peer| !list(peer, "footprint").is_empty()) {
        let rows = list(peer, "footprint")
            .iter()
            .flat_map(|row| ["loss_median", "floor_loss_median"].map(|key| number(row, key)));
        let cells: String = rows.map(|loss| format!(" {:.1} % |", loss * 100.0)).collect();
        let _ = writeln!(table, "| {} |{cells}", name(peer));
    }
    let title = "## What a walk through the L2 cache loses\n\nTime above that without scopes, median";
    section(text, title, &columns, &table);
}

fn killed(text: &mut String, peers: &[Value]) {
    let columns = ["thousands in its file", "after recovery"];
    let mut table = String::new();
    for peer in peers.iter().filter(|peer| peer["killed"].is_object()) {
        let thousands = |key: &str| {
            let counts = list(&peer["killed"], key).iter().filter_map(Value::as_u64);
            counts.map(|count| (count / 1000).to_string()).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} |",
            name(peer),
            thousands("in_the_file"),
            thousands("after_repair")
        );
    }
    let title = "## Killed\n\nby SIGKILL right after 1,000 thousand scopes; five times";
    section(text, title, &columns, &table);
}
