//! Runs the fuzzer: feeds damaged traces to the decoders until one fails.
//!
//! ```text
//! fuzz [fxt|track-event|trace-event-json|all] [--inputs N] [--seed S] [--from I]
//! ```
//!
//! The same seed makes the same inputs. `--from` is the number of the first input.

#[path = "../tests/fuzzer/mod.rs"]
mod fuzzer;

use std::process::ExitCode;
use std::time::Instant;

use fuzzer::{Format, Fxt, TraceEventJson, TrackEvent};

#[derive(Debug)]
struct Options {
    /// The one format to fuzz; `None` for all.
    only: Option<String>,
    inputs: u64,
    seed: u64,
    from: u64,
}

fn options() -> Option<Options> {
    let mut options = Options { only: None, inputs: 100_000, seed: 1, from: 0 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next()?.parse().ok();
        match argument.as_str() {
            "fxt" | "track-event" | "trace-event-json" => options.only = Some(argument),
            "all" => options.only = None,
            "--inputs" => options.inputs = number()?,
            "--seed" => options.seed = number()?,
            "--from" => options.from = number()?,
            _ => return None,
        }
    }
    Some(options)
}

/// Fuzzes a format if it is selected. Returns true unless a failure was found.
fn fuzz<F: Format>(options: &Options) -> bool {
    if options.only.as_deref().is_some_and(|only| only != F::NAME) {
        return true;
    }
    let began = Instant::now();
    let result = fuzzer::run::<F>(options.seed, options.from..options.from.saturating_add(options.inputs));
    match &result {
        Ok(tally) => println!("{}, seed {}: {tally}, {:.1?}", F::NAME, options.seed, began.elapsed()),
        Err(failure) => eprintln!("{failure}"),
    }
    result.is_ok()
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("usage: fuzz [fxt|track-event|trace-event-json|all] [--inputs N] [--seed S] [--from I]");
        return ExitCode::from(2);
    };
    let all = [fuzz::<Fxt>(&options), fuzz::<TrackEvent>(&options), fuzz::<TraceEventJson>(&options)];
    if all == [true; 3] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
