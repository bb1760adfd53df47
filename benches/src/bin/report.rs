//! `report`: the costs of Hairline on this machine. Each figure has its floor and its budget beside it.
//!
//! ```text
//! cargo run --release -p hairline-benches --bin report [-- --json] [--quick] [PART...]
//! ```
//!
//! Each part has a process of its own, which runs this same binary. Callsites are numbered in the order of
//! their first hits, and those of one part must not make another part slower.

use std::io::{self, ErrorKind, Write};
use std::process::{Command, ExitCode, Stdio};

use hairline::Format;
use hairline_benches::Outcome;
use hairline_benches::row::Row;
use hairline_benches::timing::Effort;
use hairline_benches::{
    around_work, cold, convert, cost, drain_thread, flat_out, growth, heap, machine, size, spans, tail, why,
};

const HELP: &str = "usage: report [--json] [--quick] [PART...]
  --json   an array of {name, unit, ns_min, ns_median, floor_ns, ratio, budget, budget_is, judged, within}
  --quick  a tenth of the batches
parts; all of them unless some are named:
  --events   events that are recorded, and those that are not
  --work     events around work that keeps the processor busy
  --heap     calls of an allocator in a `Heap`
  --tracing  spans of `tracing`
  --size     bytes of a scope, memory beside the ring
  --cold     start, first events, the next chunk, the first pass over the ring
  --tail     percentiles of single events
  --flat-out two threads that only record, into a file
  --writer   the drain thread's CPU time, and its wake-ups
  --growth   many threads, many callsites
  --convert  traces that are read and converted
  --why      a context switch with scheduling, a sample of a stack
exit: 0 measured, whether within budget or not; 1 a session failed; 2 usage";

const OPTIONS: [&str; 2] = ["--json", "--quick"];
const PARTS: [&str; 12] = [
    "--events",
    "--work",
    "--heap",
    "--tracing",
    "--size",
    "--cold",
    "--tail",
    "--flat-out",
    "--writer",
    "--growth",
    "--convert",
    "--why",
];

fn events(effort: Effort) -> Outcome<Vec<Row>> {
    let mut rows = machine::aside(|| cost::disabled(effort))?;
    for format in [Format::Fxt, Format::TrackEvent] {
        // Started by a thread that is not pinned, so that the drain thread is not either.
        rows.extend(machine::aside(|| cost::enabled(effort, format))?);
        rows.push(machine::aside(|| cost::flight_recorder(effort, format))?);
        rows.push(machine::aside(|| cost::with_locations(effort, format))?);
        rows.push(machine::aside(|| cost::with_cpu_time(effort, format))?);
    }
    Ok(rows)
}

fn around_work(effort: Effort) -> Outcome<Vec<Row>> {
    let mut rows = machine::aside(|| around_work::rows(effort, Format::Fxt))?;
    rows.extend(machine::aside(|| around_work::rows(effort, Format::TrackEvent))?);
    Ok(rows)
}

fn sizes() -> Outcome<Vec<Row>> {
    let memory = size::memory_beside_the_ring()?; // first, since later sessions reuse memory of earlier ones
    Ok(vec![
        size::bytes_per_scope(Format::Fxt, false)?,
        size::bytes_per_scope(Format::TrackEvent, false)?,
        size::bytes_per_scope(Format::TrackEvent, true)?,
        memory,
    ])
}

fn rows(part: &str, quick: bool) -> Outcome<Vec<Row>> {
    let effort = Effort { batches: if quick { 50 } else { 500 }, operations: 2000 };
    let rounds = if quick { 3 } else { 15 };
    match part {
        "--events" => events(effort),
        "--work" => around_work(effort),
        "--heap" => Ok(machine::aside(|| heap::heap(effort))?),
        "--tracing" => spans::rows(effort),
        "--size" => sizes(),
        "--cold" => Ok(cold::rows(rounds)?),
        "--tail" => tail::rows(rounds),
        "--flat-out" => flat_out::rows(rounds),
        "--writer" => drain_thread::rows(rounds),
        "--growth" => growth::rows(rounds),
        "--convert" => convert::rows(rounds),
        _ => why::rows(rounds),
    }
}

/// Measures one part in this process. Prints its rows as a table or as JSON.
fn serve(part: &str, quick: bool, json: bool) -> Outcome<()> {
    let rows = rows(part, quick)?;
    let mut out = io::stdout().lock();
    if json {
        write!(out, "{}", serde_json::Value::Array(rows.iter().map(Row::json).collect()))?;
    } else {
        rows.iter().try_for_each(|row| writeln!(out, "{}", row.line()))?;
    }
    Ok(())
}

/// Runs each part in its own process, and prints all rows.
fn print(parts: &[&str], quick: bool, json: bool) -> Outcome<()> {
    let mut out = io::stdout().lock();
    if !json {
        writeln!(out, "{}\n\n{}", machine::processor(), Row::heading())?;
    }
    let mut all = Vec::new();
    for part in parts {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([CHILD, part]).args(quick.then_some("--quick")).args(json.then_some("--json"));
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{part}: {}", output.status).into());
        }
        if json {
            all.extend(serde_json::from_slice::<Vec<serde_json::Value>>(&output.stdout)?);
        } else {
            out.write_all(&output.stdout)?;
            out.flush()?;
        }
    }
    if json {
        writeln!(out, "{:#}", serde_json::Value::Array(all))?;
    }
    Ok(())
}

/// The argument that makes a process measure one part. The name of the part follows it.
const CHILD: &str = "--part";

fn run(arguments: &[&str]) -> Outcome<()> {
    let has = |flag: &str| arguments.contains(&flag);
    let (quick, json) = (has("--quick"), has("--json"));
    match arguments {
        [flag] if *flag == cold::SHORT => {
            cold::short();
            Ok(())
        }
        [flag, listener] if *flag == spans::CHILD => spans::serve(listener),
        [flag, part, ..] if *flag == CHILD => serve(part, quick, json),
        _ => {
            let named: Vec<&str> = PARTS.into_iter().filter(|part| has(part)).collect();
            print(if named.is_empty() { &PARTS } else { &named }, quick, json)
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_child = arguments.first().is_some_and(|first| [CHILD, cold::SHORT, spans::CHILD].contains(first));
    let unknown = arguments.iter().find(|a| !OPTIONS.contains(a) && !PARTS.contains(a));
    if let Some(unknown) = unknown.filter(|_| !is_child) {
        eprintln!("{HELP}");
        return if ["--help", "-h"].contains(unknown) { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let is_over = e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe);
            if !is_over {
                eprintln!("report: {}: {e}", arguments.join(" "));
            }
            if is_over { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}
