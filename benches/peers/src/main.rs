//! Hairline and its peers, measured in one run: in the same loop, on the same core, beside the same clock
//! reads.
//!
//! ```text
//! cd benches/peers && cargo run --release [-- --json] [--quick] [--rows] [--only NAME] [--scopes N]
//! ```
//!
//! Each peer has its own process, which runs this same binary, since nearly all peers have global state.
//! README.md explains the tables and names the peers that are left out.

mod anywhere;
mod bench;
mod both;
mod child;
mod ends;
mod flood;
mod footprint;
mod kill;
mod peer;
mod peers;
mod scopes;
mod short;
mod table;
mod threads;

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use hairline_benches::timing::Effort;
use serde_json::{Value, json};

use bench::Bench;
use peer::{Failure, Peer};

const HELP: &str = "usage: hairline-peers [--json] [--quick] [--rows] [--only NAME] [--scopes N]
       hairline-peers --both TRACE
  --json       for machines
  --quick      a tenth of the batches and of the flood
  --rows       the tables of one thread alone
  --only NAME  the peers whose names contain this
  --scopes N   scopes of a flood (10,000,000)
  --both TRACE measures nothing: Perfetto's tracing service records the same events of Hairline and of
               perfetto-sdk into this trace; prints the pids of both
exit: 0 measured; 1 no peer could be measured; 2 usage";

/// The first argument of a process that measures a peer. The name of the peer follows.
const CHILD: &str = "--peer";

/// The options of the command.
#[derive(Default)]
struct Options {
    json: bool,
    quick: bool,
    rows: bool,
    only: String,
    scopes: Option<u32>,
}

impl Options {
    fn scopes(&self) -> u32 {
        self.scopes.unwrap_or(if self.quick { 1_000_000 } else { 10_000_000 })
    }

    /// Returns `None` for wrong arguments, and if the user asks for help.
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--json" => options.json = true,
                "--quick" => options.quick = true,
                "--rows" => options.rows = true,
                "--only" => options.only = arguments.next()?,
                "--scopes" => options.scopes = Some(arguments.next()?.replace([',', '_'], "").parse().ok()?),
                _ => return None,
            }
        }
        Some(options)
    }
}

fn effort(quick: bool) -> Effort {
    Effort { batches: if quick { 30 } else { 300 }, operations: 2000 }
}

/// Runs the task of a child process, if this is one: measures a peer, floods, or records until it is killed.
fn as_child(arguments: &[String]) -> Option<Result<Value, Failure>> {
    let peer = |name: &String| peers::ALL.iter().find(|peer| peer.name == name).ok_or("no such peer");
    Some(match arguments {
        [what, name, options @ ..] if what == CHILD => peer(name).map_err(Failure::from).and_then(|peer| {
            let has = |option: &str| options.iter().any(|given| given == option);
            let mut bench = Bench::new(effort(has("--quick")), has("--rows"));
            (peer.cost)(&mut bench)?;
            Ok(bench.finish())
        }),
        [what, name] if what == both::CHILD => both::events(name).map(|()| Value::Null),
        [what, path] if what == "--both" => both::record(path.as_ref()).map(|pids| json!(pids)),
        [what, name, path] if what == short::CHILD => {
            peer(name).map_err(Failure::from).and_then(|peer| short::record(peer, path.as_ref()))
        }
        [what, name, path] if what == kill::CHILD => peer(name).map_err(Failure::from).and_then(|peer| {
            (peer.killed.as_ref().ok_or("it writes no file")?.record)(path.as_ref())?;
            Ok(Value::Null)
        }),
        [what, name, number, path, scopes] if what == flood::CHILD => peer(name)
            .map_err(Failure::from)
            .and_then(|peer| flood::flood(peer, number.parse()?, Path::new(path), scopes.parse()?)),
        _ => return None,
    })
}

/// Measures one peer, in its own processes.
fn measured(peer: &Peer, options: &Options) -> Result<Value, Failure> {
    let mut child = child::command()?;
    let (quick, rows) = (options.quick.then_some("--quick"), options.rows.then_some("--rows"));
    let costs = child::said(child.args([CHILD, peer.name]).args(quick).args(rows))?;
    let mut all = json!({
        "peer": peer.name, "package": peer.package, "version": version(peer.package), "setup": peer.setup,
    });
    if !options.rows {
        all["short"] = short::measured(peer)?;
        all["floods"] = flood::measured(peer, options.scopes(), options.quick).into();
        all["killed"] = kill::measured(peer)?.into();
    }
    if let (Value::Object(all), Value::Object(costs)) = (&mut all, costs) {
        all.extend(costs);
    }
    Ok(all)
}

/// The version of a package in Cargo.lock.
fn version(package: &str) -> &'static str {
    let mut lines = include_str!("../Cargo.lock").lines();
    lines.find(|line| *line == format!("name = \"{package}\""));
    lines.next().and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"')).unwrap_or("")
}

fn run(options: &Options) -> io::Result<bool> {
    let mut all = Vec::new();
    for peer in peers::ALL.iter().filter(|peer| peer.name.contains(&options.only)) {
        match measured(peer, options) {
            Ok(figures) => all.push(figures),
            Err(e) => eprintln!("{}: not measured: {e}", peer.name),
        }
    }
    let text = if options.json { format!("{:#}", Value::Array(all.clone())) } else { table::markdown(&all) };
    writeln!(io::stdout(), "{text}")?;
    Ok(!all.is_empty())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match as_child(&arguments) {
        Some(outcome) => outcome.and_then(|figures| Ok(writeln!(io::stdout(), "{figures}").map(|()| true)?)),
        None => match Options::parse(arguments.into_iter()) {
            Some(options) => run(&options).map_err(Failure::from),
            None => {
                eprintln!("{HELP}");
                let asked = std::env::args().any(|argument| argument == "--help" || argument == "-h");
                return ExitCode::from(if asked { 0 } else { 2 });
            }
        },
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Options> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_flood_has_ten_million_scopes_or_a_tenth_if_quick_or_the_given_number() {
        let scopes = |line: &str| parse(line).map(|options| options.scopes());
        assert_eq!(scopes("--only x"), Some(10_000_000));
        assert_eq!(scopes("--quick"), Some(1_000_000));
        assert_eq!(scopes("--quick --scopes 20,000"), Some(20_000));
        assert_eq!(scopes("--scopes many"), None);
        assert_eq!(scopes("--fast"), None);
    }
}
