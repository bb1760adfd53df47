//! Makes the traces of a fleet: five services, each recorded in many runs, with a truth that is known.
//!
//! ```text
//! hairline-fleet --traces 1000 --slices 100000 OUT     OUT/web-0000.pftrace, ..., OUT/truth.json
//! ```
//!
//! A run is one trace for each service, on one clock; flows lead from the requests of `web` to those of the
//! others. Traces are written by Hairline's own writers, so they have its bytes; only their times are made
//! up. Durations are multiples of 100 ns, as from a clock of 10 MHz.

mod plan;
mod random;
mod request;
mod trace;
mod truth;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use hairline_convert::TraceFormat;

use crate::plan::{Plan, SERVICES};
use crate::truth::Truth;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Pftrace,
    Fxt,
}

/// Makes the traces of a fleet whose truth is known.
#[derive(Debug, Parser)]
struct Arguments {
    /// The number of traces: a multiple of five, because there are five services.
    #[arg(long, default_value_t = 10)]
    traces: u32,
    /// The number of slices of each trace, about.
    #[arg(long, default_value_t = 100_000)]
    slices: u32,
    /// Make only the traces from this one on; the others are counted in the truth.
    #[arg(long, default_value_t = 0)]
    from: u32,
    /// Make only so many traces.
    #[arg(long, default_value_t = u32::MAX)]
    only: u32,
    /// The format of the traces.
    #[arg(long, value_enum, default_value = "pftrace")]
    format: Format,
    /// The folder.
    out: PathBuf,
}

fn main() -> ExitCode {
    match make(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("hairline-fleet: {e}");
            ExitCode::FAILURE
        }
    }
}

fn make(arguments: &Arguments) -> io::Result<()> {
    fs::create_dir_all(&arguments.out)?;
    let (format, extension) = match arguments.format {
        Format::Pftrace => (TraceFormat::TrackEvent, "pftrace"),
        Format::Fxt => (TraceFormat::Fxt, "fxt"),
    };
    let mut truth = Truth::default();
    let wanted = arguments.from..arguments.from.saturating_add(arguments.only);
    let services = u32::try_from(SERVICES.len()).expect("five");
    for number in 0..arguments.traces {
        let plan = Plan::new(number / services, (number % services) as usize, arguments.slices);
        if wanted.contains(&number) {
            let name = format!("{}-{:04}.{extension}", plan.service(), plan.run);
            let mut file = BufWriter::with_capacity(1 << 20, File::create(arguments.out.join(name))?);
            trace::write(&plan, format, &mut file, &mut truth)?;
            file.flush()?;
        }
    }
    let text = serde_json::to_string_pretty(&truth.as_json())?;
    fs::write(arguments.out.join(format!("truth-{}.json", arguments.from)), text + "\n")
}
