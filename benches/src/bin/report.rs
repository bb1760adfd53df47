//! `report`: what Hairline costs on this machine, every figure beside its floor and its budget.
//!
//! ```text
//! cargo run --release -p hairline-benches --bin report [-- --json] [--quick] [--tracing | --convert]
//! ```

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use hairline::Format;
use hairline_benches::row::Row;
use hairline_benches::timing::Effort;
use hairline_benches::{convert, cost, machine, once, spans};

const HELP: &str = "usage: report [--json] [--quick] [--tracing | --convert]
  --json   an array of {name, unit, ns_min, ns_median, floor_ns, ratio, budget, budget_is, judged, within}
  --quick  a tenth of the batches
  --tracing  only the rows for the spans of `tracing`
  --convert  only the rows for traces that are read and converted
exit: 0 measured, whether within budget or not; 1 a session failed; 2 usage";

const FLAGS: [&str; 4] = ["--json", "--quick", "--tracing", "--convert"];

fn rows(quick: bool, only: Option<&str>) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let effort = Effort { batches: if quick { 50 } else { 500 }, operations: 2000 };
    let rounds = if quick { 3 } else { 15 };
    match only {
        Some("--tracing") => return spans::rows(effort),
        Some(_) => return convert::rows(rounds),
        None => {}
    }
    let mut rows = Vec::new();
    // What is paid once comes first: after it this thread is pinned.
    rows.push(once::memory_beside_the_ring()?);
    rows.extend(once::starts(rounds)?);
    for format in [Format::Fxt, Format::TrackEvent] {
        rows.push(once::bytes_per_scope(format)?);
        rows.push(once::writer_throughput(format, rounds.min(5))?);
    }
    // Started by a thread that is not pinned, so that the writer thread is not either.
    let mut costs =
        std::thread::spawn(move || cost::disabled(effort)).join().unwrap_or_else(|_| Ok(Vec::new()))?;
    for format in [Format::Fxt, Format::TrackEvent] {
        let measured = std::thread::spawn(move || cost::enabled(effort, format)).join();
        costs.extend(measured.unwrap_or_else(|_| Ok(Vec::new()))?);
        let measured = std::thread::spawn(move || cost::flight_recorder(effort, format)).join();
        if let Ok(row) = measured {
            costs.push(row?);
        }
    }
    costs.extend(spans::rows(effort)?);
    costs.extend(rows);
    costs.extend(convert::rows(rounds)?);
    Ok(costs)
}

fn print(rows: &[Row], json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        return writeln!(out, "{:#}", serde_json::Value::Array(rows.iter().map(Row::json).collect()));
    }
    writeln!(out, "{}\n\n{}", machine::processor(), Row::heading())?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", row.line()))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, listener] = arguments.as_slice()
        && flag == spans::CHILD
    {
        return match spans::serve(listener) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("report: {listener}: {e}");
                ExitCode::FAILURE
            }
        };
    }
    if let Some(unknown) = arguments.iter().find(|a| !FLAGS.contains(&a.as_str())) {
        eprintln!("{HELP}");
        return if ["--help", "-h"].contains(&unknown.as_str()) {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(2)
        };
    }
    let has = |flag: &str| arguments.iter().any(|a| a == flag);
    let only = ["--tracing", "--convert"].into_iter().find(|flag| has(flag));
    let rows = match rows(has("--quick"), only) {
        Ok(rows) => rows,
        Err(e) => {
            eprintln!("report: {e}");
            return ExitCode::FAILURE;
        }
    };
    match print(&rows, has("--json")) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            eprintln!("report: {e}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
