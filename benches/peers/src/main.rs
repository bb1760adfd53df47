//! Hairline and its peers, measured in one run: the same loop, on the same core, beside the same clock reads.
//!
//! ```text
//! cd benches/peers && cargo run --release [-- --json] [--quick] [--only NAME]
//! ```
//!
//! Each peer has a process of its own, this same binary, since nearly all have global state. README.md says how to read
//! the tables and who is left out.

mod bench;
mod kill;
mod peers;
mod table;

use std::io::{self, ErrorKind, Write};
use std::process::{Command, ExitCode, Stdio};

use hairline_benches::timing::Effort;
use serde_json::{Value, json};

use bench::Bench;
use peers::{Failure, Peer};

const HELP: &str = "usage: hairline-peers [--json] [--quick] [--only NAME]
  --json       for machines
  --quick      a tenth of the batches
  --only NAME  the peers whose names contain this
exit: 0 measured; 1 no peer could be measured; 2 usage";

/// Before the name of the peer that this process is to measure.
const CHILD: &str = "--peer";

fn effort(quick: bool) -> Effort {
    Effort { batches: if quick { 30 } else { 300 }, operations: 2000 }
}

/// Measures one peer, in this process.
fn measure(name: &str, quick: bool) -> Result<Value, Failure> {
    let peer = peers::ALL.iter().find(|peer| peer.name == name).ok_or("no such peer")?;
    let mut bench = Bench::new(effort(quick));
    (peer.cost)(&mut bench)?;
    Ok(bench.finish())
}

/// Records into a file, and is killed.
fn die(name: &str, path: &str) -> Result<bool, Failure> {
    let peer = peers::ALL.iter().find(|peer| peer.name == name).ok_or("no such peer")?;
    let killed = peer.killed.as_ref().ok_or("it writes no file")?;
    (killed.record)(path.as_ref())?;
    Ok(true)
}

/// Measures one peer, in a process of its own.
fn measured(peer: &Peer, quick: bool) -> Result<Value, Failure> {
    let mut child = Command::new(std::env::current_exe()?);
    child
        .args([CHILD, peer.name])
        .args(quick.then_some("--quick"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = child.output()?;
    if !output.status.success() {
        return Err(format!("{}", output.status).into());
    }
    let rows: Value = serde_json::from_slice(&output.stdout)?;
    Ok(json!({
        "peer": peer.name, "package": peer.package, "version": version(peer.package), "setup": peer.setup,
        "rows": rows, "killed": kill::measured(peer)?,
    }))
}

/// The version of a package that this was built with.
fn version(package: &str) -> &'static str {
    let mut lines = include_str!("../Cargo.lock").lines();
    lines.find(|line| *line == format!("name = \"{package}\""));
    lines.next().and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"')).unwrap_or("")
}

fn run(only: &str, quick: bool, as_json: bool) -> io::Result<bool> {
    let mut all = Vec::new();
    for peer in peers::ALL.iter().filter(|peer| peer.name.contains(only)) {
        match measured(peer, quick) {
            Ok(rows) => all.push(rows),
            Err(e) => eprintln!("{}: not measured: {e}", peer.name),
        }
    }
    let text = if as_json { format!("{:#}", Value::Array(all.clone())) } else { table::markdown(&all) };
    writeln!(io::stdout(), "{text}")?;
    Ok(!all.is_empty())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mut json, mut quick, mut only, mut child, mut file) = (false, false, String::new(), None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--quick" => quick = true,
            "--only" => only = arguments.next().unwrap_or_default(),
            CHILD => child = arguments.next(),
            kill::CHILD => (child, file) = (arguments.next(), arguments.next()),
            _ => {
                eprintln!("{HELP}");
                return ExitCode::from(if argument == "--help" || argument == "-h" { 0 } else { 2 });
            }
        }
    }
    let outcome = match (child, file) {
        (Some(name), Some(path)) => die(&name, &path),
        (Some(name), None) => {
            measure(&name, quick).and_then(|rows| Ok(writeln!(io::stdout(), "{rows}").map(|()| true)?))
        }
        _ => run(&only, quick, json).map_err(Failure::from),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) if e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("hairline-peers: {e}");
            ExitCode::FAILURE
        }
    }
}
