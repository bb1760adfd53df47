//! Gives damaged regions to `recover` until one of them makes it fail.
//!
//! ```text
//! fuzz_recover [--inputs N] [--seed S] [--from I]
//! ```
//!
//! The same seed makes the same inputs. `--from` starts at the input with that number.

#[path = "../tests/fuzzer/mod.rs"]
mod fuzzer;

use std::process::ExitCode;
use std::time::Instant;

fn options() -> Option<(u64, u64, u64)> {
    let (mut inputs, mut seed, mut from) = (100_000, 1, 0);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let number = arguments.next()?.parse().ok()?;
        match argument.as_str() {
            "--inputs" => inputs = number,
            "--seed" => seed = number,
            "--from" => from = number,
            _ => return None,
        }
    }
    Some((inputs, seed, from))
}

fn main() -> ExitCode {
    let Some((inputs, seed, from)) = options() else {
        eprintln!("usage: fuzz_recover [--inputs N] [--seed S] [--from I]");
        return ExitCode::from(2);
    };
    let began = Instant::now();
    match fuzzer::run(seed, from..from.saturating_add(inputs)) {
        Ok(tally) => {
            println!("recover, seed {seed}: {tally}, {:.1?}", began.elapsed());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
