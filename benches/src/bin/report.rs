//! `report`: the costs of Hairline on this machine. Each figure has its floor and its budget beside it.
//!
//! ```text
//! cargo run --release -p hairline-benches --bin report [-- --json] [--quick] [--save FILE] [--compare FILE]
//! [PART...]
//! ```
//!
//! Each part has a process of its own, which runs this same binary. Callsites are numbered in the order of
//! their first hits, and those of one part must not make another part slower.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use hairline::Format;
use hairline_benches::Outcome;
use hairline_benches::row::Row;
use hairline_benches::timing::Effort;
use hairline_benches::{
    around_work, cold, convert, cost, drain_thread, flat_out, growth, heap, instructions, machine, saved,
    service, size, spans, tail, why,
};

const HELP: &str = "usage: report [--json] [--quick] [--save FILE] [--compare FILE] [PART...]
  --json   an array of {name, unit, ns_min, ns_median, floor_ns, ratio, budget, budget_is, judged, within}
  --quick  a tenth of the batches
  --compare FILE  shows the figures beside those of all runs in FILE that were saved on this model of processor
  --save FILE     appends the figures to FILE: a line of JSON with the commit, the date and the machine
parts; all of them but the last unless some are named:
  --events   events that are recorded, and those that are not
  --traced   a scope while Perfetto's tracing service records, beside one in the program's own session; left out where
             tests/oracle/traced.sh has unpacked no service
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
  --instructions  the counts of ci/instructions.sh, which builds its own program
exit: 0 measured, whether within budget or not; 1 a session failed; 2 usage";

const PARTS: [&str; 14] = [
    "--events",
    "--traced",
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
    INSTRUCTIONS,
];
/// The part that only runs if it is named.
const INSTRUCTIONS: &str = "--instructions";

/// What the user asks for.
struct Asked<'a> {
    json: bool,
    quick: bool,
    save: Option<&'a Path>,
    compare: Option<&'a Path>,
    parts: Vec<&'a str>,
}

impl<'a> Asked<'a> {
    /// Returns `None` for wrong arguments, and if the user asks for help.
    fn parse(arguments: &[&'a str]) -> Option<Self> {
        let mut asked = Self { json: false, quick: false, save: None, compare: None, parts: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            match argument {
                "--json" => asked.json = true,
                "--quick" => asked.quick = true,
                "--save" => asked.save = Some(Path::new(*arguments.next()?)),
                "--compare" => asked.compare = Some(Path::new(*arguments.next()?)),
                part => asked.parts.push(PARTS.into_iter().find(|known| *known == part)?),
            }
        }
        if asked.parts.is_empty() {
            asked.parts = PARTS.into_iter().filter(|part| *part != INSTRUCTIONS).collect();
        }
        Some(asked)
    }
}

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
        "--traced" => cost::traced(effort),
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
        INSTRUCTIONS => instructions::rows(),
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
fn print(asked: &Asked<'_>) -> Outcome<()> {
    let Asked { json, quick, save, compare, .. } = *asked;
    let earlier = compare.map(saved::runs).transpose()?; // before minutes of measuring
    let keeps = json || save.is_some() || compare.is_some();
    let mut out = io::stdout().lock();
    if !keeps {
        writeln!(out, "{}\n\n{}", machine::processor(), Row::heading())?;
    }
    let mut all = Vec::new();
    for part in &asked.parts {
        let mut command = Command::new(std::env::current_exe()?);
        command.envs(service::variables());
        command.args([CHILD, part]).args(quick.then_some("--quick")).args(keeps.then_some("--json"));
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{part}: {}", output.status).into());
        }
        if keeps {
            all.extend(serde_json::from_slice::<Vec<serde_json::Value>>(&output.stdout)?);
        } else {
            out.write_all(&output.stdout)?;
            out.flush()?;
        }
    }
    if let Some(runs) = earlier {
        let table = saved::compare(&runs, &all);
        if json { eprint!("{table}") } else { write!(out, "{table}")? }
    }
    if let Some(path) = save {
        saved::save(path, &all)?;
    }
    if json {
        writeln!(out, "{:#}", serde_json::Value::Array(all))?;
    }
    Ok(())
}

/// The argument that makes a process measure one part. The name of the part follows it.
const CHILD: &str = "--part";

fn run(arguments: &[&str]) -> Outcome<bool> {
    match arguments {
        [flag] if *flag == cold::SHORT => cold::short(),
        [flag, listener] if *flag == spans::CHILD => spans::serve(listener)?,
        [flag, part, options @ ..] if *flag == CHILD => {
            serve(part, options.contains(&"--quick"), options.contains(&"--json"))?;
        }
        _ => match Asked::parse(arguments) {
            Some(asked) => print(&asked)?,
            None => return Ok(false),
        },
    }
    Ok(true)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("{HELP}");
            let asks = arguments.iter().any(|argument| ["--help", "-h"].contains(argument));
            if asks { ExitCode::SUCCESS } else { ExitCode::from(2) }
        }
        Err(e) => {
            let is_over = e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe);
            if !is_over {
                eprintln!("report: {}: {e}", arguments.join(" "));
            }
            if is_over { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}
