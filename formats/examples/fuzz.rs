//! Feeds damaged traces to the decoders until one does what it must not.
//!
//! ```text
//! fuzz [fxt|track-event|all] [--inputs N] [--seed S] [--from I]
//! ```
//!
//! The same seed makes the same inputs. They are numbered; `--from` begins at another than the first.

#[path = "../tests/fuzzer/mod.rs"]
mod fuzzer;

use std::process::ExitCode;
use std::time::Instant;

use fuzzer::{Format, Fxt, TrackEvent};

#[derive(Debug)]
struct Options {
    fxt: bool,
    track_event: bool,
    inputs: u64,
    seed: u64,
    from: u64,
}

fn options() -> Option<Options> {
    let mut options = Options { fxt: true, track_event: true, inputs: 100_000, seed: 1, from: 0 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next()?.parse().ok();
        match argument.as_str() {
            "fxt" => options.track_event = false,
            "track-event" => options.fxt = false,
            "all" => {}
            "--inputs" => options.inputs = number()?,
            "--seed" => options.seed = number()?,
            "--from" => options.from = number()?,
            _ => return None,
        }
    }
    Some(options)
}

fn fuzz<F: Format>(options: &Options) -> bool {
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
        eprintln!("usage: fuzz [fxt|track-event|all] [--inputs N] [--seed S] [--from I]");
        return ExitCode::from(2);
    };
    let fxt = !options.fxt || fuzz::<Fxt>(&options);
    let track_event = !options.track_event || fuzz::<TrackEvent>(&options);
    if fxt && track_event { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
