//! `hairline top`

mod follow;
mod rates;
mod recorder;
mod source;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairline::recovery::{self, FoundRegion, ProcessState};

use crate::outcome::Outcome;
use crate::platform;
use crate::region::find;
use crate::stats::Sort;
use crate::text::{complain, failed, put, who};
use crate::top::follow::Follow;
use crate::top::rates::screen;
use crate::top::recorder::Recorder;
use crate::top::source::SliceSource;

/// Shows where a running process spends its time, by name.
///
/// Each second prints a table of the slices that ended in that second: their number, their time with and
/// without inner slices, percentiles. It reads the trace file of the process or its ring from outside, so the
/// process has no extra work. If it records scheduling, running and waiting are the times in which the
/// threads of the slices were on a core and waited for one. Times are sums over threads: ten threads in one
/// slice take 10 s a second.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline top 4711
  hairline top $(pidof server) --sort self --top 10
  hairline top 4711 --interval 10 --once > table.txt
  hairline ls                                  which processes there are")]
pub(crate) struct Arguments {
    /// A pid, or the path of a region in /dev/shm (see `hairline ls`).
    #[arg(value_name = "PID|REGION")]
    region: PathBuf,
    /// The interval between tables, in seconds.
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Print one table only.
    #[arg(long)]
    once: bool,
    /// The column to sort by, largest first; names in alphabetical order.
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = Sort::Total)]
    sort: Sort,
    /// The number of rows; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 25)]
    top: usize,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.05..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("from 0.05 to 86400".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let regions = match find(&arguments.region) {
        Ok(regions) => regions,
        Err(outcome) => return outcome,
    };
    let watched = regions.into_iter().map(Watched::new).collect::<Result<Vec<_>, _>>();
    match watched.and_then(|mut watched| show(arguments, &mut watched)) {
        Ok(()) => Outcome::Done,
        Err(e) => failed(e),
    }
}

/// A region that is shown: one of a process, which has one for each copy of Hairline in it.
struct Watched {
    region: FoundRegion,
    source: Box<dyn SliceSource>,
}

impl Watched {
    /// Reads the trace from the output file if there is one, otherwise from the ring.
    fn new(region: FoundRegion) -> Result<Self, String> {
        let source: Box<dyn SliceSource> = match &region.output {
            Some(output) if !region.overwrites && output.is_file() => Box::new(Follow::start(output)?),
            _ => Box::new(Recorder::start(&region.path)?),
        };
        Ok(Self { region, source })
    }
}

fn show(arguments: &Arguments, watched: &mut [Watched]) -> Result<(), String> {
    let is_over = platform::ending().map_err(|e| e.to_string())?;
    for of in &mut *watched {
        of.source.take(&is_over)?;
    }
    let Some(pid) = watched.first().map(|of| of.region.pid) else { return Ok(()) };
    let mut began = Instant::now();
    loop {
        let lives = watched.iter().any(|of| wait(began + arguments.interval, &of.region.path, &is_over));
        let now = Instant::now();
        let mut tables = screen();
        for Watched { region, source } in &mut *watched {
            match source.take(&is_over) {
                Ok(rates) => {
                    let name = who(region.pid, &region.process_name);
                    tables += &rates.table(&name, now - began, arguments.sort, arguments.top);
                }
                // The trace is gone because the process has ended.
                Err(_) if !lives => {}
                Err(e) => return Err(e),
            }
        }
        match put(tables) {
            // The pipe was closed.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            put => put.map_err(|e| format!("stdout: {e}"))?,
        }
        began = now;
        if arguments.once || !lives || is_over.load(Ordering::Relaxed) {
            break;
        }
    }
    if !arguments.once && !is_over.load(Ordering::Relaxed) {
        complain(format_args!("process {pid} has ended, or its session has"));
    }
    Ok(())
}

/// Waits until a time, until the process ends, or until the user stops. Returns whether the process is alive.
fn wait(until: Instant, region: &Path, is_over: &AtomicBool) -> bool {
    const STEP: Duration = Duration::from_millis(50);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if !region.exists() {
            return false;
        }
        if left.is_zero() || is_over.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(left.min(STEP));
    }
    let is_it = |found: &FoundRegion| found.path == region && found.process != ProcessState::Dead;
    recovery::find().is_ok_and(|found| found.iter().any(is_it))
}
